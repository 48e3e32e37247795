//! A server of random shape, and what it is to answer.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use headway_policy::Resume;
use headway_runtime::{Builder, Call, Idle, Layout, Pin, Server, Stats};

use super::Rng;
use super::common::{FOREVER, laid_out};
use super::handling::{Handling, index_of};
use super::source::{Answer, Source};

/// A server and what it is to answer.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) seed: u64,
    pub(crate) policy: String,
    workers: usize,
    slots: usize,
    layout: Layout,
    idle: Idle,
    feedback: bool,
    anywhere: bool,
    /// Whether probes read the clock.
    pub(crate) by_clock: bool,
    /// Whether requests come over UDP; else by replay.
    pub(crate) by_udp: bool,
    pub(crate) requests: u32,
    /// Mean time between two arrivals, ns; 0: all are there from the start.
    gap_ns: u64,
    /// Receive queues.
    pub(crate) queues: usize,
    /// Receive queues that anything comes to.
    fed: usize,
    /// Parameters set while it serves, one after the other.
    pub(crate) changes: Vec<(&'static str, &'static str)>,
    /// Stopped with so much time left, in the middle.
    stopped_within: Option<Duration>,
}

impl Trial {
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let workers = rng.pick(&[1, 2, 2, 3, 5]);
        let drawn = Drawn::of(&mut rng, seed, workers);
        let layouts = [Layout::Inline, Layout::Inline, Layout::Dedicated];
        let requests = 2_000 + rng.below(8_000) as u32;
        let values = ["1us", "5us", "50us"];
        let changes = (0..rng.below(4)).map(|_| ("q", rng.pick(&values)));
        let changes: Vec<(&str, &str)> = changes.collect();
        Self {
            seed,
            workers,
            slots: workers + rng.pick(&[0, 1, 7, 63, 500]),
            layout: rng.pick(&layouts),
            idle: rng.pick(&[
                Idle::Spin,
                Idle::Park,
                Idle::default(),
                Idle::SpinThenPark { spin_ns: 500 },
            ]),
            feedback: drawn.interrupts && rng.below(2) == 0,
            anywhere: drawn.roams || rng.below(2) == 0,
            by_clock: drawn.may_keep_times && rng.below(2) == 0,
            by_udp: seed.is_multiple_of(3),
            requests,
            gap_ns: rng.pick(&[0, 500, 2_000]),
            queues: drawn.queues,
            fed: 1 + rng.below(drawn.queues as u64) as usize,
            changes: if drawn.has_quantum {
                changes
            } else {
                Vec::new()
            },
            stopped_within: (rng.below(6) == 0)
                .then(|| Duration::from_micros(rng.pick(&[0, 100, 10_000]))),
            policy: drawn.policy,
        }
    }

    /// Its requests, by the queue of each and the time of its arrival.
    pub(crate) fn arrivals(&self) -> impl Iterator<Item = (usize, u64, u8)> + '_ {
        let mut rng = Rng(!self.seed);
        let mut at_ns = 0;
        (0..self.requests).map(move |index| {
            at_ns += rng.below(2 * self.gap_ns + 1);
            let queue = rng.below(self.fed as u64) as usize;
            (queue, at_ns, Handling::of(self.seed, index).class())
        })
    }

    fn builder(&self) -> Builder {
        let builder = laid_out(Server::builder(), &self.policy, self.layout)
            .class("short", Duration::from_nanos(500))
            .class("long", Duration::from_micros(20))
            .workers(self.workers)
            .slots(self.slots.max(self.queues * 2))
            .idle(self.idle)
            .pin(Pin::Off)
            .by_feedback(self.feedback);
        let builder = if self.by_clock {
            builder.interrupt_by_clock()
        } else {
            builder
        };
        if !self.anywhere {
            return builder.resume(Resume::OwnWorker);
        }
        builder.resume(Resume::Anywhere)
    }

    /// Serves the requests, and checks that none was lost or answered twice.
    pub(crate) fn run(&self) -> Stats {
        let counts: Arc<[AtomicU8]> = (0..self.requests).map(|_| AtomicU8::new(0)).collect();
        let (seed, begun) = (self.seed, Arc::clone(&counts));
        let builder = self.builder().service(move |call: &mut Call<'_>| {
            let index = index_of(call);
            let before = begun[index as usize].fetch_add(1, Ordering::Relaxed);
            assert_eq!(before, 0, "request {index} began twice");
            Handling::of(seed, index).handle(call);
        });
        let (server, mut source) = Source::start(self, builder);
        self.change_rules(&server);
        let stats = if let Some(left) = self.stopped_within {
            std::thread::sleep(left / 2);
            server.shutdown(left).unwrap()
        } else {
            source.wait_for_all(&server);
            server.shutdown(FOREVER).unwrap()
        };
        let taken = source.taken(&stats);
        self.check(&stats, taken, &source.answers(), &counts);
        stats
    }

    /// Sets parameters while the server serves.
    fn change_rules(&self, server: &Server) {
        let tuner = server.tuner();
        for &(key, value) in &self.changes {
            std::thread::sleep(Duration::from_micros(300));
            let set = tuner.set(&[(key.to_owned(), value.to_owned())]);
            set.unwrap_or_else(|error| panic!("{}: {error}", self.policy));
        }
    }

    fn check(&self, stats: &Stats, taken: u64, done: &[Answer], begun: &[AtomicU8]) {
        let mut seen: Vec<u32> = done.iter().map(|done| done.index).collect();
        seen.sort_unstable();
        assert!(seen.is_sorted_by(|a, b| a < b), "answered twice: {stats:?}");
        let (refused, answered): (Vec<&Answer>, Vec<&Answer>) =
            done.iter().partition(|done| done.refused);
        if self.by_udp {
            // The client's socket has room for some answers only.
            assert!(stats.answered >= answered.len() as u64, "{stats:?}");
        } else {
            assert_eq!(stats.answered, answered.len() as u64, "{stats:?}");
        }
        assert_eq!(stats.received, taken, "{stats:?}");
        assert_eq!(
            stats.answered + stats.shed + stats.refused_draining + stats.abandoned,
            taken,
            "{stats:?}"
        );
        let was_begun = |index: u32| begun[index as usize].load(Ordering::Relaxed) == 1;
        let began = answered.iter().all(|done| was_begun(done.index));
        assert!(began, "answered and not begun");
        let began = refused.iter().any(|done| was_begun(done.index));
        assert!(!began, "refused and begun");
        let panics = answered
            .iter()
            .filter(|done| Handling::of(self.seed, done.index).panics());
        let panics = panics.count() as u64;
        if self.by_udp {
            assert!(stats.panics >= panics, "{stats:?}");
        } else {
            assert_eq!(stats.panics, panics, "{stats:?}");
        }
        if self.stopped_within.is_none() {
            assert_eq!(stats.abandoned + stats.refused_draining, 0, "{stats:?}");
        }
    }
}

