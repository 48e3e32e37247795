//! Signals that programs handle themselves, in fibers: a handler is never suspended, and a job's signal mask is its own.
#![expect(unsafe_code, reason = "handlers, masks, the x87 unit")]

mod common;

use std::arch::asm;
use std::mem;
use std::process::Command;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use common::jobs::{Job, LIMIT, STACK_BYTES, fiber, runs_over_home, turn_at_home};
use common::signals::{SignalTimer, handle};
use headway_fiber::{
    Asker, Attached, BySignal, NoPreempt, Preempter, Stacks, Turn, YieldFlag, checkpoint, in_fiber,
    on_own_thread, say_long, suspensions, yield_now,
};

/// Handlers belong to the process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stacks of both kinds, under their names.
fn both_kinds() -> [(&'static str, Stacks); 2] {
    [
        ("plain", Stacks::new(STACK_BYTES, 1).unwrap()),
        ("of donors", Stacks::of_donors(STACK_BYTES, 1).unwrap()),
    ]
}

fn raise(signal: libc::c_int) {
    // SAFETY: to this thread; the tests handle it.
    assert_eq!(unsafe { libc::raise(signal) }, 0);
}

/// The flag by which a handler has its own thread asked to yield, and the epoch.
static FLAG: AtomicPtr<YieldFlag> = AtomicPtr::new(ptr::null_mut());
static EPOCH: AtomicU64 = AtomicU64::new(0);
/// Suspensions inside of handlers, and handlers.
static SUSPENDED_INSIDE: AtomicU64 = AtomicU64::new(0);
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// Whether the fiber has a thread's state.
static OWNS_THREAD_STATE: AtomicBool = AtomicBool::new(false);

/// Asks its own thread to yield, and meets all that yields.
extern "C" fn meets_probes(_: libc::c_int) {
    let before = suspensions();
    // SAFETY: the flag lives while the test runs.
    let flag = unsafe { &*FLAG.load(Ordering::Acquire) };
    flag.raise(EPOCH.load(Ordering::Acquire));
    for _ in 0..10 {
        checkpoint();
        if OWNS_THREAD_STATE.load(Ordering::Relaxed) {
            yield_now();
        }
        let section = NoPreempt::enter();
        checkpoint();
        drop(section);
    }
    say_long();
    SUSPENDED_INSIDE.fetch_add(suspensions() - before, Ordering::Relaxed);
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

/// Runs a job with a handler of these flags in both kinds of fibers, as the first assignment, and resumes it to its end.
fn runs_with_handler(flags: libc::c_int, job: fn(), turns: u64) {
    let _alone = alone();
    handle(libc::SIGUSR1, meets_probes, flags);
    for (kind, stacks) in both_kinds() {
        let attached = Attached::new();
        let mut flag = attached.flag();
        FLAG.store(&raw mut flag, Ordering::Release);
        let handled = HANDLED.load(Ordering::Relaxed);
        let mut fiber = fiber(&stacks);
        OWNS_THREAD_STATE.store(fiber.owns_thread_state(), Ordering::Relaxed);
        EPOCH.store(1, Ordering::Release);
        attached.begin_on(&fiber, 1);
        let mut taken = 0;
        let mut turn = fiber.run(Some(Box::new(job)), 0);
        while matches!(turn, Turn::Yielded) {
            taken += 1;
            let epoch = EPOCH.fetch_add(1, Ordering::AcqRel) + 1;
            attached.begin_on(&fiber, epoch);
            turn = fiber.resume();
        }
        assert!(HANDLED.load(Ordering::Relaxed) > handled, "{kind}");
        assert_eq!(SUSPENDED_INSIDE.load(Ordering::Relaxed), 0, "{kind}");
        assert_eq!(
            taken, turns,
            "{kind}: the request to yield stays for the next probe"
        );
    }
}

fn is_interrupted_by_a_handler() {
    for _ in 0..20 {
        raise(libc::SIGUSR1);
        let before = suspensions();
        checkpoint();
        assert_eq!(suspensions(), before + 1);
    }
}

#[test]
fn a_handler_on_the_jobs_stack_is_not_suspended() {
    runs_with_handler(0, is_interrupted_by_a_handler, 20);
}

#[test]
fn a_handler_on_an_alternate_stack_is_not_suspended() {
    runs_with_handler(libc::SA_ONSTACK, is_interrupted_by_a_handler, 20);
}

/// Code that initialises the x87 unit takes away by what handlers are known: it is interrupted all the same.
#[test]
fn a_job_that_initialises_the_x87_unit_yields() {
    fn initialises_it() {
        for _ in 0..20 {
            // SAFETY: no value is in its registers.
            unsafe { asm!("fninit", options(nostack)) };
            let before = suspensions();
            yield_now();
            assert_eq!(suspensions(), before + 1);
        }
        raise(libc::SIGUSR1);
    }
    runs_with_handler(0, initialises_it, 20);
}

static ASKER: AtomicPtr<Asker> = AtomicPtr::new(ptr::null_mut());

/// Sends its own thread the signal that suspends jobs anywhere.
extern "C" fn is_signalled(_: libc::c_int) {
    let before = suspensions();
    // SAFETY: as above.
    let asker = unsafe { &*ASKER.load(Ordering::Acquire) };
    asker.ask(EPOCH.load(Ordering::Acquire));
    SUSPENDED_INSIDE.fetch_add(suspensions() - before, Ordering::Relaxed);
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn a_signal_does_not_suspend_a_handler() {
    let _alone = alone();
    handle(libc::SIGUSR1, is_signalled, 0);
    for (kind, stacks) in both_kinds() {
        let attached = Attached::new();
        // SAFETY: the job computes, and calls what may be suspended.
        let thread = unsafe { BySignal::new(&attached) }.unwrap();
        let mut asker = thread.asker().unwrap();
        ASKER.store(&raw mut asker, Ordering::Release);
        let mut fiber = fiber(&stacks);
        EPOCH.store(1, Ordering::Release);
        attached.begin_on(&fiber, 1);
        let job: Job = Box::new(|| {
            raise(libc::SIGUSR1);
            let before = suspensions();
            checkpoint();
            assert_eq!(suspensions(), before + 1, "the request to yield stays");
        });
        assert!(matches!(fiber.run(Some(job), 0), Turn::Yielded), "{kind}");
        assert_eq!(SUSPENDED_INSIDE.load(Ordering::Relaxed), 0, "{kind}");
        attached.begin_on(&fiber, 2);
        assert!(matches!(fiber.resume(), Turn::Finished(_)), "{kind}");
    }
}

/// A handler that was suspended inside an allocation would leave the allocator locked, for all other jobs.
#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn handlers_interrupt_allocations_and_meet_probes() {
    extern "C" fn meets_one(_: libc::c_int) {
        let before = suspensions();
        checkpoint();
        SUSPENDED_INSIDE.fetch_add(suspensions() - before, Ordering::Relaxed);
        HANDLED.fetch_add(u64::from(in_fiber()), Ordering::Relaxed);
    }
    let _alone = alone();
    handle(libc::SIGUSR2, meets_one, libc::SA_RESTART);
    for (kind, stacks) in both_kinds() {
        let attached = Attached::new();
        let flag = attached.flag();
        let timer = SignalTimer::of_this_thread(libc::SIGUSR2, 50_000);
        let handled = HANDLED.load(Ordering::Relaxed);
        let job = || -> Job {
            Box::new(|| {
                for round in 0..200_usize {
                    let kept = vec![round; 1 + round % 50];
                    checkpoint();
                    assert_eq!(kept[round % kept.len()], round);
                }
            })
        };
        let mut fibers = [&stacks; 3].map(fiber);
        let (mut epoch, begun) = (0, Instant::now());
        while HANDLED.load(Ordering::Relaxed) < handled + 500 {
            assert!(begun.elapsed() < LIMIT, "{kind}: handlers run");
            for fiber in &mut fibers {
                epoch += 1;
                attached.begin_on(fiber, epoch);
                flag.raise(epoch);
                let _turn = if fiber.is_suspended() {
                    fiber.resume()
                } else {
                    fiber.run(Some(job()), 0)
                };
            }
        }
        drop(timer);
        for fiber in &mut fibers {
            attached.begin_on(fiber, u64::MAX - 1);
            while fiber.is_suspended() {
                let _turn = fiber.resume();
            }
        }
        assert_eq!(SUSPENDED_INSIDE.load(Ordering::Relaxed), 0, "{kind}");
    }
}

/// The calling thread's mask, as the kernel has it.
fn mask() -> u64 {
    let mut mask = 0_u64;
    // SAFETY: asks.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            0,
            ptr::null::<u64>(),
            &raw mut mask,
            8,
        )
    };
    mask
}

