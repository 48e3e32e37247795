//! Locks, condition variables, semaphores and channels, on one and on several kthreads, at random.
#![expect(
    unsafe_code,
    reason = "promises that threads may change kthreads: none uses a thread-local variable of std"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use headway_threads::{
    Condvar, JoinHandle, Migration, Mutex, ReadCell, Runtime, Semaphore, Unreceived, Unsent,
    channel, sleep, spawn, yield_now,
};

/// A runtime with this many kthreads.
fn runtime(kthreads: usize) -> Runtime {
    // SAFETY: the tests' threads use no thread-local variables of `std` across calls that wait.
    let migration = unsafe { Migration::allow() };
    Runtime::builder()
        .kthreads(kthreads, migration)
        .start()
        .expect("kthreads")
}

fn join_all(threads: Vec<JoinHandle<()>>) {
    threads
        .into_iter()
        .for_each(|thread| thread.join().expect("no thread panics"));
}

/// The next number of a seeded sequence.
fn draw(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state >> 33
}

#[test]
fn a_lock_admits_one_thread_at_a_time_whoever_waits_where() {
    for kthreads in [1, 2, 3] {
        let count = Arc::new(Mutex::new((0_u64, false)));
        let inside = Arc::clone(&count);
        // A thread of the operating system takes part.
        let foreign = std::thread::spawn({
            let count = Arc::clone(&count);
            move || {
                for _ in 0..2_000 {
                    let mut guard = count.lock();
                    assert!(!std::mem::replace(&mut guard.1, true));
                    guard.0 += 1;
                    guard.1 = false;
                }
            }
        });
        runtime(kthreads).run(move || {
            let threads = (0..8_u64).map(|seed| {
                let count = Arc::clone(&inside);
                spawn(move || {
                    let mut state = seed;
                    for _ in 0..2_000 {
                        let mut guard = count.lock();
                        assert!(!std::mem::replace(&mut guard.1, true));
                        guard.0 += 1;
                        if draw(&mut state).is_multiple_of(16) {
                            // A holder may wait.
                            yield_now();
                        }
                        guard.1 = false;
                    }
                })
            });
            join_all(threads.collect());
        });
        foreign.join().expect("it does not panic");
        assert_eq!(count.lock().0, 9 * 2_000);
    }
}

#[test]
fn a_panic_releases_the_lock() {
    runtime(1).run(|| {
        let lock = Arc::new(Mutex::new(1));
        let holder = spawn({
            let lock = Arc::clone(&lock);
            move || {
                let _guard = lock.lock();
                std::panic::resume_unwind(Box::new(()));
            }
        });
        assert!(holder.join().is_err());
        assert_eq!(*lock.lock(), 1);
    });
}

#[test]
fn who_is_notified_goes_on_and_nobody_else() {
    for kthreads in [1, 2] {
        runtime(kthreads).run(|| {
            let shared = Arc::new((Mutex::new(0_usize), Condvar::new()));
            let awake = Arc::new(AtomicUsize::new(0));
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let (shared, awake) = (Arc::clone(&shared), Arc::clone(&awake));
                    spawn(move || {
                        let mut tickets = shared.0.lock();
                        while *tickets == 0 {
                            tickets = shared.1.wait(tickets);
                        }
                        *tickets -= 1;
                        awake.fetch_add(1, Ordering::Relaxed);
                    })
                })
                .collect();
            for passed in 1..=2 {
                *shared.0.lock() += 1;
                shared.1.notify_one();
                while awake.load(Ordering::Relaxed) < passed {
                    yield_now();
                }
            }
            assert_eq!(awake.load(Ordering::Relaxed), 2);
            *shared.0.lock() += 2;
            shared.1.notify_all();
            join_all(threads);
        });
    }
}

#[test]
fn a_wait_ends_with_its_time_or_with_the_notice_that_comes_first() {
    runtime(2).run(|| {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let start = Instant::now();
        let short = Duration::from_millis(5);
        let (guard, timed_out) = shared.1.wait_timeout(shared.0.lock(), short);
        assert!(timed_out && start.elapsed() >= short);
        drop(guard);
        let other = spawn({
            let shared = Arc::clone(&shared);
            move || {
                sleep(Duration::from_millis(2));
                *shared.0.lock() = true;
                shared.1.notify_one();
            }
        });
        let mut ready = shared.0.lock();
        while !*ready {
            let timed_out;
            (ready, timed_out) = shared.1.wait_timeout(ready, Duration::from_hours(1));
            assert!(!timed_out);
        }
        drop(ready);
        other.join().expect("it does not panic");
    });
}

