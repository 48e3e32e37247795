//! A result that nobody wants any more.

use headway_pool::{JoinError, cancelled, checkpoint};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Gate, occupy, pool, until};

#[test]
fn what_waits_leaves_at_once() {
    for policy in [
        "darc-stable",
        "c-fcfs",
        "d-fcfs",
        "tardis",
        "synergy",
        "edf",
        "mlfq",
    ] {
        let builder = headway_pool::Pool::builder().policy(policy).workers(1);
        let pool = builder
            .class("job", headway_pool::ClassOptions::new())
            .build()
            .unwrap();
        let gate = occupy(&pool, 1);
        let held = Arc::new(());
        let jobs: Vec<_> = (0..10)
            .map(|at| {
                let held = Arc::clone(&held);
                pool.submit("job", move || {
                    drop(held);
                    at
                })
            })
            .collect();
        let mut kept = Vec::new();
        for (at, job) in jobs.into_iter().enumerate() {
            if at % 3 == 0 {
                kept.push(job);
            }
        }
        assert_eq!(
            Arc::strong_count(&held),
            1 + kept.len(),
            "{policy}: closures are dropped"
        );
        let counts = pool.stats().total();
        assert_eq!((counts.cancelled, counts.waiting), (6, 4), "{policy}");
        gate.open();
        let ran: Vec<usize> = kept.into_iter().map(|job| job.wait().unwrap()).collect();
        assert_eq!(ran, [0, 3, 6, 9], "{policy}");
        pool.wait_idle().unwrap();
        assert_eq!(
            pool.run("job", || 1).unwrap(),
            1,
            "{policy}: no token is lost"
        );
        assert!(pool.stats().total().add_up());
    }
}

#[test]
fn submitting_and_cancelling_for_long_needs_no_more_room() {
    let builder = headway_pool::Pool::builder()
        .policy("c-fcfs")
        .workers(1)
        .capacity(4);
    let pool = builder
        .class("job", headway_pool::ClassOptions::new())
        .build()
        .unwrap();
    let gate = occupy(&pool, 1);
    let first = pool.submit("job", || 1);
    for _ in 0..1_000 {
        let job = pool
            .try_submit("job", || 2)
            .expect("cancelled jobs leave room");
        drop(job);
    }
    assert_eq!(pool.stats().total().cancelled, 1_000);
    gate.open();
    assert_eq!(first.wait().unwrap(), 1);
    assert_eq!(pool.run("job", || 3).unwrap(), 3);
}

#[test]
fn what_runs_is_told_and_keeps_its_place_until_it_ends() {
    let builder = headway_pool::Pool::builder().workers(2);
    let one = headway_pool::ClassOptions::new().workers_at_most(1);
    let pool = builder.class("job", one).build().unwrap();
    let (begun, saw, gate) = (
        Gate::default(),
        Arc::new(AtomicBool::new(false)),
        Gate::default(),
    );
    let job = {
        let (begun, saw, gate) = (begun.clone(), Arc::clone(&saw), gate.clone());
        pool.submit("job", move || {
            begun.open();
            until("it is told", cancelled);
            saw.store(true, Ordering::SeqCst);
            gate.wait();
        })
    };
    begun.wait();
    drop(job);
    until("the job saw it", || saw.load(Ordering::SeqCst));
    let next = pool.submit("job", || 7);
    let counts = pool.stats().total();
    assert_eq!(
        (counts.running, counts.waiting),
        (1, 1),
        "the place is the job's, not its future's"
    );
    gate.open();
    assert_eq!(next.wait().unwrap(), 7);
}

#[test]
fn a_cancellable_job_stops_at_a_checkpoint_and_others_do_not() {
    let pool = pool(1);
    let begun = Gate::default();
    let job = {
        let begun = begun.clone();
        pool.submit_cancellable("job", move || {
            begun.open();
            loop {
                checkpoint().unwrap();
                std::hint::spin_loop();
            }
        })
    };
    begun.wait();
    drop::<headway_pool::JobFuture<()>>(job);
    pool.wait_idle().unwrap();
    assert_eq!(pool.stats().total().cancelled, 1);

    let (begun, ended) = (Gate::default(), Arc::new(AtomicBool::new(false)));
    let job = {
        let (begun, ended) = (begun.clone(), Arc::clone(&ended));
        pool.submit("job", move || {
            begun.open();
            until("it is told", cancelled);
            checkpoint().unwrap();
            ended.store(true, Ordering::SeqCst);
        })
    };
    begun.wait();
    drop(job);
    pool.wait_idle().unwrap();
    assert!(ended.load(Ordering::SeqCst));
    assert_eq!(pool.stats().total().done, 1);
}

#[test]
fn a_job_that_was_let_go_runs() {
    let pool = pool(1);
    let gate = occupy(&pool, 1);
    let ran = Arc::new(AtomicBool::new(false));
    let job = {
        let ran = Arc::clone(&ran);
        pool.submit("job", move || ran.store(true, Ordering::SeqCst))
    };
    job.detach();
    gate.open();
    pool.wait_idle().unwrap();
    assert!(ran.load(Ordering::SeqCst));
}

#[test]
fn a_cancelled_job_of_a_pool_that_ends_is_counted_once() {
    let pool = pool(1);
    let gate = occupy(&pool, 1);
    let (kept, dropped) = (pool.submit("job", || ()), pool.submit("job", || ()));
    drop(dropped);
    let _ = pool.shutdown(std::time::Duration::ZERO);
    assert!(matches!(kept.wait(), Err(JoinError::Abandoned)));
    gate.open();
    let counts = pool.stats().total();
    assert_eq!((counts.cancelled, counts.abandoned), (1, 1));
    assert!(counts.add_up());
}
