//! Workers that help themselves from one queue, steal and interrupt themselves: every request is answered once, in full.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use headway_net::header::Status;
use headway_policy::Resume;
use headway_runtime::{
    Builder, Call, Idle, Pin, ResizeError, Server, Service, Spin, Stats, checkpoint,
};

use super::common::{
    Client, FOREVER, ServeOnLoopback, assert_all_answered, gated, loopback, play, replay,
    wait_until,
};
use super::overtaking::shorts_overtake;
use super::{alone, given_up};

const REQUESTS: u32 = 300;
const LONG_NS: u64 = 200_000;
const GAP_NS: u64 = 40_000;
const QUANTUM: Duration = Duration::from_micros(5);

fn builder(policy: &str, workers: usize) -> Builder {
    let builder = Server::builder()
        .policy(policy)
        .class("short", Duration::from_nanos(500))
        .class("long", Duration::from_nanos(LONG_NS))
        .workers(workers)
        .pin(Pin::Off);
    builder.resume(Resume::Anywhere)
}

/// Runs a replay to its end and checks that each request came back once.
fn all_answered(policy: &str, workers: usize, idle: Idle) -> Stats {
    let (datapath, control) = replay(1, REQUESTS, GAP_NS, [500, LONG_NS]);
    let server = builder(policy, workers)
        .idle(idle)
        .service(Spin::default())
        .datapath(datapath)
        .start()
        .unwrap();
    assert_eq!(server.layout(), None);
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    let context = format!("{policy}, {workers} workers, {idle:?}");
    assert_all_answered(&stats, &control, LONG_NS, &context);
    let resumed: u64 = stats.classes.iter().map(|class| class.resumed).sum();
    assert_eq!(resumed, stats.preemptions, "{context}");
    stats
}

#[test]
fn everything_is_answered_once_by_any_batch() {
    let _alone = alone();
    for policy in ["tardis", "tardis,n=1", "tardis,n=64,q=20us"] {
        for workers in [1, 2, 5] {
            all_answered(policy, workers, Idle::default());
        }
    }
}

#[test]
fn every_way_to_wait_answers_everything() {
    let _alone = alone();
    for idle in [Idle::Spin, Idle::Park] {
        all_answered("tardis", 3, idle);
    }
}

/// One worker, more load than it carries: what waits interrupts.
#[test]
fn longs_are_interrupted_for_what_waits() {
    let _alone = alone();
    let stats = all_answered("tardis", 1, Idle::default());
    assert!(stats.classes[1].preemptions > 0, "{stats:?}");
}

/// Without anything that waits a long request goes on, slice after slice.
#[test]
fn a_request_alone_is_not_interrupted() {
    let _alone = alone();
    let (datapath, control) = replay(1, 2, 1_000_000_000, [0, 0]);
    let server = builder("tardis,q=5us", 1)
        .service(|call: &mut Call<'_>| {
            // Each turn ends a quantum, however long the machine stops the worker.
            for _ in 0..20 * u32::from(call.class().0) {
                let begun = Instant::now();
                while begun.elapsed() < 2 * QUANTUM {
                    std::hint::spin_loop();
                }
                checkpoint();
            }
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    assert_eq!((stats.answered, stats.preemptions), (2, 0), "{stats:?}");
    assert!(stats.classes[1].renewals > 10, "{stats:?}");
}

/// With one worker that could only be interrupted.
#[test]
fn a_short_request_overtakes_a_long_one_that_runs() {
    let _alone = alone();
    shorts_overtake(builder("tardis,n=1", 1), 1_000, "tardis");
}

/// A worker that is stuck in a request holds the rest of its batch: an idle one takes it.
#[test]
fn an_idle_worker_steals_from_a_batch() {
    let _alone = alone();
    for idle in [Idle::Spin, Idle::Park] {
        let begun = Instant::now();
        // Where each took a batch of its own in, nobody was idle.
        while served_while_stuck(idle).stolen == 0 {
            assert!(begun.elapsed() < FOREVER, "nobody stole, {idle:?}");
        }
    }
}

/// Eight requests at once, every second one stuck until both workers are.
fn served_while_stuck(idle: Idle) -> Stats {
    let (gate, stuck) = (AtomicBool::new(false), AtomicUsize::new(0));
    let shared = Arc::new((gate, stuck));
    // The first is long: the worker that takes it takes shorts, too.
    let (datapath, control) = replay(1, 8, 0, [0, 0]);
    let seen = Arc::clone(&shared);
    let server = builder("tardis,n=8", 2)
        .idle(idle)
        .service(move |call: &mut Call<'_>| {
            let (gate, stuck) = &*seen;
            if call.class().0 == 0 {
                return;
            }
            stuck.fetch_add(1, Ordering::Relaxed);
            while !gate.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_micros(100));
            }
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let (gate, stuck) = &*shared;
    wait_until("both workers are in a long request", || {
        stuck.load(Ordering::Relaxed) == 2
    });
    gate.store(true, Ordering::Release);
    let stats = server.shutdown(FOREVER).unwrap();
    assert_eq!(stats.answered, 8, "{idle:?}: {stats:?}");
    stats
}

