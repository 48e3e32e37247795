//! A change does not collapse a shaped rack: within any 100 ms of it, the p99.9 slowdown under `pallas` is at most twice that under
//! `racksched`, which has no layout that could be wrong.

use headway_policy::WorkerId;
use headway_sim::{CoreChange, Experiment, Outcome, TimelineInterval};
use headway_workload::{Arrivals, Class, Offered, Phase, ServiceDistribution, Workload};

const SERVERS: usize = 8;
const WORKERS: usize = 10;
const INTERVAL_NS: u64 = 20_000_000;
/// Intervals of a window: 100 ms.
const WINDOW: usize = 5;
/// Intervals before the change, and of the whole run.
const BEFORE: u64 = 5;
const ALL: u64 = 15;
const MOST: f64 = 2.0;

/// Service times, µs, and shares.
type Mix = [(f64, f64)];

struct Change<'a> {
    before: &'a Mix,
    after: &'a Mix,
    arrivals: Arrivals,
    /// The first server has no cores for the first 40 ms after the change.
    loses_server: bool,
}

impl<'a> Change<'a> {
    fn of(before: &'a Mix, after: &'a Mix) -> Self {
        Self {
            before,
            after,
            arrivals: Arrivals::Poisson,
            loses_server: false,
        }
    }

    fn run(&self, policy: &str, load: f64, seed: u64) -> Outcome {
        let mut workload = Workload::new("changing", classes(self.before));
        workload.arrivals = self.arrivals.clone();
        let phase = |mix, intervals| Phase {
            duration_ns: intervals * INTERVAL_NS,
            classes: classes(mix),
        };
        workload.phases = vec![phase(self.before, BEFORE), phase(self.after, ALL - BEFORE)];
        // The heavier of the two mixes has the load.
        let mean_us = mean_us(self.before).max(mean_us(self.after));
        let rate_rps = load * (SERVERS * WORKERS) as f64 / mean_us * 1e6;
        let run_s = (ALL * INTERVAL_NS) as f64 / 1e9;
        let mut experiment = Experiment::new(workload, policy.parse().unwrap())
            .servers(SERVERS)
            .workers(WORKERS)
            .offered(Offered::Rate(rate_rps))
            .requests((rate_rps * run_s) as u64);
        experiment.seed = seed;
        experiment.timeline_ns = Some(INTERVAL_NS);
        if self.loses_server {
            let change = |at, present| {
                (0..WORKERS as u16).map(move |worker| CoreChange {
                    at_ns: at * INTERVAL_NS,
                    worker: WorkerId(worker),
                    present,
                })
            };
            experiment.core_changes.extend(change(BEFORE, false));
            experiment.core_changes.extend(change(BEFORE + 2, true));
        }
        experiment.run().unwrap()
    }

    /// p99.9 of the slowdown in each window of 100 ms.
    fn tails(&self, policy: &str, load: f64, seed: u64) -> Vec<f64> {
        let outcome = self.run(policy, load, seed);
        let timeline = &outcome.timeline[..ALL as usize];
        timeline
            .windows(WINDOW)
            .map(|window| self.slowdown_p999(window))
            .collect()
    }