fn block(signal: libc::c_int) {
    // SAFETY: a set of one signal.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigaddset(&raw mut set, signal);
        assert_eq!(
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()),
            0
        );
    }
}

const fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

#[test]
#[cfg_attr(headway_tsan, ignore = "it stands before `pthread_sigmask` itself")]
fn a_job_leaves_its_mask_to_nobody_and_finds_it_again() {
    for (kind, stacks) in both_kinds() {
        let before = mask();
        let mut fiber = fiber(&stacks);
        let job: Job = Box::new(move || {
            block(libc::SIGUSR1);
            yield_now();
            assert_eq!(mask(), before | bit(libc::SIGUSR1));
            block(libc::SIGUSR2);
            yield_now();
            assert_eq!(mask(), before | bit(libc::SIGUSR1) | bit(libc::SIGUSR2));
        });
        assert!(matches!(fiber.run(Some(job), 0), Turn::Yielded));
        assert_eq!(mask(), before, "{kind}: while it is suspended");
        // Elsewhere too.
        let turn = thread::scope(|scope| {
            let went_on = scope.spawn(|| {
                let here = mask();
                let turn = fiber.resume();
                assert_eq!(mask(), here, "{kind}: elsewhere");
                turn
            });
            went_on.join().unwrap()
        });
        assert!(matches!(turn, Turn::Yielded));
        assert!(matches!(fiber.resume(), Turn::Finished(_)));
        assert_eq!(mask(), before, "{kind}: after it");
        // The next job begins with the thread's.
        let next: Job = Box::new(move || assert_eq!(mask(), before));
        assert!(matches!(fiber.run(Some(next), 0), Turn::Finished(_)));
        // One that ends with another mask.
        let ends: Job = Box::new(|| block(libc::SIGUSR1));
        assert!(matches!(fiber.run(Some(ends), 0), Turn::Finished(_)));
        assert_eq!(mask(), before, "{kind}: after one that ended so");
    }
}

