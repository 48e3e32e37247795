//! Every interleaving of operations on the threads' shared state: run queues, tokens, locks, and reads of read-mostly cells.
//!
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p headway-threads --release --test loom`
#![cfg(loom)]

use headway_threads::model::{ModelLock, ModelReads, ModelRing, ModelToken, RING_PLACES};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// As in the runtime's tests: few bugs need more than two preemptive switches (Musuvathi and Qadeer, PLDI 2007).
fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A flag for which a thread waits until it is made ready.
#[derive(Default)]
struct Readiness {
    ready: Mutex<bool>,
    changed: Condvar,
}

impl Readiness {
    fn wait(&self) {
        let mut ready = self.ready.lock().unwrap();
        while !*ready {
            ready = self.changed.wait(ready).unwrap();
        }
        *ready = false;
    }

    fn make(&self) {
        let before = std::mem::replace(&mut *self.ready.lock().unwrap(), true);
        assert!(!before, "ready twice");
        self.changed.notify_one();
    }

    fn is_made(&self) -> bool {
        *self.ready.lock().unwrap()
    }
}

#[test]
fn each_thread_in_a_run_queue_is_taken_once_by_its_owner_or_a_thief() {
    bounded(|| {
        let own = Arc::new(ModelRing::default());
        // The ring wraps: its places are reused while the thief reads.
        let count = RING_PLACES + 1;
        let taken = Arc::new((0..count).map(|_| AtomicUsize::new(0)).collect::<Vec<_>>());
        let take = |taken: &[AtomicUsize], word: usize| {
            taken[word].fetch_add(1, Ordering::Relaxed);
        };
        let thief = thread::spawn({
            let (own, taken) = (Arc::clone(&own), Arc::clone(&taken));
            move || {
                let stolen = ModelRing::default();
                own.steal(2, &stolen);
                while let Some(word) = stolen.pop() {
                    take(&taken, word);
                }
            }
        });
        for word in 0..count {
            while !own.push(word) {
                if let Some(first) = own.pop() {
                    take(&taken, first);
                }
            }
        }
        thief.join().unwrap();
        while let Some(word) = own.pop() {
            take(&taken, word);
        }
        for times in &*taken {
            assert_eq!(times.load(Ordering::Relaxed), 1);
        }
    });
}

#[test]
fn a_token_given_while_a_thread_parks_wakes_it_once() {
    bounded(|| {
        let shared = Arc::new((ModelToken::default(), Readiness::default()));
        let makes_ready = |shared: &(ModelToken, Readiness), does: bool| {
            if does {
                shared.1.make();
            }
        };
        let gives = thread::spawn({
            let shared = Arc::clone(&shared);
            move || makes_ready(&shared, shared.0.give())
        });
        let timer = thread::spawn({
            let shared = Arc::clone(&shared);
            move || makes_ready(&shared, shared.0.times_out())
        });
        // The wait ends even if the timeout comes before it begins, since the token arrives.
        shared.0.park(|| shared.1.wait());
        gives.join().unwrap();
        timer.join().unwrap();
        assert!(!shared.1.is_made(), "nobody waits any more");
    });
}

/// A value behind a lock: loom reports two unordered accesses.
struct Locked {
    lock: ModelLock,
    ready: [Readiness; 2],
    value: UnsafeCell<u32>,
}

impl Locked {
    fn add(&self, me: usize) {
        self.lock.lock(me, || self.ready[me].wait());
        #[expect(unsafe_code, reason = "loom's cells are looked at through pointers")]
        // SAFETY: loom reports a concurrent access.
        self.value.with_mut(|value| unsafe { *value += 1 });
        if let Some(waiter) = self.lock.unlock() {
            self.ready[waiter].make();
        }
    }
}

#[test]
fn a_lock_admits_one_at_a_time_and_forgets_nobody() {
    bounded(|| {
        let locked = Arc::new(Locked {
            lock: ModelLock::default(),
            ready: [Readiness::default(), Readiness::default()],
            value: UnsafeCell::new(0),
        });
        let other = Arc::clone(&locked);
        let thread = thread::spawn(move || other.add(1));
        locked.add(0);
        thread.join().unwrap();
        #[expect(unsafe_code, reason = "loom's cells are looked at through pointers")]
        // SAFETY: as above.
        let value = locked.value.with(|value| unsafe { *value });
        assert_eq!(value, 2);
    });
}

/// Two values and a pointer to the current one; loom reports a write to a value during a read.
struct Values {
    reads: ModelReads,
    current: AtomicUsize,
    values: [UnsafeCell<u32>; 2],
}

impl Values {
    fn look(&self) {
        let current = self.current.load(Ordering::SeqCst);
        #[expect(unsafe_code, reason = "loom's cells are looked at through pointers")]
        // SAFETY: as above.
        self.values[current].with(|value| assert_eq!(unsafe { *value }, 7));
    }

    /// Replaces the first value, and drops it.
    fn replace(&self) {
        assert_eq!(self.current.swap(1, Ordering::SeqCst), 0);
        self.reads.wait();
        #[expect(unsafe_code, reason = "loom's cells are looked at through pointers")]
        // SAFETY: as above.
        self.values[0].with_mut(|value| unsafe { *value = 0 });
    }
}

fn a_value_is_dropped_after_its(
    read: impl Fn(&ModelReads, &dyn Fn()) + Copy + Send + Sync + 'static,
) {
    bounded(move || {
        let values = Arc::new(Values {
            reads: ModelReads::default(),
            current: AtomicUsize::new(0),
            values: [UnsafeCell::new(7), UnsafeCell::new(7)],
        });
        let reader = thread::spawn({
            let values = Arc::clone(&values);
            move || {
                for _ in 0..2 {
                    read(&values.reads, &|| values.look());
                }
            }
        });
        values.replace();
        reader.join().unwrap();
    });
}

#[test]
fn a_value_is_dropped_after_its_reads_by_a_kthread() {
    a_value_is_dropped_after_its(|reads, look| reads.read(look));
}

#[test]
fn a_value_is_dropped_after_its_reads_from_outside() {
    a_value_is_dropped_after_its(|reads, look| reads.read_outside(look));
}
