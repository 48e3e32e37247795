//! Every policy in every layout answers every request of a replay exactly once.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{
    FOREVER, assert_all_answered, gated, is_steered, laid_out, live_policies, play, replay,
    wait_until, with_room,
};
use headway_net::replay::{Replay, ReplayArrival};
use headway_policy::ClassHint;
use headway_runtime::{Builder, DeclaredClass, Idle, Layout, Observer, Pin, Server, Spin};

const REQUESTS: u32 = 4_000;
const IDLES: [Idle; 3] = [
    Idle::Spin,
    Idle::SpinThenPark { spin_ns: 5_000 },
    Idle::Park,
];

fn builder(policy: &str, workers: usize) -> Builder {
    let builder = Server::builder()
        .policy(policy)
        .class("short", Duration::from_nanos(500))
        .class("long", Duration::from_nanos(20_000))
        .workers(workers)
        .journal(REQUESTS as usize)
        .pin(Pin::Off);
    with_room(builder, policy, 2 * REQUESTS as usize)
}

/// Runs a replay to its end and checks that each request came back once.
fn all_answered(policy: &str, workers: usize, layout: Layout, idle: Idle) {
    let queues = if is_steered(policy) { workers } else { 1 };
    let (datapath, control) = replay(queues, REQUESTS, 1_000, [500, 3_000]);
    let server = laid_out(builder(policy, workers), policy, layout)
        .idle(idle)
        .service(Spin::default())
        .datapath(datapath)
        .start()
        .unwrap();
    let observer = server.observer();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    let context = format!("{policy}, {workers} workers, {layout:?}, {idle:?}");
    assert_all_answered(&stats, &control, 3_000, &context);
    assert_all_in_journal(&observer, &context);
}

/// Each request has an entry of its own, and nothing is left in the server.
fn assert_all_in_journal(observer: &Observer, context: &str) {
    let mut journal = observer.take_journal().expect("nobody has it yet");
    let mut entries = [0_u64; 3];
    journal.drain(|entry| {
        entries[usize::from(entry.class)] += 1;
        assert!(entry.cpu_ns <= entry.sojourn_ns, "{context}: {entry:?}");
    });
    assert_eq!(journal.dropped(), 0, "{context}");
    let classes = observer.stats().classes;
    let answered: Vec<u64> = classes.iter().map(|class| class.answered).collect();
    assert_eq!(entries[..], answered, "{context}");
    for class in &classes {
        assert_eq!((class.accepted, class.pending()), (class.answered, 0));
    }
    assert!(observer.take_journal().is_none(), "it is given once");
}

#[test]
fn every_policy_answers_everything_once_with_a_dispatcher_thread() {
    for policy in live_policies() {
        all_answered(policy, 2, Layout::Dedicated, Idle::default());
    }
}

#[test]
fn every_policy_answers_everything_once_inline() {
    for policy in live_policies() {
        all_answered(policy, 2, Layout::Inline, Idle::default());
    }
}

#[test]
fn every_way_to_wait_answers_everything_once() {
    for policy in ["c-fcfs", "jbsq,k=4", "work-stealing"] {
        for layout in [Layout::Dedicated, Layout::Inline] {
            for idle in IDLES {
                all_answered(policy, 2, layout, idle);
            }
        }
    }
}

#[test]
fn one_worker_and_more_workers_than_cores_do_too() {
    for policy in ["c-fcfs", "darc", "work-stealing,steal=one", "d-fcfs"] {
        for layout in [Layout::Dedicated, Layout::Inline] {
            all_answered(policy, 1, layout, Idle::default());
            all_answered(policy, 5, layout, Idle::default());
        }
    }
}

#[test]
fn the_number_of_workers_changes_while_running() {
    for layout in [Layout::Dedicated, Layout::Inline] {
        for policy in ["c-fcfs", "darc,window=200", "jbsq,k=3"] {
            let (datapath, control) = replay(1, REQUESTS, 1_000, [500, 3_000]);
            let server = builder(policy, 3)
                .layout(layout)
                .service(Spin::default())
                .datapath(datapath)
                .start()
                .unwrap();
            control.start(headway_machine::Clock::global().now_ns());
            for workers in [1, 2, 3, 1, 3] {
                server.set_workers(workers).unwrap();
                std::thread::sleep(Duration::from_millis(1));
            }
            assert!(
                server
                    .set_workers(4)
                    .unwrap_err()
                    .to_string()
                    .contains("1 to 3")
            );
            assert!(server.set_workers(0).is_err());
            play(&control);
            let stats = server.shutdown(FOREVER).unwrap();
            assert_eq!(
                stats.answered,
                u64::from(REQUESTS),
                "{policy} {layout:?} {stats:?}"
            );
        }
    }
}

#[test]
fn darc_revises_and_shows_its_plan() {
    let (datapath, control) = replay(1, REQUESTS, 1_000, [500, 5_000]);
    let server = builder("darc,window=500", 2)
        .service(Spin::default())
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    assert!(stats.plan_revisions > 0, "{stats:?}");
    assert!(!stats.plan.unwrap().groups.is_empty());
}

/// A buffer per worker is the least: every policy gets along with it, and answers or sheds what comes.
#[test]
fn every_policy_gets_along_with_one_buffer_per_worker() {
    for policy in live_policies() {
        let queues = if is_steered(policy) { 2 } else { 1 };
        let (datapath, control) = replay(queues, 400, 1_000, [500, 3_000]);
        let server = builder(policy, 2)
            .slots(2)
            .service(Spin::default())
            .datapath(datapath)
            .start()
            .unwrap();
        play(&control);
        let stats = server.shutdown(FOREVER).unwrap();
        assert_eq!(stats.answered + stats.shed, 400, "{policy}: {stats:?}");
    }
}

