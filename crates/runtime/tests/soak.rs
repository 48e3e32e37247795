//! Servers of random shape, policy and size under random handlers: every request is begun once and answered once, whatever is stolen,
//! interrupted, resumed elsewhere, panics, or misuses the feedback.
//!
//! `make soak` serves ten million requests, `make test` a tenth of that. Each server is drawn from a seed of its own; a failure prints the
//! command that serves the same requests by the same server again.

mod common;

use std::fmt::Write as _;
use std::hint::black_box;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use common::FOREVER;
use headway_machine::Clock;
use headway_net::replay::{Completion, Replay, ReplayArrival, ReplayControl};
use headway_runtime::{Builder, Call, Idle, Layout, Pin, Server, Service, Stats, checkpoint};

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
        sum.add(&trial.run());
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
}

impl Sum {
    fn add(&mut self, stats: &Stats) {
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
            ..
        } = *self;
        let happened = [answered, panics, stolen, preemptions, resumed];
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

/// A server and what it is to answer.
#[derive(Debug)]
struct Trial {
    seed: u64,
    policy: String,
    workers: usize,
    slots: usize,
    layout: Layout,
    idle: Idle,
    feedback: bool,
    anywhere: bool,
    requests: u32,
    /// Mean time between two arrivals, ns; 0: all are there from the start.
    gap_ns: u64,
    /// Receive queues that anything comes to.
    fed: usize,
    /// Stopped with so much time left, in the middle.
    stopped_within: Option<Duration>,
}

impl Trial {
    fn of(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let workers = rng.pick(&[1, 2, 2, 3, 5]);
        let steered = rng.below(4) > 0;
        let policy = match (steered, rng.below(4)) {
            (true, 0) => format!("work-stealing,steal={}", rng.pick(&["half", "one"])),
            (true, _) => synergy(&mut rng),
            (false, _) => format!("concord,q={},k={}", quantum(&mut rng), 1 + rng.below(4)),
        };
        let layouts = [Layout::Inline, Layout::Inline, Layout::Dedicated];
        let requests = 2_000 + rng.below(8_000) as u32;
        Self {
            seed,
            workers,
            slots: workers + rng.pick(&[0, 1, 7, 63, 500]),
            layout: if steered {
                rng.pick(&layouts)
            } else {
                Layout::Inline
            },
            idle: rng.pick(&[
                Idle::Spin,
                Idle::Park,
                Idle::default(),
                Idle::SpinThenPark { spin_ns: 500 },
            ]),
            feedback: rng.below(2) == 0,
            anywhere: policy.starts_with("synergy") || rng.below(2) == 0,
            requests,
            gap_ns: rng.pick(&[0, 500, 2_000]),
            fed: if steered {
                1 + rng.below(workers as u64) as usize
            } else {
                1
            },
            stopped_within: (rng.below(6) == 0)
                .then(|| Duration::from_micros(rng.pick(&[0, 100, 10_000]))),
            policy,
        }
    }

    /// Whether the network steers requests to the workers.
    fn is_steered(&self) -> bool {
        !self.policy.starts_with("concord")
    }

    fn datapath(&self) -> (Replay, ReplayControl) {
        let mut rng = Rng(!self.seed);
        let queues = if self.is_steered() { self.workers } else { 1 };
        let mut schedules = vec![Vec::new(); queues];
        let mut at_ns = 0;
        for index in 0..self.requests {
            at_ns += rng.below(2 * self.gap_ns + 1);
            schedules[rng.below(self.fed as u64) as usize].push(ReplayArrival {
                at_ns,
                service_ns: u64::from(index) + 1,
                index,
                class: Handling::of(self.seed, index).class(),
            });
        }
        Replay::new(schedules).unwrap()
    }

    fn server(&self, service: impl Service, datapath: Replay) -> Server {
        let builder = Server::builder()
            .policy(&self.policy)
            .class("short", Duration::from_nanos(500))
            .class("long", Duration::from_micros(20))
            .workers(self.workers)
            .slots(self.slots)
            .layout(self.layout)
            .idle(self.idle)
            .pin(Pin::Off)
            .by_feedback(self.feedback);
        let builder = if self.anywhere {
            roaming(builder)
        } else {
            builder
        };
        let builder = builder.service(service).datapath(datapath);
        builder.start().unwrap()
    }

    /// Serves the requests, and checks that none was lost or answered twice.
    fn run(&self) -> Stats {
        let (datapath, control) = self.datapath();
        let counts: Arc<[AtomicU8]> = (0..self.requests).map(|_| AtomicU8::new(0)).collect();
        let (seed, begun) = (self.seed, Arc::clone(&counts));
        let server = self.server(
            move |call: &mut Call<'_>| {
                let index = index_of(call);
                let before = begun[index as usize].fetch_add(1, Ordering::Relaxed);
                assert_eq!(before, 0, "request {index} began twice");
                Handling::of(seed, index).handle(call);
            },
            datapath,
        );
        control.start(Clock::global().now_ns());
        let stats = if let Some(left) = self.stopped_within {
            std::thread::sleep(left / 2);
            server.shutdown(left).unwrap()
        } else {
            wait_for_all(&control);
            server.shutdown(FOREVER).unwrap()
        };
        self.check(&stats, &control, &counts);
        stats
    }

