//! Threads that compute are interrupted: at the end of a slice, and when an arbiter takes the core.

use std::mem;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use headway_fiber::{Mechanism, NoPreempt, checkpoint};
use headway_kthread::CoreSource;
use headway_threads::{Runtime, may_stop, spawn, yield_now};

use crate::source::TestSource;

/// Whether probes can read the clock; if not, prints the skipped test.
fn probes_read_the_clock() -> bool {
    let check = Mechanism::Tsc.check();
    if let Err(why) = &check {
        eprintln!("SKIPPED: {why}");
    }
    check.is_ok()
}

#[test]
fn a_thread_that_computes_gives_way_to_those_that_wait() {
    if !probes_read_the_clock() {
        return;
    }
    let runtime = Runtime::builder().start().expect("a kthread");
    runtime.run(|| {
        let done = Arc::new(AtomicBool::new(false));
        let computes: Vec<_> = (0..3)
            .map(|_| {
                let done = Arc::clone(&done);
                spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        checkpoint();
                    }
                })
            })
            .collect();
        // This thread runs only if each spinning thread yields.
        yield_now();
        let last = spawn(move || done.store(true, Ordering::Relaxed));
        computes
            .into_iter()
            .chain([last])
            .for_each(|thread| thread.join().expect("no panic"));
    });
}

/// The kthread gives its core back in the middle of the thread, which resumes on any kthread that has one.
#[test]
fn a_thread_that_computes_leaves_a_core_that_is_taken() {
    if !probes_read_the_clock() {
        return;
    }
    for kthreads in [1, 2] {
        let source = TestSource::new(kthreads);
        let runtime = source.runtime().start().expect("kthreads");
        let runs = Arc::new(AtomicBool::new(false));
        let computes = runtime.spawn({
            let (source, runs) = (Arc::clone(&source), Arc::clone(&runs));
            move || {
                while source.left() == 0 {
                    runs.store(true, Ordering::Release);
                    checkpoint();
                }
            }
        });
        while !runs.load(Ordering::Acquire) {
            thread::yield_now();
        }
        for kthread in 0..kthreads {
            source.orders(kthread).revoke();
        }
        computes.join().expect("no panic");
        assert!(source.left() > 0);
    }
}

static STOPS: AtomicBool = AtomicBool::new(false);

extern "C" fn ask(_: libc::c_int) {
    STOPS.store(may_stop(), Ordering::Release);
}

/// Sends the calling thread a signal. Returns whether its handler finds that the kthread may stop.
fn signal() -> bool {
    // SAFETY: the handler stores a word.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = ask as *const () as usize;
        assert_eq!(
            libc::sigaction(libc::SIGUSR2, &raw const action, ptr::null_mut()),
            0
        );
        assert_eq!(libc::raise(libc::SIGUSR2), 0);
    }
    STOPS.load(Ordering::Acquire)
}

#[test]
fn a_signal_stops_a_thread_where_it_is_or_at_the_end_of_its_section() {
    assert!(!signal(), "no thread of a runtime");
    let source = TestSource::new(1);
    let runtime = source.runtime().start().expect("kthreads");
    runtime.run(|| {
        assert!(signal(), "outside of sections it may stop");
        // A signal inside the section without an order to leave: the thread continues.
        let section = NoPreempt::enter();
        assert!(!signal());
        drop(section);
        assert_eq!(source.left(), 0);
        // A signal inside the section with an order to leave.
        let section = NoPreempt::enter();
        source.orders(0).revoke();
        assert!(!signal());
        assert_eq!(source.left(), 0, "not inside of the section");
        drop(section);
        assert_eq!(source.left(), 1, "at its end");
    });
}