    fn slowdown_p999(&self, window: &[TimelineInterval]) -> f64 {
        let beyond = |slowdown: f64| -> u64 {
            let of_interval = |interval: &TimelineInterval| -> u64 {
                let is_before = interval.from_ns < BEFORE * INTERVAL_NS;
                let mix = if is_before { self.before } else { self.after };
                let beyond = interval.classes.iter().zip(mix);
                let beyond = beyond
                    .map(|(latency, (us, _))| latency.count_above((slowdown * us * 1e3) as u64));
                beyond.sum()
            };
            window.iter().map(of_interval).sum()
        };
        let classes = window.iter().flat_map(|interval| &interval.classes);
        let most = classes.map(|latency| latency.count()).sum::<u64>() / 1000;
        let (mut low, mut high) = (1.0_f64, 1e6_f64);
        while high / low > 1.001 {
            let middle = (low * high).sqrt();
            if beyond(middle) > most {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }

    /// Compares every window of 100 ms, at loads from 0.3 to 0.9.
    fn stays_within_twice(&self, name: &str) {
        for load in [0.3, 0.6, 0.8, 0.9] {
            let seed = 11 + (10.0 * load) as u64;
            let tails = self.tails("pallas", load, seed);
            let rivals = self.tails("racksched", load, seed);
            for (at, (tail, rival)) in tails.iter().zip(&rivals).enumerate() {
                assert!(
                    *tail <= MOST * rival,
                    "{name} at load {load}, seed {seed}, 100 ms from {} ms: {tail:.1}, racksched {rival:.1}",
                    at as u64 * INTERVAL_NS / 1_000_000
                );
            }
        }
    }
}

fn classes(mix: &Mix) -> Vec<Class> {
    let class = |(number, &(us, share)): (usize, &(f64, f64))| {
        let mean_ns = (us * 1e3) as u64;
        let service = ServiceDistribution::Constant { mean_ns };
        Class::new(format!("type {number}"), share, service)
    };
    mix.iter().enumerate().map(class).collect()
}

fn mean_us(mix: &Mix) -> f64 {
    mix.iter().map(|(us, share)| us * share).sum()
}

const NORMAL: &Mix = &[(10.0, 0.9), (100.0, 0.1)];
const PORT: &Mix = &[(10.0, 0.5), (100.0, 0.5)];

#[test]
fn two_types_that_swap() {
    Change::of(&[(12.0, 0.5), (110.0, 0.5)], &[(110.0, 0.5), (12.0, 0.5)])
        .stays_within_twice("swap");
    Change::of(&[(12.0, 0.9), (110.0, 0.1)], &[(110.0, 0.9), (12.0, 0.1)])
        .stays_within_twice("swap of a rare type");
}

#[test]
fn five_types_that_swap() {
    let shares = [0.43, 0.04, 0.45, 0.04, 0.04];
    let mix = |us: [f64; 5]| -> Vec<(f64, f64)> { us.into_iter().zip(shares).collect() };
    Change::of(
        &mix([5.0, 6.0, 16.0, 62.0, 74.0]),
        &mix([74.0, 62.0, 16.0, 6.0, 5.0]),
    )
    .stays_within_twice("TPC-C");
}

#[test]
fn shares_that_change() {
    Change::of(PORT, NORMAL).stays_within_twice("more shorts");
    Change::of(NORMAL, PORT).stays_within_twice("more longs");
}

#[test]
fn a_new_type_and_one_that_dies() {
    let two = &[(10.0, 0.9), (100.0, 0.1), (500.0, 0.0)];
    let three = &[(10.0, 0.8), (100.0, 0.1), (500.0, 0.1)];
    Change::of(two, three).stays_within_twice("a new type");
    Change::of(three, two).stays_within_twice("a type dies");
}

#[test]
fn bursts() {
    Change {
        arrivals: Arrivals::Gamma { cv: 5.0 },
        ..Change::of(NORMAL, NORMAL)
    }
    .stays_within_twice("bursts");
}

#[test]
fn a_server_that_is_lost_and_comes_back() {
    Change {
        loses_server: true,
        ..Change::of(NORMAL, NORMAL)
    }
    .stays_within_twice("a lost server");
}

/// The rule costs a steady mix hardly anything of the paper's gain.
#[test]
fn a_steady_mix_keeps_what_shaping_gains() {
    for load in [0.8, 0.9] {
        let steady = Change::of(NORMAL, NORMAL);
        let of = |policy| {
            let tails = steady.tails(policy, load, 5);
            tails.into_iter().fold(0.0, f64::max)
        };
        let (ours, turns, rival) = (of("pallas"), of("pallas,overflow=off"), of("racksched"));
        assert!(ours < 0.5 * rival, "at {load}: {ours}, racksched {rival}");
        assert!(ours < 1.1 * turns, "at {load}: {ours}, turns alone {turns}");
    }
}
