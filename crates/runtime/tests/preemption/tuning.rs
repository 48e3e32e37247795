//! Parameters that change while a server serves: the new rules hold, and nothing is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use headway_machine::Clock;
use headway_policy::Resume;
use headway_policy::server::change::ParamChange;
use headway_policy::spec::SpecError;
use headway_runtime::{Builder, Layout, Pin, Server, Spin, Stats, Tuner};

use super::alone;
use super::common::{FOREVER, assert_all_answered, play, replay, wait_until};

const REQUESTS: u32 = 400;
const LONG_NS: u64 = 200_000;
const GAP_NS: u64 = 40_000;

fn builder(policy: &str, layout: Layout) -> Builder {
    let builder = Server::builder()
        .policy(policy)
        .layout(layout)
        .class("short", Duration::from_nanos(500))
        .class("long", Duration::from_nanos(LONG_NS))
        .workers(2)
        .pin(Pin::Off);
    builder.resume(Resume::Anywhere)
}

fn set(tuner: &Tuner, key: &str, value: &str) -> Result<Vec<ParamChange>, SpecError> {
    tuner.set(&[(key.to_owned(), value.to_owned())])
}

/// Runs a replay and sets `q` when half of it is answered: how often requests were interrupted until then and in all.
fn tuned_midway(policy: &str, layout: Layout, queues: usize, q: &str) -> (u64, Stats) {
    let (datapath, control) = replay(queues, REQUESTS, GAP_NS, [500, LONG_NS]);
    let server = builder(policy, layout)
        .service(Spin::default())
        .datapath(datapath)
        .start()
        .unwrap();
    control.start(Clock::global().now_ns());
    wait_until("half of it is answered", || {
        server.stats().answered >= u64::from(REQUESTS) / 2
    });
    let before = server.stats().preemptions;
    let tuner = server.tuner();
    assert_eq!(set(&tuner, "q", q).unwrap().len(), 1);
    assert_eq!(tuner.in_force().changes, 1);
    wait_until("all are taken", || control.taken() == control.total());
    let stats = server.shutdown(FOREVER).unwrap();
    let context = format!("{policy}, {layout:?}, then q={q}");
    assert_all_answered(&stats, &control, LONG_NS, &context);
    (before, stats)
}

/// Every layout: dispatcher on a thread of its own, workers in turn, no dispatcher; monitors and local policies.
const POLICIES: [(&str, Layout, usize); 7] = [
    ("shinjuku-sq", Layout::Dedicated, 1),
    ("shinjuku-sq", Layout::Inline, 1),
    ("concord", Layout::Dedicated, 1),
    ("tiny-quanta", Layout::Dedicated, 1),
    ("tiny-quanta", Layout::Inline, 1),
    ("mlfq", Layout::Inline, 1),
    ("synergy,parts=ws+wq+cp", Layout::Auto, 2),
];

/// A quantum longer than any request interrupts nobody; a short one does.
#[test]
fn a_shorter_quantum_interrupts_what_a_longer_one_did_not() {
    let _alone = alone();
    for (policy, layout, queues) in POLICIES {
        let begun = Instant::now();
        loop {
            let (before, stats) = tuned_midway(&format!("{policy},q=100s"), layout, queues, "5us");
            assert_eq!(before, 0, "{policy}, {layout:?}");
            // Where the machine gives dispatcher and workers no time together, nobody is interrupted.
            if stats.preemptions > 0 {
                break;
            }
            assert!(begun.elapsed() < FOREVER, "{policy}, {layout:?}: {stats:?}");
        }
    }
}

/// A change before the first request holds for all of them.
#[test]
fn a_longer_quantum_interrupts_nobody_any_more() {
    let _alone = alone();
    for (policy, layout, queues) in POLICIES {
        let (datapath, control) = replay(queues, REQUESTS, GAP_NS, [500, LONG_NS]);
        let server = builder(&format!("{policy},q=5us"), layout)
            .service(Spin::default())
            .datapath(datapath)
            .start()
            .unwrap();
        let tuner = server.tuner();
        set(&tuner, "q", "100s").unwrap();
        play(&control);
        let stats = server.shutdown(FOREVER).unwrap();
        assert_all_answered(&stats, &control, LONG_NS, policy);
        assert_eq!(stats.preemptions, 0, "{policy}, {layout:?}: {stats:?}");
    }
}

