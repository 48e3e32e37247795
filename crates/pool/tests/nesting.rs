//! Jobs that wait for jobs.

use headway_pool::{ClassOptions, JobFuture, JoinError, Pool, blocking};
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::common::{Gate, occupy, pool, until};

fn fibonacci(pool: &Pool, n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let handle = pool.clone();
    let left = pool.submit("job", move || fibonacci(&handle, n - 1));
    let right = fibonacci(pool, n - 2);
    left.wait().unwrap() + right
}

#[test]
fn jobs_that_wait_for_their_children_do_not_exhaust_the_workers() {
    for workers in [1, 2, 3] {
        let pool = pool(workers);
        let handle = pool.clone();
        assert_eq!(
            pool.run("job", move || fibonacci(&handle, 12)).unwrap(),
            144
        );
        assert!(pool.stats().total().add_up());
    }
}

#[test]
fn a_child_beyond_its_class_share_runs_in_its_parent() {
    let builder = Pool::builder().workers(2);
    let pool = builder
        .class("job", ClassOptions::new().workers_at_most(1))
        .build()
        .unwrap();
    let handle = pool.clone();
    let nested = pool.run("job", move || handle.submit("job", || 7).wait().unwrap());
    assert_eq!(nested.unwrap(), 7);
}

#[test]
fn a_closure_that_polls_a_child_runs_it() {
    let pool = pool(1);
    let handle = pool.clone();
    let polled = pool.run("job", move || {
        let mut child = std::pin::pin!(handle.submit("job", || 7));
        let mut context = Context::from_waker(Waker::noop());
        child.as_mut().poll(&mut context).map(Result::unwrap)
    });
    assert_eq!(polled.unwrap(), Poll::Ready(7));
}

#[test]
fn a_child_that_panics_does_not_harm_its_parent() {
    let pool = pool(1);
    let handle = pool.clone();
    let child = pool.run("job", move || {
        handle.submit("job", || panic!("child")).wait()
    });
    assert!(matches!(child.unwrap(), Err::<(), _>(JoinError::Panic(_))));
}

#[test]
fn a_scope_ends_with_all_its_jobs() {
    let pool = pool(2);
    let (count, local) = (AtomicUsize::new(0), [1, 2, 3]);
    let value = pool.scope(|scope| {
        for item in &local {
            let count = &count;
            scope
                .submit("job", move || {
                    scope
                        .submit("job", || count.fetch_add(10, Ordering::SeqCst))
                        .unwrap();
                    count.fetch_add(*item, Ordering::SeqCst);
                })
                .unwrap();
        }
        "value"
    });
    assert_eq!(value.unwrap(), "value");
    assert_eq!(count.into_inner(), 36);
}

#[test]
fn a_scope_within_a_job_of_the_only_worker_ends() {
    let pool = pool(1);
    let handle = pool.clone();
    let sum = pool.run("job", move || {
        let sum = AtomicUsize::new(0);
        let scoped = handle.scope(|scope| {
            for item in 1..=4 {
                let sum = &sum;
                scope
                    .submit("job", move || sum.fetch_add(item, Ordering::SeqCst))
                    .unwrap();
            }
        });
        scoped.unwrap();
        sum.into_inner()
    });
    assert_eq!(sum.unwrap(), 10);
}