#[test]
fn a_panic_in_an_interrupted_handler_costs_its_request_only() {
    let _alone = alone();
    let (datapath, control) = replay(1, REQUESTS, GAP_NS, [500, LONG_NS]);
    let server = builder("tardis", 2)
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

/// Requests in the middle of their service when time is up, in the shared queue too, are given up, and counted with the others.
#[test]
fn what_is_given_up_is_counted() {
    let _alone = alone();
    given_up("tardis", 1, || builder("tardis", 2));
}

/// The bound is that of the shared queue, as in the simulator: a worker that is stuck lets the other poll, and shed.
#[test]
fn a_full_queue_sheds() {
    let _alone = alone();
    const LIMIT: usize = 4;
    let gate = Arc::new(AtomicBool::new(false));
    let (datapath, control) = replay(1, 64, 0, [0, 0]);
    let server = builder("tardis,n=1", 1)
        .queue_limit(LIMIT)
        .service(gated(&gate))
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    gate.store(true, Ordering::Release);
    let stats = server.shutdown(FOREVER).unwrap();
    assert_eq!(stats.answered + stats.shed, 64, "{stats:?}");
    // All 64 come with one poll, which the queue has no room for.
    assert_eq!(stats.answered, LIMIT as u64, "{stats:?}");
}

#[test]
fn it_serves_udp_and_refuses_while_it_drains() {
    let _alone = alone();
    for idle in [Idle::default(), Idle::Park] {
        let gate = Arc::new(AtomicBool::new(false));
        let server = builder("tardis", 2).idle(idle).serving(gated(&gate));
        let mut client = Client::of(&server);
        for index in 0..50 {
            assert_eq!(client.call(0, index, b"ping"), (Status::Ok, b"ping".into()));
        }
        // One worker is stuck, and the other still refuses.
        client.send(1, 100, b"");
        wait_until("the long request was taken in", || {
            server.stats().classes[1].accepted == 1
        });
        server.stopper().request_stop();
        let end = Instant::now() + FOREVER;
        while client.call(0, 101, b"").0 != Status::Draining {
            assert!(Instant::now() < end, "nothing is refused");
        }
        assert!(matches!(
            server.set_workers(1),
            Err(ResizeError::Steered { .. })
        ));
        gate.store(true, Ordering::Release);
        let stats = server.shutdown(FOREVER).unwrap();
        assert_eq!((stats.abandoned, stats.unsent), (0, 0), "{stats:?}");
        assert_eq!(stats.classes[1].answered, 1);
    }
}

/// A classifier that panics does so in the thread that receives: the server stops, and only that thread is blamed.
#[test]
fn a_crash_stops_the_server() {
    let _alone = alone();
    #[derive(Clone, Copy, Debug)]
    struct Panics;
    impl headway_net::classify::Classifier for Panics {
        fn classify(&self, _datagram: &[u8]) -> Option<u16> {
            panic!("a classifier with a bug");
        }
    }
    let server = builder("tardis", 2)
        .classifier(Panics)
        .service(Spin::default())
        .listen_udp(loopback())
        .start()
        .unwrap();
    let client = Client::of(&server);
    client.send(0, 1, b"");
    server.wait();
    let crashed = server.shutdown(FOREVER).unwrap_err().to_string();
    assert!(crashed.contains("hw-worker-"), "{crashed}");
}
