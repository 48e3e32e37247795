//! Every interleaving of the lock's users, within loom's bounds.
//!
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p headway-fiber --release --test loom`
#![cfg(loom)]

use headway_fiber::FiberMutex;
use headway_fiber::model::{ModelWorker, probe, run};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// The data under the lock: loom reports two accesses that are not ordered.
type Count = FiberMutex<UnsafeCell<u32>>;

fn count() -> Arc<Count> {
    Arc::new(FiberMutex::new(UnsafeCell::new(0)))
}

/// Counts once, with a probe while the lock is held.
fn add(count: &Count) {
    let guard = count.lock();
    let before = guard.with(read);
    probe();
    guard.with_mut(|value| write(value, before + 1));
}

fn total(count: &Count) -> u32 {
    count.lock().with(read)
}

#[expect(unsafe_code, reason = "loom's cells are looked at through pointers")]
fn read(value: *const u32) -> u32 {
    // SAFETY: loom reports it if somebody writes meanwhile.
    unsafe { *value }
}

#[expect(unsafe_code, reason = "loom's cells are looked at through pointers")]
fn write(value: *mut u32, new: u32) {
    // SAFETY: as above, of any other access.
    unsafe { *value = new };
}

/// As in the runtime's tests: few bugs need more than two switches where a thread could have gone on (Musuvathi and Qadeer, PLDI 2007).
fn bounded(preemptions: usize) -> loom::model::Builder {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model
}

#[test]
fn threads_hold_it_one_at_a_time() {
    loom::model(|| {
        let count = count();
        let other = Arc::clone(&count);
        let thread = thread::spawn(move || add(&other));
        add(&count);
        thread.join().unwrap();
        assert_eq!(total(&count), 2);
    });
}

#[test]
fn who_tries_in_vain_leaves_no_trace() {
    loom::model(|| {
        let count = count();
        let other = Arc::clone(&count);
        let thread = thread::spawn(move || {
            u32::from(
                other
                    .try_lock()
                    .map(|guard| guard.with_mut(|value| write(value, 1)))
                    .is_some(),
            )
        });
        add(&count);
        let tried = thread.join().unwrap();
        // The first waiter was overwritten, or counted on.
        assert!((1..=1 + tried).contains(&total(&count)));
    });
}

/// Two fibers of a worker that is asked to yield at any time; whether the second ever finds the lock taken by the first, which cannot go on
/// before the second lets it.
fn finds_it_taken(honours_sections: bool) -> bool {
    let taken = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = std::sync::Arc::clone(&taken);
    bounded(3).check(move || {
        let (worker, mutex) = (Arc::new(ModelWorker::default()), count());
        let (of_first, first) = (Arc::clone(&worker), Arc::clone(&mutex));
        let first = thread::spawn(move || run(&of_first, honours_sections, || add(&first)));
        let (of_second, second) = (Arc::clone(&worker), Arc::clone(&mutex));
        let taken = std::sync::Arc::clone(&taken);
        let second = thread::spawn(move || {
            run(&of_second, honours_sections, || {
                if second.try_lock().is_none() {
                    taken.store(true, std::sync::atomic::Ordering::Relaxed);
                }
            });
        });
        worker.ask();
        first.join().unwrap();
        second.join().unwrap();
    });
    seen.load(std::sync::atomic::Ordering::Relaxed)
}

#[test]
fn no_fiber_finds_it_taken_by_one_of_its_own_worker() {
    assert!(!finds_it_taken(true));
}

/// The negative control: were holders suspended, one that waits without letting others run would wait for ever.
#[test]
fn if_sections_did_not_count_one_would() {
    assert!(finds_it_taken(false));
}

/// The second holds another lock while it waits, so it does not let the first run: it need not.
#[test]
fn a_fiber_that_holds_another_lock_is_not_kept_by_its_own_worker() {
    bounded(2).check(|| {
        let (worker, mutex) = (Arc::new(ModelWorker::default()), count());
        let (of_first, first) = (Arc::clone(&worker), Arc::clone(&mutex));
        let first = thread::spawn(move || run(&of_first, true, || add(&first)));
        let (of_second, second) = (Arc::clone(&worker), Arc::clone(&mutex));
        let second = thread::spawn(move || {
            run(&of_second, true, || {
                let own = FiberMutex::new(());
                let _held = own.lock();
                add(&second);
            });
        });
        worker.ask();
        first.join().unwrap();
        second.join().unwrap();
        assert_eq!(total(&mutex), 2);
    });
}

/// Fibers of two workers, one of which is asked to yield: a waiter goes on once the holder does.
#[test]
fn fibers_of_two_workers_wait_for_each_other_and_go_on() {
    bounded(2).check(|| {
        let (asked, other, mutex) = (
            Arc::new(ModelWorker::default()),
            Arc::new(ModelWorker::default()),
            count(),
        );
        let fibers = [&asked, &other].map(|worker| {
            let (worker, mutex) = (Arc::clone(worker), Arc::clone(&mutex));
            thread::spawn(move || run(&worker, true, || add(&mutex)))
        });
        asked.ask();
        for fiber in fibers {
            fiber.join().unwrap();
        }
        assert_eq!(total(&mutex), 2);
    });
}