#[test]
fn a_scope_waits_although_its_body_or_a_job_panics() {
    let pool = pool(1);
    let gate = occupy(&pool, 1);
    let count = AtomicUsize::new(0);
    let body = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = pool.scope(|scope| {
            scope
                .submit("job", || count.fetch_add(1, Ordering::SeqCst))
                .unwrap();
            gate.open();
            panic!("in the body");
        });
    }));
    assert!(body.is_err());
    assert_eq!(count.load(Ordering::SeqCst), 1);
    let failed = pool.scope(|scope| {
        scope.submit("job", || panic!("in a job")).unwrap();
        scope
            .submit("job", || count.fetch_add(1, Ordering::SeqCst))
            .unwrap();
    });
    assert!(matches!(failed, Err(JoinError::Panic(_))));
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[test]
fn a_blocking_job_leaves_its_worker_to_others() {
    let builder = Pool::builder().workers(1).blocking_threads(2);
    let pool = builder.class("job", ClassOptions::new()).build().unwrap();
    let gate = Gate::default();
    let blocked: Vec<_> = (0..2)
        .map(|at| {
            let gate = gate.clone();
            pool.submit("job", move || {
                blocking(|| gate.wait());
                at
            })
        })
        .collect();
    until("both block", || pool.stats().blocked == 2);
    assert_eq!(
        pool.run("job", || 7).unwrap(),
        7,
        "the worker is another thread's"
    );
    assert_eq!(pool.stats().threads, 3);
    gate.open();
    let ended: Vec<usize> = blocked.into_iter().map(|job| job.wait().unwrap()).collect();
    assert_eq!(ended, [0, 1]);
    until("the threads in excess are gone", || {
        pool.stats().threads == 1
    });
    assert!(pool.stats().total().add_up());
}

#[test]
fn one_more_blocking_job_than_allowed_keeps_its_worker() {
    let builder = Pool::builder().workers(1).blocking_threads(0);
    let pool = builder.class("job", ClassOptions::new()).build().unwrap();
    assert_eq!(pool.run("job", || blocking(|| 7)).unwrap(), 7);
    assert_eq!(pool.stats().blocked_in_place, 1);
    assert_eq!(blocking(|| 8), 8, "outside of jobs it is a call");
}

/// Nothing waited as the job blocked first, so that no thread stood in.
#[test]
fn a_job_that_blocks_again_leaves_its_worker_still() {
    let pool = Pool::builder().workers(1).build().unwrap();
    let (sender, receiver) = mpsc::channel();
    let (goes_on, went_on) = mpsc::channel();
    let waits = pool.submit("default", move || {
        blocking(|| ());
        goes_on.send(()).unwrap();
        blocking(|| receiver.recv_timeout(Duration::from_secs(60)))
    });
    went_on.recv().unwrap();
    let sends = pool.submit("default", move || sender.send(7).unwrap());
    assert_eq!(waits.wait().unwrap(), Ok(7));
    sends.wait().unwrap();
    until("the worker is one thread's", || pool.stats().threads == 1);
    assert_eq!(pool.stats().blocked, 0);
}

/// Policies that place a job at a worker as it is submitted, and take none back.
const PLACES_BEFOREHAND: [&str; 2] = ["d-fcfs", "tiny-quanta"];

#[test]
fn what_waits_behind_a_job_that_blocks_goes_on() {
    for policy in PLACES_BEFOREHAND {
        let pool = Pool::builder().policy(policy).workers(1).build().unwrap();
        let (sender, receiver) = mpsc::channel();
        let waits = pool.submit("default", move || blocking(|| receiver.recv()).unwrap());
        // Behind the other, at the only worker.
        let sends = pool.submit("default", move || sender.send(7).unwrap());
        assert_eq!(waits.wait().unwrap(), 7, "{policy}");
        sends.wait().unwrap();
    }
}

#[test]
fn a_job_runs_the_one_behind_it_if_it_waits_for_its_future() {
    for policy in PLACES_BEFOREHAND {
        let pool = Pool::builder().policy(policy).workers(1).build().unwrap();
        let (sender, receiver) = mpsc::channel::<JobFuture<u32>>();
        let gate = Gate::default();
        let opens = gate.clone();
        let waits = pool.submit("default", move || {
            gate.wait();
            receiver.recv().unwrap().wait().unwrap()
        });
        sender.send(pool.submit("default", || 7)).unwrap();
        opens.open();
        assert_eq!(waits.wait().unwrap(), 7, "{policy}");
        assert!(pool.stats().total().add_up());
    }
}
