//! Threads that compute are interrupted: at the end of a slice, and when an arbiter takes the core.

use std::mem;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use headway_fiber::{Mechanism, NoPreempt, checkpoint};
use headway_kthread::CoreSource;
use headway_threads::{
    Runtime, STOP_AT_SIGNAL, current_kthread, spawn, suspend_at_signal, yield_now,
};

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

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Sends the calling thread a signal with this handler.
fn raise(signal: libc::c_int, handler: Handler) {
    // SAFETY: the tests' handlers store words and suspend threads that tolerate it.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(
            libc::sigaction(signal, &raw const action, ptr::null_mut()),
            0
        );
        assert_eq!(libc::raise(signal), 0);
    }
}

static STOPS: AtomicBool = AtomicBool::new(false);

extern "C" fn ask(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
    STOPS.store(STOP_AT_SIGNAL.may_stop(), Ordering::Release);
}

/// Whether a signal's handler finds that the kthread may stop.
fn signal() -> bool {
    raise(libc::SIGUSR2, ask);
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

/// The tests that read it take turns.
static SUSPENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn suspend(signal: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: called in a handler, for threads that use nothing of their kernel thread.
    let suspended = unsafe { suspend_at_signal().suspend(signal, context) };
    SUSPENDED.store(suspended, Ordering::Release);
}

fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a signal's handler could suspend the calling thread.
fn suspends() -> bool {
    raise(libc::SIGUSR1, suspend);
    SUSPENDED.load(Ordering::Acquire)
}

#[test]
fn a_signal_suspends_a_thread_where_it_is_and_others_run_meanwhile() {
    let _turn = turn();
    assert!(!suspends(), "no thread of a runtime");
    for kthreads in [1, 2] {
        let source = TestSource::new(kthreads);
        let runtime = source.runtime().start().expect("kthreads");
        runtime.run(|| {
            let other = spawn(|| ());
            assert!(suspends(), "outside of sections");
            assert!(other.is_finished() || kthreads > 1, "it ran meanwhile");
            let section = NoPreempt::enter();
            assert!(!suspends(), "not inside of a section");
            drop(section);
            let kthread = current_kthread().expect("a thread of the runtime");
            source.orders(kthread).revoke();
            assert!(suspends());
            // Another kthread may continue this thread before the first one has left.
            while source.left() == 0 {
                yield_now();
            }
            other.join().expect("no panic");
        });
    }
}

/// What a handler returns to is what it interrupted, on whichever kthread: the kernel blocks no signal there, and `errno` is as before.
#[test]
fn a_suspended_thread_finds_its_signal_mask_and_errno() {
    let _turn = turn();
    let source = TestSource::new(2);
    let runtime = source.runtime().start().expect("kthreads");
    runtime.run(|| {
        for round in 0..1_000 {
            let _ = spawn(yield_now);
            let found = {
                let section = NoPreempt::enter();
                // SAFETY: always valid to call; a system call that fails.
                unsafe { libc::close(-1) };
                drop(section);
                suspends();
                // SAFETY: as above.
                unsafe { *libc::__errno_location() }
            };
            assert_eq!(found, libc::EBADF, "round {round}");
            // SAFETY: asks for the mask.
            let blocked = unsafe {
                let mut mask: libc::sigset_t = mem::zeroed();
                libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut mask);
                libc::sigismember(&raw const mask, libc::SIGUSR1)
            };
            assert_eq!(blocked, 0, "round {round}");
        }
    });
}