#[test]
fn a_job_at_home_has_the_mask_of_a_worker_and_leaves_it_to_nobody() {
    let stacks = Stacks::of_donors(STACK_BYTES, 1).unwrap();
    let mut fiber = fiber(&stacks);
    let job: Job = Box::new(|| {
        yield_now();
        // SAFETY: an empty set.
        unsafe {
            let none: libc::sigset_t = mem::zeroed();
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
        }
        assert_eq!(mask(), 0);
        yield_now();
        assert_eq!(mask(), 0);
    });
    let before = mask();
    assert!(matches!(fiber.run(Some(job), 0), Turn::Yielded));
    for ends in [false, true] {
        let turn = turn_at_home(&mut fiber);
        assert_eq!(matches!(turn, Turn::Finished(_)), ends);
    }
    // In the donor's own thread again, where its maker's mask holds.
    let asks: Job = Box::new(move || {
        yield_now();
        assert_eq!(mask(), before);
    });
    assert!(matches!(fiber.run(Some(asks), 0), Turn::Yielded));
    let _turn = turn_at_home(&mut fiber);
    assert_eq!(mask(), before);
}

/// What a started program blocks, as `/proc` says.
fn mask_of_a_child() -> u64 {
    let grep = Command::new("grep")
        .args(["SigBlk", "/proc/self/status"])
        .output();
    let said = String::from_utf8(grep.unwrap().stdout).unwrap();
    let digits = said.split_whitespace().last().unwrap();
    u64::from_str_radix(digits, 16).unwrap()
}

#[test]
fn a_child_that_is_started_at_home_inherits_a_workers_mask() {
    let stacks = Stacks::of_donors(STACK_BYTES, 1).unwrap();
    let mut fiber = fiber(&stacks);
    let before = mask_of_a_child();
    let job: Job = Box::new(move || assert_eq!(on_own_thread(mask_of_a_child), before));
    runs_over_home(&mut fiber, job);
}

static FAULTS: AtomicU64 = AtomicU64::new(0);

