//! Servers of random shape, policy and size under random handlers: every request is begun once and answered once, whatever is stolen,
//! interrupted, resumed elsewhere, panics, or misuses the feedback.
//!
//! `make soak` serves ten million requests, `make test` a tenth of that. Each server is drawn from a seed of its own; a failure prints the
//! command that serves the same requests by the same server again.

#[path = "../common/mod.rs"]
mod common;
mod handling;
mod source;
mod trial;

use std::time::Instant;

use headway_runtime::Stats;
use trial::Trial;

/// Requests without `HEADWAY_SOAK`, which says how often fibers are interrupted; ten requests stand for one of those.
const REQUESTS: u64 = 60_000;
const REQUESTS_PER_INTERRUPTION: u64 = 10;

/// Of the first server, unless `HEADWAY_SOAK_SEED` says otherwise.
const SEED: u64 = 0x5eed_0000;

#[test]
fn every_request_is_answered_once() {
    let number = |name| {
        let text: Option<String> = std::env::var(name).ok();
        text.map(|text| text.parse::<u64>().expect("a whole number"))
    };
    let only = number("HEADWAY_SOAK_ONLY");
    let wanted = number("HEADWAY_SOAK").map_or(REQUESTS, |soak| soak * REQUESTS_PER_INTERRUPTION);
    let first = number("HEADWAY_SOAK_SEED").unwrap_or(SEED);
    let (begun, mut served, mut sum) = (Instant::now(), 0, Sum::default());
    for seed in only.map_or(first.., |only| only..) {
        let trial = Trial::of(seed);
        let _failure = Replays(&trial);
        sum.add(&trial, &trial.run());
        served += u64::from(trial.requests);
        if served >= wanted || only.is_some() {
            break;
        }
    }
    println!("{served} requests in {:.1?}: {sum:?}", begun.elapsed());
    if only.is_none() {
        sum.check();
    }
}

/// Says, when a test fails, how to repeat it.
struct Replays<'a>(&'a Trial);

impl Drop for Replays<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.0.seed;
            eprintln!(
                "{:?}\nrepeat it: HEADWAY_SOAK_ONLY={seed} cargo test -p headway-runtime --test soak",
                self.0
            );
        }
    }
}

/// The counts of all servers.
#[derive(Debug, Default)]
struct Sum {
    servers: u64,
    answered: u64,
    panics: u64,
    stolen: u64,
    preemptions: u64,
    resumed: u64,
    shed: u64,
    abandoned: u64,
    /// Servers by how they were built.
    tardis: u64,
    tiny_quanta: u64,
    several_dispatchers: u64,
    by_clock: u64,
    by_udp: u64,
    /// Rules that changed while they ran.
    changes: u64,
}

impl Sum {
    fn add(&mut self, trial: &Trial, stats: &Stats) {
        let policy = trial.policy.as_str();
        self.tardis += u64::from(policy.starts_with("tardis"));
        self.tiny_quanta += u64::from(policy.starts_with("tiny-quanta"));
        self.several_dispatchers += u64::from(policy.contains("dispatchers="));
        self.by_clock += u64::from(trial.by_clock);
        self.by_udp += u64::from(trial.by_udp);
        self.changes += trial.changes.len() as u64;
        self.servers += 1;
        self.answered += stats.answered;
        self.panics += stats.panics;
        self.stolen += stats.stolen;
        self.preemptions += stats.preemptions;
        self.resumed += stats.classes.iter().map(|class| class.resumed).sum::<u64>();
        self.shed += stats.shed;
        self.abandoned += stats.abandoned;
    }

    /// A soak in which something never happened shows nothing about it.
    fn check(&self) {
        let Self {
            answered,
            panics,
            stolen,
            preemptions,
            resumed,
            tardis,
            tiny_quanta,
            several_dispatchers,
            by_clock,
            by_udp,
            changes,
            ..
        } = *self;
        let happened = [answered, panics, stolen, preemptions, resumed];
        assert!(happened.iter().all(|&times| times > 0), "{self:?}");
        let happened = [
            tardis,
            tiny_quanta,
            several_dispatchers,
            by_clock,
            by_udp,
            changes,
        ];
        assert!(happened.iter().all(|&times| times > 0), "{self:?}");
    }
}

/// SplitMix64.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}
