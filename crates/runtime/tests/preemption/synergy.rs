//! Workers without a dispatcher that steal, interrupt themselves and share a wait queue: every request is answered once, in full.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use headway_net::replay::{Replay, ReplayArrival};
use headway_policy::Resume;
use headway_runtime::{
    Builder, Call, DeclaredClass, Idle, Layout, Observer, Pin, Server, Service, Spin, Stats,
    checkpoint, suspensions,
};

use super::common::{FOREVER, assert_all_answered, play, replay, uneven_replay};
use super::overtaking::shorts_overtake;
use super::{alone, given_up};

const REQUESTS: u32 = 300;
const LONG_NS: u64 = 200_000;
const GAP_NS: u64 = 40_000;
/// Pairs of a short and a long, one pair each so many ns: a worker with three buffers serves them in time.
const ROUNDS: u32 = 300;
const ROUND_NS: u64 = 1_000_000;

/// A monitor with a thread of its own, and workers that watch themselves.
const LAYOUTS: [Layout; 2] = [Layout::Dedicated, Layout::Inline];

fn builder(policy: &str, workers: usize, layout: Layout) -> Builder {
    let builder = Server::builder()
        .policy(policy)
        .class("short", Duration::from_nanos(500))
        .class("long", Duration::from_nanos(LONG_NS))
        .workers(workers)
        .layout(layout)
        .pin(Pin::Off);
    builder.resume(Resume::Anywhere)
}

/// Runs a replay to its end, dealt to some of the workers' queues, and checks that each request came back once.
fn all_answered(policy: &str, workers: usize, fed: usize, idle: Idle, layout: Layout) -> Stats {
    let builder = builder(policy, workers, layout).idle(idle);
    let context = format!("{policy}, {workers} workers, {fed} fed, {idle:?}, {layout:?}");
    let stats = played(builder, workers, fed, layout, &context);
    // Where quanta follow the shorts, these are not timed.
    if !policy.contains("parts") {
        assert_eq!(stats.classes[0].preemptions, 0, "{context}: {stats:?}");
    }
    stats
}

/// Plays a replay to a server of this layout.
fn played(builder: Builder, workers: usize, fed: usize, layout: Layout, context: &str) -> Stats {
    let (datapath, control) = uneven_replay(workers, fed, REQUESTS, GAP_NS, [500, LONG_NS]);
    let server = builder
        .service(Spin::default())
        .datapath(datapath)
        .start()
        .unwrap();
    assert_eq!(
        (server.layout(), server.monitor_layout()),
        (None, Some(layout))
    );
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    assert_all_answered(&stats, &control, LONG_NS, context);
    let resumed: u64 = stats.classes.iter().map(|class| class.resumed).sum();
    assert_eq!(resumed, stats.preemptions, "{context}");
    stats
}

/// Without hints and without feedback the workers find out which class is long, and interrupt that one alone.
#[test]
fn what_is_long_is_learned_where_nobody_says_it() {
    let begun = Instant::now();
    for layout in LAYOUTS {
        loop {
            let unknown = |name| DeclaredClass::new(name, Duration::ZERO);
            let builder =
                builder("synergy", 2, layout).classes(vec![unknown("short"), unknown("long")]);
            let stats = played(builder, 2, 2, layout, "learned");
            assert_eq!(stats.classes[0].preemptions, 0, "{layout:?}: {stats:?}");
            if stats.classes[1].preemptions > 0 {
                break;
            }
            assert!(
                begun.elapsed() < FOREVER,
                "{layout:?}: nothing was interrupted"
            );
        }
    }
}

