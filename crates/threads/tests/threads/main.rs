//! Threads of one runtime, on one and on several kthreads.
#![expect(
    unsafe_code,
    reason = "promises that threads may change kthreads: none uses a thread-local variable of std"
)]

mod arbiter;
mod interrupts;
mod searching;
mod soak;
mod source;
mod stacks;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use headway_threads::{Migration, Runtime, park, sleep, spawn, unparker, yield_now};

/// A runtime with this many kthreads.
fn runtime(kthreads: usize) -> Runtime {
    // SAFETY: the tests' threads use no thread-local variables of `std` across calls that wait.
    let migration = unsafe { Migration::allow() };
    Runtime::builder()
        .kthreads(kthreads, migration)
        .start()
        .expect("kthreads")
}

#[test]
fn a_thread_returns_its_result_and_a_panic_its_payload() {
    for kthreads in [1, 2] {
        let (sum, panic) = runtime(kthreads).run(|| {
            let sum = spawn(|| 40 + 2).join().expect("it returns");
            let panic = spawn(|| std::panic::resume_unwind(Box::new("lost"))).join();
            let panic: Result<(), _> = panic;
            (
                sum,
                *panic.unwrap_err().downcast::<&str>().expect("the payload"),
            )
        });
        assert_eq!((sum, panic), (42, "lost"));
    }
}

#[test]
fn threads_take_turns_in_the_order_in_which_they_yield() {
    let order = runtime(1).run(|| {
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..3)
            .map(|number| {
                let order = Arc::clone(&order);
                spawn(move || {
                    for round in 0..2 {
                        order.lock().unwrap().push((round, number));
                        yield_now();
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        order.lock().unwrap().clone()
    });
    assert_eq!(order, [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
}

/// Code that knows of fibers only, as a pool's that waits for its job.
#[test]
fn a_thread_that_yields_as_any_fiber_does_takes_its_turn() {
    for kthreads in [1, 2] {
        let turns: &'static AtomicU64 = Box::leak(Box::default());
        let take_turns = move || {
            for _ in 0..100 {
                turns.fetch_add(1, Ordering::Relaxed);
                headway_fiber::yield_now();
            }
        };
        runtime(kthreads).run(move || {
            let threads: Vec<_> = (0..4).map(|_| spawn(take_turns)).collect();
            threads.into_iter().for_each(|it| it.join().unwrap());
            // It waits as other threads do once it has yielded.
            sleep(Duration::from_micros(10));
        });
        assert_eq!(turns.load(Ordering::Relaxed), 400);
    }
}

#[test]
fn every_thread_of_a_tree_runs_once_on_any_number_of_kthreads() {
    fn tree(depth: u32, runs: &'static AtomicU64) -> u64 {
        runs.fetch_add(1, Ordering::Relaxed);
        if depth == 0 {
            return 1;
        }
        let left = spawn(move || tree(depth - 1, runs));
        let right = spawn(move || tree(depth - 1, runs));
        yield_now();
        left.join().unwrap() + right.join().unwrap()
    }
    for kthreads in [1, 2, 4] {
        let runs: &'static AtomicU64 = Box::leak(Box::default());
        assert_eq!(runtime(kthreads).run(move || tree(12, runs)), 1 << 12);
        assert_eq!(runs.load(Ordering::Relaxed), (1 << 13) - 1);
    }
}

#[test]
fn a_token_is_not_lost_whichever_comes_first() {
    // Enough rounds for two kthreads to be about to run each other's thread.
    const ROUNDS: usize = 100_000;
    for kthreads in [1, 2] {
        let rounds = runtime(kthreads).run(|| {
            let sleeper = spawn(|| {
                let me = unparker();
                let done = Arc::new(AtomicBool::new(false));
                let other = spawn({
                    let done = Arc::clone(&done);
                    move || {
                        for round in 1..=ROUNDS {
                            done.store(round == ROUNDS, Ordering::Release);
                            me.unpark();
                            yield_now();
                        }
                    }
                });
                let mut rounds = 0;
                while !done.load(Ordering::Acquire) {
                    park();
                    rounds += 1;
                }
                other.join().unwrap();
                rounds
            });
            sleeper.join().unwrap()
        });
        // The other thread may finish before this one checks.
        assert!(rounds <= ROUNDS + 1, "{rounds}");
    }
}

/// One kthread, so that no other runs a sleeper that wakes later before one that woke.
#[test]
fn sleepers_wake_in_the_order_of_their_times() {
    let woken = runtime(1).run(|| {
        let (send, receive) = std::sync::mpsc::channel();
        let threads: Vec<_> = [30, 10, 20]
            .into_iter()
            .map(|ms| {
                let send = send.clone();
                spawn(move || {
                    // The kthread may lose its core for long before a sleep begins.
                    let due = Instant::now() + Duration::from_millis(ms);
                    sleep(Duration::from_millis(ms));
                    send.send((due, Instant::now())).unwrap();
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
        receive.try_iter().collect::<Vec<_>>()
    });
    assert_eq!(woken.len(), 3);
    assert!(woken.is_sorted_by_key(|(due, _)| *due), "{woken:?}");
    assert!(woken.iter().all(|(due, now)| now >= due), "{woken:?}");
}

#[test]
fn a_thread_that_never_ends_is_abandoned_with_its_runtime() {
    let runtime = runtime(1);
    let waits = runtime.spawn(park);
    let ends = runtime.spawn(|| 7);
    runtime.run(yield_now);
    drop(runtime);
    let payload = waits.join().unwrap_err();
    assert!(payload.is::<headway_threads::Abandoned>());
    assert_eq!(ends.join().unwrap(), 7);
}

#[test]
fn a_thread_may_wait_while_it_unwinds() {
    struct Waits;
    impl Drop for Waits {
        fn drop(&mut self) {
            for _ in 0..3 {
                sleep(Duration::from_millis(1));
            }
        }
    }
    for kthreads in [1, 2] {
        let ended = runtime(kthreads).run(|| {
            let threads: Vec<_> = (0..8)
                .map(|_| {
                    spawn(|| {
                        let _waits = Waits;
                        std::panic::resume_unwind(Box::new(()));
                    })
                })
                .collect();
            threads.into_iter().all(|thread| thread.join().is_err())
        });
        assert!(ended);
    }
}

/// The kthread itself fires the timer, while the thread is still on its way to wait.
#[test]
fn a_time_that_has_come_before_the_thread_waits_is_no_obstacle() {
    runtime(1).run(|| (0..1_000).for_each(|_| sleep(Duration::ZERO)));
}