    fn check(&self, stats: &Stats, control: &ReplayControl, begun: &[AtomicU8]) {
        let (taken, done) = (control.taken() as u64, control.take_completions());
        let mut seen: Vec<u32> = done.iter().map(|done| done.index).collect();
        seen.sort_unstable();
        assert!(seen.is_sorted_by(|a, b| a < b), "answered twice: {stats:?}");
        let (answered, refused): (Vec<&Completion>, Vec<&Completion>) =
            done.iter().partition(|done| !done.shed);
        assert_eq!(stats.answered, answered.len() as u64, "{stats:?}");
        assert_eq!(stats.received, taken, "{stats:?}");
        assert_eq!(stats.unsent, 0, "{stats:?}");
        assert_eq!(
            stats.answered + stats.shed + stats.refused_draining + stats.abandoned,
            taken,
            "{stats:?}"
        );
        let was_begun =
            |done: &&Completion| begun[done.index as usize].load(Ordering::Relaxed) == 1;
        assert!(answered.iter().all(was_begun), "answered and not begun");
        assert!(!refused.iter().any(was_begun), "refused and begun");
        let panics = answered
            .iter()
            .filter(|done| Handling::of(self.seed, done.index).panics());
        assert_eq!(stats.panics, panics.count() as u64, "{stats:?}");
        if self.stopped_within.is_none() {
            assert_eq!(taken, u64::from(self.requests), "{stats:?}");
            assert_eq!(stats.abandoned + stats.refused_draining, 0, "{stats:?}");
        }
    }
}

/// Allows requests to go on anywhere.
fn roaming(builder: Builder) -> Builder {
    // SAFETY: the handlers of this test keep nothing of their thread's over a checkpoint.
    #[expect(unsafe_code, reason = "the test's handlers may change threads")]
    unsafe {
        builder.resume_anywhere()
    }
}

fn wait_for_all(control: &ReplayControl) {
    let end = Instant::now() + FOREVER;
    while control.taken() < control.total() {
        assert!(
            Instant::now() < end,
            "{} of {} were taken",
            control.taken(),
            control.total()
        );
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn quantum(rng: &mut Rng) -> &'static str {
    rng.pick(&["1us", "2us", "5us", "50us"])
}

fn synergy(rng: &mut Rng) -> String {
    let parts: Vec<&str> = ["ws", "wq", "cp", "qa"]
        .into_iter()
        .filter(|_| rng.below(4) > 0)
        .collect();
    let parts = if parts.is_empty() {
        "none".to_owned()
    } else {
        parts.join("+")
    };
    let mut policy = format!("synergy,parts={parts},q={}", quantum(rng));
    let numbers = [
        ("factor", rng.pick(&["1", "2", "10"])),
        ("congested_factor", rng.pick(&["1", "4"])),
        ("thresh_wqd", rng.pick(&["0us", "5us", "50us"])),
        ("steal_threshold", rng.pick(&["0", "0", "2"])),
        ("waits", rng.pick(&["1", "2"])),
        ("room", rng.pick(&["0", "1", "2", "8"])),
        ("longs", rng.pick(&["auto", "hints", "learned"])),
    ];
    for (name, value) in numbers {
        let _ = write!(policy, ",{name}={value}");
    }
    policy
}

/// The request's place in the workload: the replay hands handlers nothing of a request but its work.
fn index_of(call: &Call<'_>) -> u32 {
    (call.service_hint_ns() - 1) as u32
}

/// The behaviour of a request, which depends on the seed and its number only.
#[derive(Clone, Copy, Debug)]
struct Handling(u64);

/// The payload of a panic that no hook prints.
struct Planned;

impl Handling {
    fn of(seed: u64, index: u32) -> Self {
        Self(Rng(seed ^ u64::from(index) << 32).next())
    }

    fn is_long(self) -> bool {
        self.0.is_multiple_of(8)
    }

    /// A few of the longs, and of the shorts.
    fn panics(self) -> bool {
        (self.0 >> 8).is_multiple_of(40)
    }

    /// Some shorts say that they are longs.
    fn class(self) -> u8 {
        u8::from(self.is_long() ^ (self.0 >> 16).is_multiple_of(50))
    }

    fn handle(self, call: &mut Call<'_>) {
        let rounds = if self.is_long() {
            200 + (self.0 >> 24) % 1_500
        } else {
            (self.0 >> 24) % 30
        };
        // Correct and incorrect uses by applications.
        match (self.0 >> 40) % 8 {
            0 => call.feedback_start(),
            1 => {
                call.feedback_start();
                call.feedback_start();
                self.compute(rounds / 2);
                call.feedback_finished();
            }
            2 => call.feedback_finished(),
            3 => call.long(|_| self.compute(rounds / 2)),
            4 => {
                call.feedback_start();
                call.feedback_finished();
                call.feedback_finished();
            }
            5 | 6 if self.is_long() => call.feedback_start(),
            _ => {}
        }
        self.compute(rounds);
        if self.panics() {
            resume_unwind(Box::new(Planned));
        }
        call.reply_in_place();
    }

    /// Keeps values in registers and on the stack over many checkpoints, and looks whether they are still there.
    fn compute(self, rounds: u64) {
        let kept: [u64; 8] = std::array::from_fn(|place| self.0.rotate_left(8 * place as u32));
        let mut state = Rng(self.0);
        for _ in 0..rounds {
            black_box(state.next());
            checkpoint();
        }
        let expected = self
            .0
            .wrapping_add(rounds.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        assert_eq!(state.0, expected, "a suspension lost a register");
        for (place, word) in black_box(kept).into_iter().enumerate() {
            assert_eq!(word, self.0.rotate_left(8 * place as u32));
        }
    }
}