/// A wait queue from which nothing was taken for a while is congested, until something is (Algorithm 5.3): a long waits in it behind shorts, goes on first as
/// soon as it is congested, and sees the flag fall.
#[test]
fn the_flag_of_congestion_rises_and_falls() {
    const SHORTS: u32 = 20;
    let _alone = alone();
    for layout in LAYOUTS {
        let begun = Instant::now();
        loop {
            let seen = Arc::new(CongestionSeen::default());
            let inside = Arc::clone(&seen);
            let builder = builder("synergy,thresh_wqd=1ms", 1, layout);
            let arrivals = (0..=SHORTS).map(|index| ReplayArrival {
                at_ns: u64::from(index.min(1)) * 1_000_000,
                service_ns: 0,
                index,
                class: u8::from(index == 0),
            });
            let (datapath, control) = Replay::new(vec![arrivals.collect()]).unwrap();
            let server = builder
                .service(move |call: &mut Call<'_>| match call.class().0 {
                    1 => inside.watch_as_long(),
                    _ => inside.serve_as_short(),
                })
                .datapath(datapath)
                .start()
                .unwrap();
            seen.observer.set(server.observer()).ok().unwrap();
            play(&control);
            let stats = server.shutdown(FOREVER).unwrap();
            assert_eq!(stats.answered, u64::from(SHORTS) + 1, "{stats:?}");
            if seen.rose.load(Ordering::Relaxed) {
                assert!(seen.fell.load(Ordering::Relaxed), "{layout:?}: {stats:?}");
                break;
            }
            // A monitor's thread that gets no core while the shorts run sees nothing.
            assert!(begun.elapsed() < FOREVER, "{layout:?}: {stats:?}");
        }
    }
}

/// What the handlers see of the flag.
#[derive(Default)]
struct CongestionSeen {
    observer: OnceLock<Observer>,
    rose: AtomicBool,
    fell: AtomicBool,
}

impl CongestionSeen {
    fn is_up(&self) -> bool {
        let stats = self.observer.get().map(Observer::stats);
        stats.is_some_and(|stats| stats.wait_queues.iter().any(|queue| queue.congested))
    }