#[test]
fn no_more_threads_than_permits_are_inside() {
    for kthreads in [1, 3] {
        runtime(kthreads).run(|| {
            let semaphore = Arc::new(Semaphore::new(2));
            let inside = Arc::new(AtomicUsize::new(0));
            let threads = (0..6).map(|_| {
                let (semaphore, inside) = (Arc::clone(&semaphore), Arc::clone(&inside));
                spawn(move || {
                    for _ in 0..200 {
                        semaphore.acquire();
                        assert!(inside.fetch_add(1, Ordering::AcqRel) < 2);
                        yield_now();
                        inside.fetch_sub(1, Ordering::AcqRel);
                        semaphore.release();
                    }
                })
            });
            join_all(threads.collect());
            assert!(semaphore.try_acquire() && semaphore.try_acquire() && !semaphore.try_acquire());
        });
    }
}

#[test]
fn each_value_comes_out_of_a_channel_once_and_ends_are_noticed() {
    for (kthreads, room) in [(1, 1), (1, 7), (2, 1), (3, 4)] {
        let sum = runtime(kthreads).run(move || {
            let (sender, receiver) = channel(room);
            let senders = (0..4_u64).map(|part| {
                let sender = sender.clone();
                spawn(move || {
                    for number in 0..500 {
                        sender.send(part * 500 + number).expect("somebody receives");
                    }
                })
            });
            let senders: Vec<_> = senders.collect();
            drop(sender);
            let receivers = (0..3).map(|_| {
                let receiver = receiver.clone();
                spawn(move || {
                    let mut sum = 0;
                    while let Ok(number) = receiver.recv() {
                        sum += number;
                    }
                    sum
                })
            });
            let receivers: Vec<_> = receivers.collect();
            join_all(senders);
            let sum: u64 = receivers
                .into_iter()
                .map(|thread| thread.join().expect("no thread panics"))
                .sum();
            assert_eq!(receiver.recv(), Err(Unreceived));
            sum
        });
        assert_eq!(sum, (0..2_000).sum());
    }
}

#[test]
fn a_sender_without_receivers_gets_its_value_back() {
    runtime(1).run(|| {
        let (sender, receiver) = channel(1);
        sender.send(1).expect("there is room");
        let waits = spawn(move || sender.send(2));
        yield_now();
        drop(receiver);
        assert_eq!(waits.join().expect("no panic"), Err(Unsent(2)));
    });
}

/// A value that records whether a writer got it back.
struct Lent(Arc<AtomicBool>);

impl Lent {
    fn new() -> Lent {
        Lent(Arc::new(AtomicBool::new(true)))
    }

    /// Reads the value for a little while.
    fn assert_lent(&self) {
        for _ in 0..20 {
            assert!(self.0.load(Ordering::Acquire), "a writer has it back");
            std::hint::spin_loop();
        }
    }
}

#[test]
fn a_writer_gets_a_value_back_when_nobody_reads_it_any_more() {
    for kthreads in [1, 2, 3] {
        let cell = Arc::new(ReadCell::new(Lent::new()));
        let ends = Arc::new(AtomicBool::new(false));
        let reads = || {
            let (cell, ends) = (Arc::clone(&cell), Arc::clone(&ends));
            move || {
                while !ends.load(Ordering::Acquire) {
                    cell.read(|value| cell.read(|_| value.assert_lent()));
                    yield_now();
                }
            }
        };
        let (first, second) = (runtime(kthreads), runtime(1));
        let foreign = std::thread::spawn(reads());
        let readers = [
            first.spawn(reads()),
            first.spawn(reads()),
            second.spawn(reads()),
        ];
        let write = || {
            let cell = Arc::clone(&cell);
            move || {
                for _ in 0..25 {
                    let old = cell.replace(Lent::new());
                    old.0.store(false, Ordering::Release);
                }
            }
        };
        let writers = [first.spawn(write()), second.spawn(write())];
        write()();
        join_all(writers.into());
        ends.store(true, Ordering::Release);
        join_all(readers.into());
        foreign.join().expect("it does not panic");
    }
}

#[test]
fn no_update_of_a_cell_is_lost() {
    let cell = Arc::new(ReadCell::new(0));
    runtime(2).run({
        let cell = Arc::clone(&cell);
        move || {
            let writers = (0..4).map(|_| {
                let cell = Arc::clone(&cell);
                spawn(move || {
                    for _ in 0..50 {
                        cell.update(|value| value + 1);
                    }
                })
            });
            join_all(writers.collect());
        }
    });
    assert_eq!(cell.read(|value| *value), 200);
}

#[test]
fn a_read_ends_with_a_panic_and_may_not_wait() {
    let cell = Arc::new(ReadCell::new(1));
    runtime(1).run(move || {
        for waits in [yield_now, || std::panic::resume_unwind(Box::new(()))] {
            let reader = spawn({
                let cell = Arc::clone(&cell);
                move || cell.read(|_| waits())
            });
            assert!(reader.join().is_err());
        }
        let writer = spawn({
            let cell = Arc::clone(&cell);
            move || cell.read(|_| cell.replace(3))
        });
        assert!(writer.join().is_err(), "it would wait for itself");
        assert_eq!(cell.replace(2), 1);
    });
}
