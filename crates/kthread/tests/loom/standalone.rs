//! The sleep of kthreads without an arbiter, in every interleaving with work that comes and with the end.

use headway_kthread::{CoreSource, Standalone};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;

/// A kthread sleeps when it finds nothing, and takes all that another thread brings. (loom reports the deadlock of a lost wake.)
#[test]
fn a_kthread_that_sleeps_takes_all_the_work_that_comes() {
    // All interleavings take minutes; few bugs need more than two preemptive switches (Musuvathi and Qadeer, PLDI 2007).
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let shared = Arc::new((Standalone::new(1), AtomicUsize::new(0)));
        let brings = thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                for _ in 0..2 {
                    shared.1.fetch_add(1, Ordering::Release);
                    shared.0.notify();
                }
            }
        });
        let (source, work) = &*shared;
        let mut grant = source.enter(0);
        let mut taken = 0;
        while taken < 2 {
            match work.swap(0, Ordering::Acquire) {
                0 => {
                    grant = source.leave(0, grant, &mut || work.load(Ordering::Relaxed) == 0);
                }
                found => taken += found,
            }
        }
        brings.join().unwrap();
    });
}

/// A kthread that goes to sleep while its source closes comes back.
#[test]
fn a_source_that_closes_leaves_nobody_asleep() {
    loom::model(|| {
        let source = Arc::new(Standalone::new(1));
        let kthread = thread::spawn({
            let source = Arc::clone(&source);
            move || {
                let grant = source.enter(0);
                source.leave(0, grant, &mut || true);
            }
        });
        source.close();
        kthread.join().unwrap();
    });
}
