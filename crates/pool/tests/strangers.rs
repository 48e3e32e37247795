//! What jobs bring along: destructors, wakers and panics that the pool did not write.

use headway_pool::{
    ClassOptions, JobFuture, JoinError, Pool, ShedReason, blocking, cancelled, checkpoint,
};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use crate::common::{Gate, occupy, pool, until};

/// A job that has begun and runs until the gate opens.
fn running(pool: &Pool) -> (JobFuture<()>, Gate) {
    let (gate, waits) = (Gate::default(), Gate::default());
    let opened = gate.clone();
    let begun = waits.clone();
    let job = pool.submit("job", move || {
        begun.open();
        opened.wait();
    });
    waits.wait();
    (job, gate)
}

/// Panics where it is dropped, also as the payload of a panic.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

struct WakesWithABomb;

impl Wake for WakesWithABomb {
    fn wake(self: Arc<Self>) {
        panic_any(Bomb);
    }
}

#[test]
fn a_scope_outlives_its_jobs_whatever_they_panic_with() {
    let pool = pool(2);
    let (begun, gate, done) = (
        AtomicBool::new(false),
        Gate::default(),
        AtomicBool::new(false),
    );
    let opens = gate.clone();
    let left = catch_unwind(AssertUnwindSafe(|| {
        pool.scope(|scope| {
            scope
                .submit("job", || {
                    begun.store(true, SeqCst);
                    gate.wait();
                    done.store(true, SeqCst);
                })
                .unwrap();
            until("it runs", || begun.load(SeqCst));
            for _ in 0..2 {
                scope.submit("job", || panic_any(Bomb)).unwrap();
            }
            until("both have panicked", || pool.stats().total().panicked == 2);
            std::thread::spawn(move || opens.open());
        })
    }));
    assert!(done.load(SeqCst), "the scope is over while its job runs");
    let error = left.expect("no panic reaches the scope").unwrap_err();
    assert!(matches!(error, JoinError::Panic(_)));
    std::mem::forget(error);
}

/// The only worker runs a closure that waits for a future, which sleeps until another job of the pool has run.
#[test]
fn a_future_that_needs_a_worker_is_waited_for_beside_the_workers() {
    for policy in ["darc-stable", "mlfq"] {
        for options in [ClassOptions::new(), ClassOptions::new().uninterrupted()] {
            let builder = Pool::builder().workers(1).policy(policy);
            let pool = builder.class("job", options).build().unwrap();
            let (outer, inner) = (pool.clone(), pool.clone());
            let waits = pool.submit("job", move || {
                let spawned = outer.spawn("job", async move { inner.submit("job", || 5).await });
                spawned.wait().unwrap().unwrap()
            });
            assert_eq!(waits.wait().unwrap(), 5, "{policy}");
        }
    }
}

struct StopsWhereDropped;

impl Drop for StopsWhereDropped {
    fn drop(&mut self) {
        let _ = checkpoint();
    }
}

#[test]
fn a_checkpoint_in_a_destructor_stops_nothing() {
    let pool = pool(1);
    let (begun, has_begun) = channel();
    let job = pool.submit_cancellable("job", move || {
        let _guard = StopsWhereDropped;
        begun.send(()).unwrap();
        loop {
            checkpoint().unwrap();
        }
    });
    has_begun.recv().unwrap();
    drop(job);
    pool.wait_idle().unwrap();
    assert_eq!(pool.stats().total().cancelled, 1);
}

struct AtEnd(Pool);

impl Drop for AtEnd {
    fn drop(&mut self) {
        assert_eq!(self.0.run("job", || 5).unwrap(), 5);
        assert!(checkpoint().is_err() && !cancelled());
        blocking(|| ());
    }
}

/// The pool's own variables of the thread are gone before that of this test, or after it, by the order of their first use.
#[test]
fn the_destructor_of_a_threads_variable_may_use_the_pool() {
    thread_local!(static LAST: RefCell<Option<AtEnd>> = const { RefCell::new(None) });
    for pool_first in [false, true] {
        let pool = pool(1);
        let used = std::thread::spawn(move || {
            let use_it = || pool.run("job", || blocking(|| ())).unwrap();
            if pool_first {
                use_it();
                blocking(|| ());
                assert!(!cancelled() && checkpoint().is_err());
            }
            LAST.set(Some(AtEnd(pool.clone())));
            use_it();
        });
        used.join().unwrap();
    }
}