    /// Keeps the worker for longer than the threshold, or until the flag rises.
    fn serve_as_short(&self) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(3) {
            if self.is_up() {
                self.rose.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Runs until it was interrupted; then, if the flag rose, until it has fallen.
    fn watch_as_long(&self) {
        let (begun, turns) = (Instant::now(), suspensions());
        while suspensions() == turns && begun.elapsed() < FOREVER {
            checkpoint();
        }
        if self.is_up() {
            self.rose.store(true, Ordering::Relaxed);
        }
        while self.rose.load(Ordering::Relaxed) && begun.elapsed() < FOREVER {
            checkpoint();
            if !self.is_up() {
                self.fell.store(true, Ordering::Relaxed);
                break;
            }
        }
    }
}

/// The parts of the ablation, one after the other; quanta that always interrupt; wait queues that hold one request or none too many.
const POLICIES: [&str; 7] = [
    "synergy,parts=none,q=5us",
    "synergy,parts=ws,q=5us",
    "synergy,parts=ws+wq,q=5us",
    "synergy,parts=ws+wq+cp,q=5us",
    "synergy",
    "synergy,thresh_wqd=20us,congested_factor=1,waits=2",
    "synergy,steal_threshold=2,factor=10,room=1",
];

#[test]
fn everything_is_answered_once_by_every_part() {
    let _alone = alone();
    for policy in POLICIES {
        for workers in [1, 2, 5] {
            for layout in LAYOUTS {
                all_answered(policy, workers, workers, Idle::default(), layout);
            }
        }
    }
}

#[test]
fn every_way_to_wait_answers_everything() {
    let _alone = alone();
    for idle in [Idle::Spin, Idle::Park] {
        for layout in LAYOUTS {
            all_answered("synergy", 2, 2, idle, layout);
        }
    }
}

/// A worker whose queue stays empty takes its part of the other's.
#[test]
fn an_idle_worker_steals() {
    let _alone = alone();
    let begun = Instant::now();
    while all_answered("synergy", 2, 1, Idle::default(), Layout::Inline).stolen == 0 {
        assert!(begun.elapsed() < FOREVER, "nobody stole");
    }
}

/// With a buffer for each worker and no stealing, worker 0 receives into those that the others return once they resumed its longs. A worker to which
/// nothing comes keeps none of them: else worker 0 would soon refuse what comes.
#[test]
fn workers_leave_buffers_to_those_that_need_them() {
    let _alone = alone();
    for layout in LAYOUTS {
        let (datapath, control) = uneven_replay(3, 1, 2 * ROUNDS, ROUND_NS / 2, [500, 20_000]);
        let server = builder("synergy,parts=wq+cp,q=5us", 3, layout)
            .slots(3)
            .service(Spin::default())
            .datapath(datapath)
            .start()
            .unwrap();
        play(&control);
        let stats = server.shutdown(FOREVER).unwrap();
        let shed: u64 = stats.classes.iter().map(|class| class.shed).sum();
        assert_eq!(
            stats.answered + shed,
            u64::from(2 * ROUNDS),
            "{layout:?}: {stats:?}"
        );
        // A machine that stops the worker lets requests pile up, which are refused then; buffers that never come back refuse all from the fourth on.
        assert!(stats.answered > 3 * 16, "{layout:?}: {stats:?}");
    }
}

/// Preemption is conditional: without anything that waits a long request goes on, slice after slice.
#[test]
fn a_long_alone_is_not_interrupted() {
    let _alone = alone();
    for layout in LAYOUTS {
        let begun = Instant::now();
        let mut long = Duration::from_millis(1);
        // A monitor whose thread gets no core meanwhile renews nothing.
        while serve_one_long(layout, long) <= 10 {
            assert!(begun.elapsed() < FOREVER, "nobody looked, {layout:?}");
            long *= 2;
        }
    }
}

/// A short, and a long that takes so much time; how often its quantum was renewed.
fn serve_one_long(layout: Layout, long: Duration) -> u64 {
    let (datapath, control) = replay(1, 2, 1_000_000_000, [0, 0]);
    let server = builder("synergy,q=5us", 1, layout)
        .service(move |call: &mut Call<'_>| {
            let begun = Instant::now();
            while call.class().0 == 1 && begun.elapsed() < long {
                checkpoint();
            }
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    assert_eq!((stats.answered, stats.preemptions), (2, 0), "{stats:?}");
    stats.classes[1].renewals
}

/// With one worker that could only be interrupted. Without a wait queue the long one comes back to the worker's own queue, behind what arrived meanwhile.
#[test]
fn a_short_request_overtakes_a_long_one_that_runs() {
    let _alone = alone();
    for policy in ["synergy,q=5us", "synergy,parts=ws,q=5us"] {
        for layout in LAYOUTS {
            let context = format!("{policy}, {layout:?}");
            shorts_overtake(builder(policy, 1, layout), 1_000_000, &context);
        }
    }
}

#[test]
fn a_panic_in_an_interrupted_handler_costs_its_request_only() {
    let _alone = alone();
    for layout in LAYOUTS {
        let (datapath, control) = replay(2, REQUESTS, GAP_NS, [500, LONG_NS]);
        let server = builder("synergy", 2, layout)
            .service(|call: &mut Call<'_>| {
                Spin::default().handle(call);
                assert_ne!(call.class().0, 1, "longs panic");
            })
            .datapath(datapath)
            .start()
            .unwrap();
        play(&control);
        let stats = server.shutdown(FOREVER).unwrap();
        let half = u64::from(REQUESTS) / 2;
        assert_eq!((stats.answered, stats.panics), (2 * half, half));
    }
}

/// Requests in the middle of their service when time is up, in a wait queue too, are given up, and counted with the others.
#[test]
fn what_is_given_up_is_counted() {
    let _alone = alone();
    for layout in LAYOUTS {
        given_up(&format!("{layout:?}"), 2, || {
            builder("synergy,q=5us", 2, layout)
        });
    }
}
