//! Workers whose program's poll panics: they sleep from then on, and no wake is lost on the way.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shuttle::thread;

use super::{
    CLASSES, ModelCounts, ModelParts, accepted_of, assert_over, check, join_all, started_with,
    submit,
};
use crate::idle_wait::IdleWait;
use crate::poller::Poller;

/// Panics at this call, without the hook that would report it.
fn panics_at(call: usize) -> Poller {
    let calls = AtomicUsize::new(0);
    Poller::new(move || {
        if calls.fetch_add(1, Ordering::Relaxed) + 1 == call {
            resume_unwind(Box::new("as the model wants it"));
        }
    })
}

fn polling(call: usize) -> ModelParts {
    ModelParts {
        poller: Some(panics_at(call)),
        ..ModelParts::default()
    }
}

/// A thread that waits, one that rouses it, and a poll that panics in either of the first and a third, nearly every interleaving of them.
#[test]
fn a_thread_is_roused_while_a_poll_panics() {
    const SCHEDULES: usize = 20_000;
    let model = |call| {
        let poller = panics_at(call);
        let elsewhere = poller.clone();
        let panicking = thread::spawn(move || elsewhere.poll());
        let idle = IdleWait::of_current(Some(poller));
        let handle = idle.handle();
        let rousing = thread::spawn(move || handle.rouse());
        idle.wait();
        panicking.join().unwrap();
        rousing.join().unwrap();
    };
    for call in 1..=2 {
        shuttle::check_random(move || model(call), SCHEDULES);
        shuttle::check_pct(move || model(call), SCHEDULES, 3);
    }
}

/// The poll panics in the middle of submissions: each result comes, and the pool ends.
#[test]
fn jobs_end_whenever_the_poll_panics() {
    const SUBMITTERS: usize = 2;
    for call in [1, 4] {
        check(move |policy, layout| {
            let shared = started_with(policy, layout, polling(call));
            let counts = Arc::<ModelCounts>::default();
            let submitters = [0, 1].map(|at: usize| {
                let (shared, counts) = (Arc::clone(&shared), Arc::clone(&counts));
                thread::spawn(move || {
                    submit(&shared, CLASSES[at], &counts).wait().unwrap();
                    submit(&shared, CLASSES[1 - at], &counts).wait().unwrap();
                })
            });
            for submitter in submitters {
                submitter.join().unwrap();
            }
            shared.shutdown(Duration::from_secs(60)).unwrap();
            assert_over(&shared, &counts, 2 * SUBMITTERS);
        });
    }
}

/// The poll panics while the pool ends: no thread sleeps on.
#[test]
fn a_pool_ends_whenever_the_poll_panics() {
    for call in [1, 4] {
        check(move |policy, layout| {
            let shared = started_with(policy, layout, polling(call));
            let counts = Arc::<ModelCounts>::default();
            let (own, its) = (Arc::clone(&shared), Arc::clone(&counts));
            let submitter = thread::spawn(move || {
                accepted_of([0, 1].map(|class| submit(&own, CLASSES[class], &its)))
            });
            shared.end();
            let accepted = submitter.join().unwrap();
            join_all(&shared);
            assert_over(&shared, &counts, accepted);
        });
    }
}