/// Goes on behind the instruction `ud2`, of two bytes.
extern "C" fn skips_two(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    FAULTS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the context of the signal.
    unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] += 2 };
}

#[test]
fn a_fault_at_home_reaches_the_programs_handler() {
    let _alone = alone();
    let stacks = Stacks::of_donors(STACK_BYTES, 1).unwrap();
    let mut fiber = fiber(&stacks);
    // SAFETY: a handler of the type that the flags say; it goes on behind the instruction.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = skips_two as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaction(libc::SIGILL, &raw const action, ptr::null_mut());
    }
    let before = FAULTS.load(Ordering::Relaxed);
    let job: Job = Box::new(|| {
        // SAFETY: the handler skips it.
        on_own_thread(|| unsafe { asm!("ud2") });
    });
    runs_over_home(&mut fiber, job);
    assert_eq!(FAULTS.load(Ordering::Relaxed) - before, 1);
}

/// The control and status register of the vector unit.
fn vector_control() -> u32 {
    let mut words = 0_u32;
    // SAFETY: stores a register.
    unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut words, options(nostack)) };
    words
}

#[test]
fn a_rounding_mode_over_a_call_at_home_is_the_jobs_own() {
    /// Rounds upwards.
    const UPWARDS: u32 = 2 << 13;
    let _attached = Attached::new();
    let stacks = Stacks::of_donors(STACK_BYTES, 1).unwrap();
    let mut fiber = fiber(&stacks);
    let job: Job = Box::new(|| {
        let upwards = vector_control() | UPWARDS;
        // SAFETY: nothing here rounds.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const upwards, options(nostack)) };
        on_own_thread(|| assert_eq!(vector_control() & UPWARDS, UPWARDS));
        assert_eq!(vector_control() & UPWARDS, UPWARDS);
    });
    assert!(matches!(fiber.run(Some(job), 0), Turn::Yielded));
    assert_eq!(vector_control() & UPWARDS, 0, "the worker's own");
    let _turn = turn_at_home(&mut fiber);
    assert!(matches!(fiber.resume(), Turn::Finished(_)));
}

/// Blocks another signal.
extern "C" fn changes_the_mask(_: libc::c_int) {
    block(libc::SIGUSR2);
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn a_handlers_change_of_the_mask_ends_with_the_handler() {
    let _alone = alone();
    handle(libc::SIGUSR1, changes_the_mask, 0);
    for (kind, stacks) in both_kinds() {
        let _attached = Attached::new();
        let before = mask();
        let mut fiber = fiber(&stacks);
        let handled = HANDLED.load(Ordering::Relaxed);
        let job: Job = Box::new(move || {
            raise(libc::SIGUSR1);
            assert_eq!(mask(), before);
            yield_now();
            assert_eq!(mask(), before);
        });
        assert!(matches!(fiber.run(Some(job), 0), Turn::Yielded));
        assert_eq!(mask(), before, "{kind}: while it is suspended");
        assert!(matches!(fiber.resume(), Turn::Finished(_)));
        assert_eq!(mask(), before, "{kind}: after it");
        assert_eq!(HANDLED.load(Ordering::Relaxed) - handled, 1, "{kind}");
    }
}

#[test]
fn functions_of_masks_do_what_the_c_librarys_do() {
    // SAFETY: sets, and numbers that mean nothing.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        let mut was: libc::sigset_t = mem::zeroed();
        assert_eq!(
            libc::pthread_sigmask(99, &raw const set, ptr::null_mut()),
            libc::EINVAL
        );
        assert_eq!(libc::sigprocmask(99, &raw const set, ptr::null_mut()), -1);
        assert_eq!(*libc::__errno_location(), libc::EINVAL);
        libc::sigaddset(&raw mut set, libc::SIGUSR1);
        assert_eq!(
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, &raw mut was),
            0
        );
        assert_eq!(libc::sigismember(&raw const was, libc::SIGUSR1), 0);
        assert_eq!(
            libc::sigprocmask(libc::SIG_SETMASK, &raw const was, &raw mut set),
            0
        );
        assert_eq!(libc::sigismember(&raw const set, libc::SIGUSR1), 1);
        libc::sigfillset(&raw mut set);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const set, ptr::null_mut());
        assert_eq!(mask() & 3 << 31, 0, "the C library's own are not blocked");
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const was, ptr::null_mut());
    }
}