/// Hundreds of changes while requests come and go: each request is answered once, in full.
#[test]
fn nothing_is_lost_however_often_the_rules_change() {
    let _alone = alone();
    for (policy, layout, queues) in POLICIES {
        let (datapath, control) = replay(queues, REQUESTS, GAP_NS, [500, LONG_NS]);
        let server = builder(policy, layout)
            .service(Spin::default())
            .datapath(datapath)
            .start()
            .unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let (tuner, ending) = (server.tuner(), Arc::clone(&ends));
        let tuning = std::thread::spawn(move || {
            while !ending.load(Ordering::Relaxed) {
                for q in ["7us", "50us", "1ms"] {
                    assert_eq!(set(&tuner, "q", q).unwrap().len(), 1);
                }
                std::thread::sleep(Duration::from_micros(100));
            }
            tuner.in_force().changes
        });
        wait_until("the rules change", || server.tuner().in_force().changes > 0);
        play(&control);
        ends.store(true, Ordering::Relaxed);
        assert!(tuning.join().unwrap() >= 3);
        let stats = server.shutdown(FOREVER).unwrap();
        assert_all_answered(&stats, &control, LONG_NS, policy);
    }
}

/// Whether DARC reserves by two groups, and does again after it was told to reserve by one. By the means, shorts that the machine stopped are as long as longs.
fn two_groups_again(layout: Layout) -> bool {
    let (datapath, control) = replay(1, REQUESTS, GAP_NS, [500, LONG_NS]);
    let server = builder("darc,window=50,spillway=1", layout)
        .service(Spin::default())
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let groups = || server.stats().plan.map(|plan| plan.groups.len());
    let soon_two = || {
        let begun = Instant::now();
        while groups() != Some(2) && begun.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(1));
        }
        groups() == Some(2)
    };
    let mut again = soon_two();
    if again {
        set(&server.tuner(), "delta", "100000").unwrap();
        wait_until("all classes are alike", || groups() == Some(1));
        set(&server.tuner(), "delta", "2").unwrap();
        again = soon_two();
    }
    let stats = server.shutdown(FOREVER).unwrap();
    assert_all_answered(&stats, &control, LONG_NS, "darc");
    again
}

/// DARC reserves anew by another `delta`, without another window.
#[test]
fn a_plan_follows_the_rules_at_once() {
    let _alone = alone();
    for layout in [Layout::Dedicated, Layout::Inline] {
        wait_until("it reserves by the means that it knows", || {
            two_groups_again(layout)
        });
    }
}

#[test]
fn what_is_refused_changes_nothing() {
    let _alone = alone();
    let (datapath, _control) = replay(1, 2, 1_000, [0, 0]);
    let server = builder("concord,q=7us", Layout::Dedicated)
        .service(Spin::default())
        .datapath(datapath)
        .start()
        .unwrap();
    let tuner = server.tuner();
    let wanted = [("q", "9us"), ("k", "3")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert!(matches!(
        tuner.set(&wanted),
        Err(SpecError::SetAtStart { key: "k", .. })
    ));
    assert!(matches!(
        set(&tuner, "q", "0"),
        Err(SpecError::BadValue { key: "q", .. })
    ));
    assert!(set(&tuner, "quantum", "5us").is_err());
    assert!(
        set(&tuner, "q", "7us").unwrap().is_empty(),
        "it is so already"
    );
    let in_force = tuner.in_force();
    assert_eq!(
        (in_force.changes, in_force.spec.to_string()),
        (0, "concord,q=7us".to_owned())
    );
}

/// Own, stolen and resumed requests add up to the turns that workers ran, and renewals are counted by worker.
#[test]
fn what_workers_did_adds_up() {
    let _alone = alone();
    for (policy, layout, queues) in POLICIES {
        let (datapath, control) = replay(queues, REQUESTS, GAP_NS, [500, LONG_NS]);
        let server = builder(&format!("{policy},q=5us"), layout)
            .service(Spin::default())
            .datapath(datapath)
            .start()
            .unwrap();
        play(&control);
        let stats = server.shutdown(FOREVER).unwrap();
        let sum = |count: fn(&headway_runtime::WorkerStats) -> u64| -> u64 {
            stats
                .workers
                .iter()
                .chain(&stats.dispatchers)
                .map(count)
                .sum()
        };
        let context = format!("{policy}, {layout:?}: {stats:?}");
        assert_eq!(stats.workers.len(), 2, "{context}");
        assert_eq!(sum(|worker| worker.answered), stats.answered, "{context}");
        assert_eq!(
            sum(|worker| worker.preemptions),
            stats.preemptions,
            "{context}"
        );
        assert_eq!(sum(|worker| worker.stolen), stats.stolen, "{context}");
        let begun = sum(|worker| worker.own + worker.stolen);
        assert!(begun.abs_diff(stats.answered) <= stats.stolen, "{context}");
        let renewals: u64 = stats.classes.iter().map(|class| class.renewals).sum();
        assert_eq!(sum(|worker| worker.renewals), renewals, "{context}");
    }
}
