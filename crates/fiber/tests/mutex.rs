//! The lock for fibers: exclusion, and when they yield.
#![expect(unsafe_code, reason = "fibers that migrate")]

mod common;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::Duration;

use common::{AbortOnPanic, Rng, resume, stacks};
use headway_fiber::{Attached, Fiber, FiberMutex, SendFiber, Turn, checkpoint, yield_now};

#[test]
fn a_holder_yields_on_release_if_it_was_asked_meanwhile() {
    let attached = Attached::new();
    let flag = attached.flag();
    let mutex = Arc::new(FiberMutex::new(0));
    let inside = Arc::clone(&mutex);
    let mut fiber = Fiber::new(stacks().take().unwrap(), move |job: &mut u32| {
        let outer = FiberMutex::new(());
        let guards = (inside.lock(), outer.lock());
        flag.raise(1);
        checkpoint();
        *job += 1;
        drop(guards.0);
        checkpoint();
        *job += 1;
        drop(guards.1);
        *job += 1;
    });
    attached.begin(1);
    assert_eq!(fiber.run(0, 0), Turn::Yielded);
    assert!(
        mutex.try_lock().is_some(),
        "it holds nothing while it waits"
    );
    assert_eq!(resume(&mut fiber), Turn::Finished(3));
    drop(fiber); // It holds the flag.
}

#[test]
fn who_cannot_get_it_yields_if_it_holds_none() {
    let mutex = Arc::new(FiberMutex::new(0));
    let inside = Arc::clone(&mutex);
    let mut fiber = Fiber::new(stacks().take().unwrap(), move |_: &mut ()| {
        *inside.lock() += 1;
    });
    let held = mutex.lock();
    thread::scope(|scope| {
        scope
            .spawn(|| {
                let mut fiber = Fiber::new(
                    stacks().take().unwrap(),
                    |mutex: &mut Arc<FiberMutex<u32>>| {
                        *mutex.lock() += 1;
                    },
                );
                assert!(matches!(fiber.run(Arc::clone(&mutex), 0), Turn::Yielded));
                assert!(matches!(resume(&mut fiber), Turn::Yielded));
                std::mem::forget(fiber);
            })
            .join()
            .unwrap();
    });
    drop(held);
    assert_eq!(fiber.run((), 0), Turn::Finished(()));
    assert_eq!(*mutex.lock(), 1);
}

#[test]
fn who_holds_another_waits_without_yielding() {
    let mutex = Arc::new(FiberMutex::new(0));
    let (taken, tried) = (Barrier::new(2), Arc::new(AtomicBool::new(false)));
    thread::scope(|scope| {
        scope.spawn(|| {
            let _held = mutex.lock();
            taken.wait();
            while !tried.load(Ordering::Acquire) {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(5));
        });
        taken.wait();
        let (mutex, tried) = (Arc::clone(&mutex), Arc::clone(&tried));
        let mut fiber = Fiber::new(stacks().take().unwrap(), move |_: &mut ()| {
            let other = FiberMutex::new(());
            let _other = other.lock();
            tried.store(true, Ordering::Release);
            *mutex.lock() += 1;
        });
        assert_eq!(fiber.run((), 0), Turn::Finished(()));
    });
}

/// A fiber of the property test: sections of one or two locks, with requests to yield in and between them.
struct Job {
    rng: Rng,
    sections: u32,
    shared: Arc<Shared>,
}

struct Shared {
    /// In each, a count that is odd while somebody is inside.
    counts: [FiberMutex<u64>; 3],
    flags: Mutex<Vec<headway_fiber::YieldFlag>>,
    epoch: AtomicU64,
    entered: AtomicU64,
}

impl Job {
    fn run(&mut self) {
        for _ in 0..self.sections {
            let first = self.rng.below(3);
            let shared = Arc::clone(&self.shared);
            let mut outer = shared.counts[first].lock();
            self.inside(&mut outer);
            // In ascending order, or two would wait for each other.
            if first < 2 && self.rng.below(2) == 0 {
                let mut inner = shared.counts[first + 1].lock();
                self.inside(&mut inner);
            }
            drop(outer);
            if self.rng.below(4) == 0 {
                yield_now();
            }
        }
    }

    fn inside(&mut self, count: &mut u64) {
        assert_eq!(*count % 2, 0, "somebody else is inside");
        *count += 1;
        self.shared.entered.fetch_add(1, Ordering::Relaxed);
        if self.rng.below(2) == 0 {
            let epoch = self.shared.epoch.load(Ordering::Relaxed);
            let flags = &self.shared.flags;
            flags
                .lock()
                .unwrap()
                .iter()
                .for_each(|flag| flag.raise(epoch));
        }
        checkpoint();
        yield_now(); // Not before the section's end.
        *count += 1;
    }
}

#[test]
fn sections_exclude_each_other_however_fibers_are_interleaved_and_moved() {
    const THREADS: usize = 3;
    const FIBERS: u64 = 9;
    let stacks = stacks();
    let queue: VecDeque<SendFiber<Job>> = (0..FIBERS)
        .map(|_| {
            let fiber = Fiber::new(stacks.take().unwrap(), Job::run);
            // SAFETY: nothing on its stack belongs to a thread, and guards end before it yields.
            unsafe { fiber.migratable() }
        })
        .collect();
    let queue = Mutex::new((queue, Rng::new(5)));
    let shared = Arc::new(Shared {
        counts: Default::default(),
        flags: Mutex::default(),
        epoch: AtomicU64::new(1),
        entered: AtomicU64::new(0),
    });
    let yields = AtomicU64::new(0);
    let ready = Barrier::new(THREADS);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let attached = Attached::new();
                shared.flags.lock().unwrap().push(attached.flag());
                ready.wait();
                let _loud = AbortOnPanic;
                while let Some(fiber) = take(&queue) {
                    attached.begin(1);
                    let mut fiber = fiber.into_inner();
                    let turn = if fiber.is_suspended() {
                        resume(&mut fiber)
                    } else {
                        let rng = Rng::new(queue.lock().unwrap().1.next());
                        let shared = Arc::clone(&shared);
                        fiber.run(
                            Job {
                                rng,
                                sections: 20_000,
                                shared,
                            },
                            0,
                        )
                    };
                    if matches!(turn, Turn::Yielded) {
                        yields.fetch_add(1, Ordering::Relaxed);
                        // SAFETY: as above.
                        queue
                            .lock()
                            .unwrap()
                            .0
                            .push_back(unsafe { fiber.migratable() });
                    }
                }
                ready.wait();
                shared.flags.lock().unwrap().clear();
            });
        }
    });
    let total: u64 = shared.counts.iter().map(|count| *count.lock()).sum();
    assert_eq!(total, 2 * shared.entered.load(Ordering::Relaxed));
    assert!(yields.into_inner() > 100_000);
}

/// Any of the fibers.
fn take(queue: &Mutex<(VecDeque<SendFiber<Job>>, Rng)>) -> Option<SendFiber<Job>> {
    let (queue, rng) = &mut *queue.lock().unwrap();
    let index = rng.below(queue.len().max(1));
    queue.remove(index)
}
