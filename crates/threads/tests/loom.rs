//! Every interleaving of operations on the threads' shared state: locks, condition variables, timed waits, joins, and reads of
//! read-mostly cells.
//!
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p headway-threads --release --test loom`
#![cfg(loom)]

use headway_threads::model::{ModelKthreads, ModelReads};
use headway_threads::{Condvar as UthreadCondvar, Mutex as UthreadMutex};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use std::time::Duration;

/// As in the runtime's tests: few bugs need more than two preemptive switches (Musuvathi and Qadeer, PLDI 2007).
fn bounded(model: impl Fn() + Sync + Send + 'static) {
    bounded_by(3, model);
}

/// For a model of three threads, which takes half a minute up to three switches.
fn bounded_by(switches: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.check(model);
}

/// A number: loom reports two unordered accesses.
#[derive(Default)]
struct Number(UnsafeCell<u32>);

#[expect(unsafe_code, reason = "loom's cells are looked at through pointers")]
// SAFETY: loom reports a concurrent access.
unsafe impl Sync for Number {}
#[expect(unsafe_code, reason = "as above")]
// SAFETY: as above.
unsafe impl Send for Number {}

impl Number {
    fn get(&self) -> u32 {
        #[expect(unsafe_code, reason = "as above")]
        // SAFETY: as above.
        self.0.with(|number| unsafe { *number })
    }

    fn add(&self, more: u32) {
        #[expect(unsafe_code, reason = "as above")]
        // SAFETY: as above.
        self.0
            .with_mut(|number| unsafe { *number = (*number).wrapping_add(more) });
    }
}

/// A number behind a lock, and a condition variable for its changes.
#[derive(Default)]
struct Guarded {
    number: UthreadMutex<Number>,
    changed: UthreadCondvar,
}

impl Guarded {
    fn add(&self) {
        self.number.lock().add(1);
        self.changed.notify_one();
    }

    /// Waits until there is something to take, and takes it.
    fn take(&self) {
        let mut number = self.number.lock();
        while number.get() == 0 {
            number = self.changed.wait(number);
        }
        number.add(u32::MAX);
    }
}

#[test]
fn a_lock_admits_one_at_a_time_and_forgets_nobody() {
    bounded(|| {
        let kthreads = ModelKthreads::new(2);
        let guarded = Arc::new(Guarded::default());
        let threads = [(); 2].map(|()| {
            let guarded = Arc::clone(&guarded);
            kthreads.spawn(move || guarded.number.lock().add(1))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(guarded.number.lock().get(), 2);
    });
}

#[test]
fn a_notification_between_the_release_of_the_lock_and_the_wait_is_not_lost() {
    bounded(|| {
        let kthreads = ModelKthreads::new(2);
        let guarded = Arc::new(Guarded::default());
        for takes in [true, false] {
            let guarded = Arc::clone(&guarded);
            kthreads.detach(move || if takes { guarded.take() } else { guarded.add() });
        }
    });
}

#[test]
fn a_notification_of_all_wakes_every_waiter() {
    bounded_by(2, || {
        let kthreads = ModelKthreads::new(2);
        let guarded = Arc::new(Guarded::default());
        for _ in 0..2 {
            let guarded = Arc::clone(&guarded);
            kthreads.detach(move || {
                let mut number = guarded.number.lock();
                while number.get() == 0 {
                    number = guarded.changed.wait(number);
                }
            });
        }
        kthreads.detach(move || {
            guarded.number.lock().add(1);
            guarded.changed.notify_all();
        });
    });
}

/// Who waits for the lock has no kthread meanwhile, and gets the only one when the holder waits for something else.
#[test]
fn a_lock_goes_from_thread_to_thread_of_one_kthread() {
    bounded(|| {
        let kthreads = ModelKthreads::new(1);
        let guarded = Arc::new(Guarded::default());
        for _ in 0..2 {
            let guarded = Arc::clone(&guarded);
            kthreads.detach(move || {
                let mut number = guarded.number.lock();
                number.add(1);
                while number.get() < 2 {
                    number = guarded.changed.wait(number);
                }
                guarded.changed.notify_one();
            });
        }
    });
}

#[test]
fn a_timed_wait_ends_once_by_the_timer_or_a_notification() {
    bounded(|| {
        let kthreads = ModelKthreads::new(2);
        let guarded = Arc::new(Guarded::default());
        let fired = Arc::new(AtomicUsize::new(0));
        let waits = Arc::clone(&guarded);
        let was_fired = Arc::clone(&fired);
        kthreads.detach(move || {
            let mut number = waits.number.lock();
            while number.get() == 0 {
                let (again, timed_out) = waits.changed.wait_timeout(number, Duration::ZERO);
                number = again;
                if timed_out {
                    assert_eq!(was_fired.load(Ordering::Relaxed), 1);
                    break;
                }
            }
        });
        kthreads.detach(move || guarded.add());
        fired.store(1, Ordering::Relaxed);
        kthreads.fire_timers();
    });
}

#[test]
fn whoever_joins_a_thread_sees_what_it_did_and_gets_its_result() {
    bounded(|| {
        let kthreads = ModelKthreads::new(2);
        let seen = Arc::new(Number::default());
        let thread = kthreads.spawn({
            let seen = Arc::clone(&seen);
            move || {
                seen.add(1);
                7
            }
        });
        kthreads.detach(move || {
            assert_eq!(thread.join().unwrap(), 7);
            assert_eq!(seen.get(), 1);
        });
    });
}

/// The waiter is a thread of the operating system.
#[test]
fn a_thread_is_joined_from_outside() {
    bounded(|| {
        let kthreads = ModelKthreads::new(1);
        let seen = Arc::new(Number::default());
        let thread = kthreads.spawn({
            let seen = Arc::clone(&seen);
            move || seen.add(1)
        });
        thread.join().unwrap();
        assert_eq!(seen.get(), 1);
    });
}

/// Loom reports a result that is not dropped, and the model a fiber that is not freed once.
#[test]
fn a_result_is_dropped_once_whether_the_thread_ends_before_or_after_its_handle() {
    bounded(|| {
        let kthreads = ModelKthreads::new(2);
        let dropped = Arc::new(Number::default());
        let result = CountsDrop(dropped);
        let thread = kthreads.spawn(move || result);
        kthreads.detach(move || drop(thread));
    });
}

/// The drop of a result: loom reports one that is not ordered after the thread's end.
struct CountsDrop(Arc<Number>);

impl Drop for CountsDrop {
    fn drop(&mut self) {
        self.0.add(1);
        assert_eq!(self.0.get(), 1);
    }
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