/// Why a server with two workers does not start when it is built like this.
fn refused(change: impl Fn(Builder) -> Builder) -> String {
    let (datapath, _control) = replay(1, 1, 0, [0, 0]);
    let started = change(builder("c-fcfs", 2))
        .service(Spin::default())
        .datapath(datapath)
        .start();
    started.map(drop).unwrap_err().to_string()
}

#[test]
fn every_number_is_checked_and_the_error_says_what_to_choose() {
    let hint = |mean_ns, share| {
        vec![DeclaredClass {
            name: "odd".into(),
            hint: ClassHint::new(mean_ns, share),
        }]
    };
    for (message, remedy) in [
        (
            refused(|b| b.slots(0)),
            "slots is 0: choose 2, one buffer per worker",
        ),
        (
            refused(|b| b.slots(1)),
            "slots is 1: choose 2, one buffer per worker",
        ),
        (
            refused(|b| b.slots(usize::MAX)),
            "to 262144, or leave it out",
        ),
        (
            refused(|b| b.keep_stalls(usize::MAX)),
            "choose 0 to 16777216",
        ),
        (
            refused(|b| b.queue_limit(0)),
            "queue_limit is 0: choose at least 1",
        ),
        (
            refused(|b| b.stack_bytes(usize::MAX - 5_000)),
            "choose 0 to 1073741824",
        ),
        (refused(|b| b.workers(0)), "1 to 256 workers, not 0"),
        (
            refused(|b| b.workers(usize::MAX)),
            "choose at most one per core",
        ),
        (
            refused(|b| b.class("none", Duration::ZERO)),
            "class none has a service time of 0",
        ),
        (
            refused(|b| b.classes(hint(f64::NAN, 0.5))),
            "class odd has a service time of NaN",
        ),
        (
            refused(|b| b.classes(hint(-1.0, 0.5))),
            "0 (unknown) or more",
        ),
        (refused(|b| b.classes(hint(1.0, 7.0))), "a share of 7"),
    ] {
        assert!(message.contains(remedy), "{message}");
    }
}

#[test]
fn the_largest_numbers_start() {
    let (datapath, control) = replay(1, 2, 0, [0, 0]);
    let server = builder("concord", 1)
        .queue_limit(usize::MAX)
        .slots(64)
        .stack_bytes(0)
        .class("eternal", Duration::MAX)
        .service(Spin::default())
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    assert_eq!(server.shutdown(FOREVER).unwrap().answered, 2);
}

#[test]
fn a_full_queue_sheds_its_own_class_only() {
    // All arrive at once: the long class's queue overflows, the short one's (served first) need not hold much.
    let (datapath, control) = replay(1, 2_000, 0, [0, 2_000]);
    let server = builder("fixed-priority", 1)
        .queue_limit(40)
        .service(Spin::default())
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    assert!(stats.classes[1].shed > 0, "{stats:?}");
    assert_eq!(stats.answered + stats.shed, 2_000);
    let completions = control.take_completions();
    assert_eq!(completions.len(), 2_000);
    for class in 0..2u8 {
        let shed = completions
            .iter()
            .filter(|done| done.class == class && done.shed)
            .count();
        assert_eq!(shed as u64, stats.classes[usize::from(class)].shed);
    }
    assert!(completions.iter().any(|done| done.class == 1 && !done.shed));
}

/// One worker is kept busy; the other has answered its own and refuses what still comes, instead of leaving it unread.
#[test]
fn a_steered_worker_refuses_while_another_still_answers() {
    for policy in ["d-fcfs", "work-stealing"] {
        for idle in IDLES {
            late_requests_are_refused(policy, idle);
        }
    }
}

fn late_requests_are_refused(policy: &str, idle: Idle) {
    let gate = Arc::new(AtomicBool::new(false));
    // The first request is the long one; then each queue gets one every millisecond, for longer than anybody waits.
    let late =
        |queue: u32| (1..60_000).map(move |i| arrival(2 * i + queue, u64::from(i) * 1_000_000, 0));
    let first = std::iter::once(arrival(0, 0, 1));
    let (datapath, control) =
        Replay::new(vec![first.chain(late(0)).collect(), late(1).collect()]).unwrap();
    let server = builder(policy, 2)
        .idle(idle)
        .service(gated(&gate))
        .datapath(datapath)
        .start()
        .unwrap();
    control.start(headway_machine::Clock::global().now_ns());
    wait_until("it is in", || server.stats().received > 0);
    server.stopper().request_stop();
    wait_until("some are refused", || server.stats().refused_draining > 2);
    gate.store(true, Ordering::Release);
    let stats = server.shutdown(FOREVER).unwrap();
    let completions = control.take_completions();
    let refused = completions.iter().filter(|done| done.shed).count() as u64;
    assert_eq!(refused, stats.refused_draining, "{policy} {idle:?}");
    assert_eq!(
        completions.len() as u64,
        stats.received,
        "{policy} {idle:?}"
    );
    assert_eq!(
        stats.answered + refused,
        stats.received,
        "{policy} {idle:?}"
    );
    assert!(completions.iter().any(|done| done.class == 1 && !done.shed));
}

fn arrival(index: u32, at_ns: u64, class: u8) -> ReplayArrival {
    ReplayArrival {
        at_ns,
        service_ns: 0,
        index,
        class,
    }
}

#[test]
fn sharing_one_queue_is_refused_for_a_steered_policy() {
    let (datapath, _control) = replay(1, 10, 0, [0, 0]);
    let started = builder("d-fcfs", 2)
        .service(Spin::default())
        .datapath(datapath)
        .start();
    let error = started.map(drop).unwrap_err().to_string();
    assert!(error.contains("2 receive queues"), "{error}");
}