#[test]
fn a_waker_that_panics_harms_nobody_else() {
    let pool = pool(1);
    let (running, gate) = running(&pool);
    let mut first = pool.submit("job", || ());
    let second = pool.submit("job", || ());
    let waker = Waker::from(Arc::new(WakesWithABomb));
    let polled = Pin::new(&mut first).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    let told = std::thread::spawn(move || second.wait());
    assert!(pool.shutdown(Duration::ZERO).is_err(), "one runs still");
    assert!(matches!(told.join().unwrap(), Err(JoinError::Abandoned)));
    gate.open();
    running.wait().unwrap();
}

#[test]
fn a_worker_outlives_a_waker_that_panics() {
    let pool = pool(1);
    let (mut job, gate) = running(&pool);
    let waker = Waker::from(Arc::new(WakesWithABomb));
    assert!(
        Pin::new(&mut job)
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    gate.open();
    assert_eq!(pool.run("job", || 5).unwrap(), 5);
}

/// As a channel's: its end wakes who receives.
struct Sender(Arc<Mutex<(bool, Option<Waker>)>>);

impl Drop for Sender {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.0.lock().unwrap();
            state.0 = true;
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

struct Task(#[expect(dead_code, reason = "dropped with the task")] Sender);

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

/// The first waker's task holds what the job itself waits for.
#[test]
fn a_waker_that_is_replaced_may_wake_the_job_itself() {
    let pool = pool(1);
    let state = Arc::new(Mutex::new((false, None::<Waker>)));
    let seen = Arc::clone(&state);
    let mut job = pool.spawn(
        "job",
        poll_fn(move |context| {
            let mut seen = seen.lock().unwrap();
            if seen.0 {
                return Poll::Ready(5);
            }
            seen.1 = Some(context.waker().clone());
            Poll::Pending
        }),
    );
    until("it sleeps", || pool.stats().total().asleep == 1);
    let task = Waker::from(Arc::new(Task(Sender(state))));
    assert!(
        Pin::new(&mut job)
            .poll(&mut Context::from_waker(&task))
            .is_pending()
    );
    drop(task);
    assert_eq!(job.wait().unwrap(), 5);
}

#[test]
fn a_limit_that_no_clock_can_tell_is_none() {
    let pool = pool(1);
    pool.submit("job", || ()).detach();
    pool.shutdown(Duration::MAX).unwrap();
}

/// A pool with one worker, which is occupied until the gate opens, and a class whose jobs are too late at once.
fn with_late_class(capacity: usize) -> (Pool, Gate) {
    let late = ClassOptions::new().begin_within(Duration::from_millis(1));
    let builder = Pool::builder().workers(1).capacity(capacity);
    let builder = builder.class("late", late);
    let pool = builder.class("job", ClassOptions::new()).build().unwrap();
    let gate = occupy(&pool, 1);
    (pool, gate)
}

#[test]
fn what_is_too_late_to_begin_takes_no_room_from_others() {
    let (pool, gate) = with_late_class(2);
    let late: Vec<_> = (0..2).map(|_| pool.submit("late", || ())).collect();
    std::thread::sleep(Duration::from_millis(5));
    let accepted = pool.submit("job", || 5);
    assert!(accepted.refusal().is_none());
    for job in late {
        let told = job.wait();
        assert!(matches!(told, Err(JoinError::Shed(ShedReason::TooLate))));
    }
    gate.open();
    assert_eq!(accepted.wait().unwrap(), 5);
}

#[test]
fn a_future_that_has_begun_is_never_too_late_to_begin() {
    let slow = ClassOptions::new().begin_within(Duration::from_millis(20));
    let builder = Pool::builder().workers(1).class("slow", slow);
    let pool = builder.class("job", ClassOptions::new()).build().unwrap();
    let (polls, waker) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(None)));
    let spawn = || {
        let (counts, keeps) = (Arc::clone(&polls), Arc::clone(&waker));
        let polled = move |context: &mut Context<'_>| {
            if counts.fetch_add(1, SeqCst) == 1 {
                return Poll::Ready(5);
            }
            *keeps.lock().unwrap() = Some(context.waker().clone());
            Poll::Pending
        };
        pool.spawn("slow", poll_fn(polled))
    };
    // A busy machine may let one begin too late.
    let mut future = spawn();
    let mut late = 0;
    until("one begins in time, and sleeps", || {
        if pool.stats().total().shed > late {
            late += 1;
            future = spawn();
        }
        pool.stats().total().asleep == 1
    });
    let (occupied, gate) = running(&pool);
    waker.lock().unwrap().take().map(Waker::wake).unwrap();
    std::thread::sleep(Duration::from_millis(30));
    assert_eq!(polls.load(SeqCst), 1, "it waits for the worker");
    gate.open();
    assert_eq!(future.wait().unwrap(), 5);
    occupied.wait().unwrap();
}
