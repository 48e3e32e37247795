//! A signal interrupts a fiber at every instruction of a switch, by the processor's trap flag: where it leaves, where its job ends and where it is entered. Whoever
//! resumes it is another each time, in another thread after the signal, so a fiber that still went back to the one before would arrive in a frame that is gone.

#![expect(unsafe_code, reason = "signals, and fibers that are resumed")]

mod common;

use std::ffi::{c_int, c_void};
use std::hint::black_box;
use std::mem;
use std::ops::RangeFrom;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;

use common::AbortOnPanic;
use common::traps::{TRAP_FLAG, trap};
use headway_fiber::{Asker, Attached, BySignal, Preempter, SendFiber, Stacks, Turn, yield_now};

/// The handlers' frames lie on it.
const STACK_BYTES: usize = 64 << 10;

/// What the handler of the trap needs. Not in a variable of the thread: a fiber may have its own.
struct Plan {
    /// How many instructions are left until the signal comes.
    steps_left: AtomicU32,
    epoch: AtomicU64,
    asker: Mutex<Option<Asker>>,
}

/// What is left of the steps once the signal came.
const AFTER_SIGNAL: u32 = u32::MAX;

static PLAN: Plan = Plan {
    steps_left: AtomicU32::new(0),
    epoch: AtomicU64::new(0),
    asker: Mutex::new(None),
};

/// The signal is blocked here: it comes when this returns, at the instruction that was trapped.
extern "C" fn trapped(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    match PLAN.steps_left.fetch_sub(1, Relaxed) {
        0 => {}
        AFTER_SIGNAL => std::process::abort(), // A turn that was over goes on.
        _ => return,
    }
    // SAFETY: the context is that of the trap.
    let flags = unsafe {
        let context = &mut *context.cast::<libc::ucontext_t>();
        &mut context.uc_mcontext.gregs[libc::REG_EFL as usize]
    };
    *flags &= !(TRAP_FLAG as i64);
    let asker = PLAN.asker.try_lock().expect("no other thread asks");
    let asker = asker.as_ref().expect("the test gave it");
    asker.ask(PLAN.epoch.load(Relaxed));
}

fn handle_traps() {
    // SAFETY: a handler of the type that the flags say.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = trapped as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        libc::sigaddset(&raw mut action.sa_mask, libc::SIGURG);
        libc::sigaction(libc::SIGTRAP, &raw const action, ptr::null_mut());
    }
}

/// What a job has done.
#[derive(Debug, Default, PartialEq, Eq)]
struct Steps(u32);

/// The turns of a job that no signal interrupts.
const TURNS: u32 = 3;

/// Leaves at the end of all turns but the last.
#[inline(never)]
fn body(steps: &mut Steps) {
    for _ in 1..TURNS {
        steps.0 += 1;
        yield_now();
    }
    steps.0 += 1;
    black_box(steps);
}

/// Calls `turn` with so many frames of its own below the caller's.
#[inline(never)]
fn below(frames: u32, turn: &mut dyn FnMut() -> Turn<Steps>) -> Turn<Steps> {
    if frames == 0 {
        return turn();
    }
    let filled = black_box([u64::from(frames); 16]);
    let turn = below(frames - 1, turn);
    assert_eq!(black_box(filled), [u64::from(frames); 16]);
    turn
}

/// The next turn, in another thread.
fn resume_elsewhere(fiber: &mut SendFiber<Steps>, epoch: u64) -> Turn<Steps> {
    let resume = || {
        let attached = Attached::new();
        attached.begin_on(fiber, epoch);
        fiber.resume()
    };
    thread::scope(|scope| scope.spawn(resume).join().expect("the fiber goes on there"))
}

/// Runs the job, and signals after so many instructions from the begin of one of its turns on. Returns how many turns it took; nothing if that turn ended before the
/// signal came.
fn run_with_signal(
    (turn_stepped, steps): (u32, u32),
    fiber: &mut SendFiber<Steps>,
    attached: &Attached,
    epochs: &mut RangeFrom<u64>,
) -> Option<u32> {
    let (mut turns, mut came) = (0, true);
    loop {
        let epoch = epochs.next()?;
        attached.begin_on(fiber, epoch);
        PLAN.epoch.store(epoch, Relaxed);
        PLAN.steps_left.store(steps, Relaxed);
        let is_stepped = turns == turn_stepped;
        let turn = if turns == turn_stepped + 1 {
            resume_elsewhere(fiber, epoch)
        } else {
            below(turns % 3, &mut || {
                trap(is_stepped);
                if turns == 0 {
                    fiber.run(Steps::default(), 0)
                } else {
                    fiber.resume()
                }
            })
        };
        trap(false);
        turns += 1;
        assert!(turns <= TURNS + 1, "one signal, one turn more");
        if is_stepped {
            came = PLAN.steps_left.load(Relaxed) == AFTER_SIGNAL;
        }
        if turn != Turn::Yielded {
            assert_eq!(turn, Turn::Finished(Steps(TURNS)));
            return came.then_some(turns);
        }
    }
}

/// The address sanitizer makes the turns long: it sees every 31st instruction.
const STRIDE: u32 = if cfg!(headway_asan) { 31 } else { 1 };

/// A thread that got another's state may wait for ever.
const ENDLESS_S: u32 = 300;

/// Signals after 0, 1, 2 … instructions of each turn, until it has ended before the signal came.
fn interrupt_at_every_instruction(mut fiber: SendFiber<Steps>) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let attached = Attached::new();
    // SAFETY: the fiber computes with its own.
    let thread = unsafe { BySignal::new(&attached) }.expect("nobody else handles the signal");
    *PLAN.asker.lock().unwrap() = thread.asker();
    handle_traps();
    let _loud = AbortOnPanic;
    // SAFETY: nothing else here uses the process's alarm, which ends it.
    unsafe { libc::alarm(ENDLESS_S) };
    let mut epochs = 1..;
    for turn in 0..TURNS {
        let (mut steps, mut interruptions) = (0, 0);
        while let Some(turns) = run_with_signal((turn, steps), &mut fiber, &attached, &mut epochs) {
            steps += STRIDE;
            interruptions += turns - TURNS;
            assert!(steps < 10_000, "a turn has fewer instructions");
        }
        println!("turn {turn}: {interruptions} interruptions by signals at {steps} instructions");
        assert!(interruptions * STRIDE > 20 && steps > interruptions);
    }
    *PLAN.asker.lock().unwrap() = None;
    // SAFETY: as above.
    unsafe { libc::alarm(0) };
}

#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn a_fiber_is_interrupted_at_any_instruction_of_its_switches() {
    let stacks = Stacks::new(STACK_BYTES, 1).expect("there is memory for a stack");
    // SAFETY: its frames hold nothing of a thread's.
    let fiber = unsafe { headway_fiber::Fiber::new(stacks.take().unwrap(), body).migratable() };
    interrupt_at_every_instruction(fiber);
}

#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn a_fiber_that_owns_a_thread_is_interrupted_at_any_instruction_of_its_switches() {
    let stacks = Stacks::of_donors(STACK_BYTES, 1).expect("a thread can be made");
    let Ok(fiber) = SendFiber::owning_thread_state(stacks.take().unwrap(), body) else {
        unreachable!("the stack is a donor's")
    };
    interrupt_at_every_instruction(fiber);
}
