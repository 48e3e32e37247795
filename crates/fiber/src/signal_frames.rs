//! Whether code runs in a signal handler, where it must not be suspended: what the handler interrupted may hold a lock of the C library's.
//!
//! A handler on an alternate stack is off the fiber's stack. One on the fiber's own lacks the [mark](crate::kept::OUTSIDE_HANDLERS) in the x87 unit's control word, which a probe's slow path saves
//! anyway. Other code may lose the mark too, as by `fninit`. So where it is missing the stack is searched for a handler's return address; without one, the mark is set again.
#![expect(unsafe_code, reason = "reads the stack below its caller's frames")]

use std::arch::asm;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::control::FiberControl;
use crate::kept;
use crate::kernel_action::KernelAction;

/// Linux has signals 1 to 64 (`SIGRTMAX`).
const SIGNALS: i32 = 64;

/// Whether the calling code, which runs in this fiber, is in a handler that interrupted the fiber.
#[inline]
pub(crate) fn in_handler(fiber: NonNull<FiberControl>) -> bool {
    kept::lacks_mark() && is_confirmed(fiber)
}

#[cold]
#[inline(never)]
fn is_confirmed(fiber: NonNull<FiberControl>) -> bool {
    let here: usize;
    // SAFETY: reads a register; the fiber is the one that runs.
    let fiber = unsafe {
        asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags));
        fiber.as_ref()
    };
    // Our own handler suspends what it interrupted, and has looked at that.
    if fiber.in_handler.get() {
        return false;
    }
    if is_frame_above(fiber, here) {
        return true;
    }
    kept::mark_outside_handlers();
    false
}

/// Whether code that a signal interrupted in this fiber is itself in a handler.
///
/// # Safety
/// `context` is that of the signal being handled.
pub(crate) unsafe fn interrupted_handler(
    fiber: NonNull<FiberControl>,
    context: *mut libc::ucontext_t,
) -> bool {
    // SAFETY: the caller's promise; the kernel stores the x87 unit's state with it, and loads it again at the end.
    unsafe {
        let registers = &(*context).uc_mcontext;
        let Some(float) = registers.fpregs.as_mut() else {
            return false;
        };
        if !kept::lacks_mark_in(float.cwd) {
            return false;
        }
        let at = registers.gregs[libc::REG_RSP as usize] as usize;
        if is_frame_above(fiber.as_ref(), at) {
            return true;
        }
        float.cwd |= kept::OUTSIDE_HANDLERS;
    }
    false
}

/// Whether a word of the fiber's stack from `at` on is a return address of handlers: the kernel puts it below the registers that it saves. A word that is left there from before
/// counts too, and so does another stack, so that the answer is never a wrong no.
#[cold]
fn is_frame_above(fiber: &FiberControl, at: usize) -> bool {
    if !fiber.holds(at) {
        return true; // An alternate stack's.
    }
    let last = LAST_FOUND.load(Ordering::Relaxed);
    if last != 0 && holds_word(fiber, at, &[last]).is_some() {
        return true;
    }
    let found = holds_word(fiber, at, &return_addresses());
    if let Some(address) = found {
        LAST_FOUND.store(address, Ordering::Relaxed);
    }
    found.is_some()
}

/// The return address that was found last. To ask for all takes 64 system calls, at each probe of a handler.
static LAST_FOUND: AtomicUsize = AtomicUsize::new(0);

/// The first word of the fiber's stack from `at` on that is one of these, and not 0.
fn holds_word(fiber: &FiberControl, at: usize, words: &[usize]) -> Option<usize> {
    let mut at = at.next_multiple_of(8);
    while at < fiber.stack_base {
        let word: usize;
        // In assembly: between the frames a sanitizer allows nobody to read.
        // SAFETY: inside the stack of the running fiber.
        unsafe {
            asm!("mov {}, [{}]", out(reg) word, in(reg) at, options(nostack, preserves_flags, readonly));
        }
        if word != 0 && words.contains(&word) {
            return Some(word);
        }
        at += 8;
    }
    None
}

/// Where the process's handlers return to: mostly the same function of the C library's.
fn return_addresses() -> [usize; SIGNALS as usize] {
    let mut addresses = [0; _];
    for (signal, address) in (1..=SIGNALS).zip(&mut addresses) {
        if let Some(action) = KernelAction::of(signal).filter(KernelAction::is_function) {
            *address = action.restorer;
        }
    }
    addresses
}