/// A policy, and what its server is like.
struct Drawn {
    policy: String,
    queues: usize,
    /// Whether its requests must be free to change workers.
    roams: bool,
    interrupts: bool,
    /// Whether its workers may end quanta by their own clocks, in place of a dispatcher's flags.
    may_keep_times: bool,
    /// Whether its quantum may change while it serves.
    has_quantum: bool,
}

impl Drawn {
    /// Kinds come by turns, so that a short soak has all.
    fn of(rng: &mut Rng, seed: u64, workers: usize) -> Self {
        let kind = seed % 10;
        let q = quantum(rng);
        let policy = match kind {
            0 | 1 => format!("work-stealing,steal={}", rng.pick(&["half", "one"])),
            2..=4 => synergy(rng),
            5 => format!("tiny-quanta,q={q}"),
            6 => format!("tardis,q={q},n={}", 1 + rng.below(8)),
            7 if workers > 1 => format!("concord,q={q},dispatchers=2"),
            8 => format!("shinjuku-sq,q={q}"),
            _ => format!("concord,q={q},k={}", 1 + rng.below(4)),
        };
        let is_steered = kind <= 4;
        let has_several = policy.contains("dispatchers=");
        Self {
            queues: match (is_steered, has_several) {
                (true, _) => workers,
                (_, true) => 2,
                _ => 1,
            },
            roams: policy.starts_with("synergy") || policy.starts_with("tardis"),
            interrupts: kind > 1,
            may_keep_times: kind >= 7,
            has_quantum: kind > 1 && kind != 6,
            policy,
        }
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
