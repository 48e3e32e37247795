//! Futures whose polls are slices, and futures of jobs in executors of others.

use headway_pool::{ClassOptions, JoinError, Pool};
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use crate::common::{Gate, pool, until};

/// Ready after so many polls, each of which wakes itself.
async fn turns(mut left: usize) {
    poll_fn(move |context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn a_future_is_polled_to_its_end() {
    let pool = pool(2);
    let spawned: Vec<_> = (0..100)
        .map(|at| {
            pool.spawn("job", async move {
                turns(at).await;
                at
            })
        })
        .collect();
    let sum: usize = spawned.into_iter().map(|job| job.wait().unwrap()).sum();
    assert_eq!(sum, 4950);
    let counts = pool.stats().total();
    assert_eq!((counts.done, counts.submitted), (100, 100));
}

#[test]
fn a_future_that_sleeps_takes_no_worker_and_is_woken_from_elsewhere() {
    let pool = pool(1);
    let waker: Arc<Mutex<Option<Waker>>> = Arc::default();
    let slot = Arc::clone(&waker);
    let polls = AtomicUsize::new(0);
    let sleeps = pool.spawn(
        "job",
        poll_fn(move |context| {
            *slot.lock().unwrap() = Some(context.waker().clone());
            if polls.fetch_add(1, Ordering::SeqCst) == 0 {
                Poll::Pending
            } else {
                Poll::Ready(7)
            }
        }),
    );
    until("it sleeps", || pool.stats().total().asleep == 1);
    assert_eq!(pool.run("job", || 1).unwrap(), 1);
    let woken = waker.lock().unwrap().take().unwrap();
    woken.wake_by_ref();
    assert_eq!(sleeps.wait().unwrap(), 7);
    woken.wake();
    assert!(pool.stats().total().add_up());
}

#[test]
fn futures_within_the_pool_await_its_jobs() {
    let pool = pool(1);
    let handle = pool.clone();
    let sum = pool.spawn("job", async move {
        let (left, right) = (handle.submit("job", || 3), handle.submit("job", || 4));
        left.await.unwrap() + right.await.unwrap()
    });
    assert_eq!(sum.wait().unwrap(), 7);
}

#[test]
fn a_closure_that_waits_for_a_future_polls_it() {
    let pool = pool(1);
    let handle = pool.clone();
    let waited = pool.run("job", move || {
        let (send, receive) = mpsc::channel::<Waker>();
        let mut is_first = true;
        let child = handle.spawn(
            "job",
            poll_fn(move |context| {
                if std::mem::take(&mut is_first) {
                    send.send(context.waker().clone()).unwrap();
                    return Poll::Pending;
                }
                Poll::Ready(7)
            }),
        );
        // The only worker waits here, and another thread wakes the child.
        let wakes = std::thread::spawn(move || receive.recv().unwrap().wake());
        let value = child.wait().unwrap();
        wakes.join().unwrap();
        value
    });
    assert_eq!(waited.unwrap(), 7);
}

#[test]
fn a_future_that_panics_or_is_dropped_has_one_end() {
    let pool = pool(1);
    let panics = pool.spawn("job", async { panic!("in a poll") });
    assert!(matches!(panics.wait(), Err::<(), _>(JoinError::Panic(_))));
    let held = Arc::new(());
    let inner = Arc::clone(&held);
    let sleeps = pool.spawn("job", async move {
        let _inner = inner;
        std::future::pending::<()>().await;
    });
    until("it sleeps", || pool.stats().total().asleep == 1);
    drop(sleeps);
    assert_eq!(
        Arc::strong_count(&held),
        1,
        "what sleeps is dropped at once"
    );
    let counts = pool.stats().total();
    assert_eq!((counts.panicked, counts.cancelled), (1, 1));
    assert!(counts.add_up());
}

#[test]
fn a_running_future_whose_handle_is_dropped_ends_at_its_next_await() {
    let pool = pool(1);
    let (begun, gate) = (Gate::default(), Gate::default());
    let job = {
        let (begun, gate) = (begun.clone(), gate.clone());
        pool.spawn("job", async move {
            begun.open();
            gate.wait();
            turns(1).await;
            unreachable!("nobody awaits it");
        })
    };
    begun.wait();
    drop::<headway_pool::JobFuture<()>>(job);
    gate.open();
    pool.wait_idle().unwrap();
    assert_eq!(pool.stats().total().cancelled, 1);
}

#[test]
fn what_sleeps_when_the_pool_ends_is_abandoned() {
    let builder = Pool::builder().workers(1);
    let pool = builder.class("job", ClassOptions::new()).build().unwrap();
    let sleeps = pool.spawn("job", std::future::pending::<()>());
    until("it sleeps", || pool.stats().total().asleep == 1);
    drop(pool);
    assert!(matches!(sleeps.wait(), Err(JoinError::Abandoned)));
}

/// A wake in the middle of a poll is no wake that who waits could miss.
#[test]
fn a_closure_that_waits_for_a_future_which_wakes_itself_polls_it_again() {
    for workers in [1, 2] {
        let pool = pool(workers);
        let handle = pool.clone();
        let waited = pool.run("job", move || handle.spawn("job", turns(100)).wait());
        waited.unwrap().unwrap();
    }
}
