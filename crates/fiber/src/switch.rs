//! Leaving a fiber for whoever runs it.
#![expect(unsafe_code, reason = "suspends the fiber that runs")]

use std::arch::asm;
use std::ptr::NonNull;
use std::thread;

use crate::context;
use crate::control::FiberControl;
use crate::kept::keeping_exceptions;
use crate::local;

/// Suspends the fiber that calls this, until it is resumed. Does nothing outside a fiber, or while the thread panics;
/// inside a no-preempt section, the fiber yields at its end.
///
/// Unlike a probe, this does not keep `errno` and the floating-point control words (rounding mode): whoever changed them sets them back first.
#[inline]
pub fn yield_now() {
    let (fiber, sections) = local::fiber_and_sections();
    let Some(control) = NonNull::new(fiber) else {
        return;
    };
    if sections > 0 {
        local::set_deferred(1);
        return;
    }
    if thread::panicking() {
        return;
    }
    // SAFETY: this thread's current fiber, which runs: nothing that says which is to run calls this before it does.
    if unsafe { leave(control) } {
        context::unwind();
    }
}

/// Whether the caller runs in a fiber.
#[inline]
pub fn in_fiber() -> bool {
    !local::fiber().is_null()
}

/// How often the fiber that runs was suspended in its jobs so far; 0 outside of one. Code that measures itself learns from it that the
/// time since its last reading was not its own.
#[inline]
pub fn suspensions() -> u64 {
    let control = local::fiber();
    if control.is_null() {
        return 0;
    }
    // SAFETY: not null, so this thread's current fiber.
    unsafe { (*control).suspensions.get() }
}

/// Whether the fiber that is said to run can be suspended here: it really runs, and not to be unwound.
///
/// A probe can stand in code that has said which fiber runs and not yet switched to it, or switched back already. And how many panics a thread is
/// unwinding is a thread-local count of the standard library's, which another fiber must not find raised.
///
/// # Safety
/// `control` is this thread's current fiber.
#[inline]
pub(crate) unsafe fn may_leave(control: NonNull<FiberControl>) -> bool {
    // SAFETY: the control lives as long as its fiber, which is current.
    let control = unsafe { control.as_ref() };
    control.holds(stack_pointer()) && control.shadow.may_leave() && !thread::panicking()
}

/// Suspends the fiber. Returns whether it is to unwind.
///
/// # Safety
/// `control` is this thread's current fiber, and [`may_leave`].
#[inline(always)]
pub(crate) unsafe fn leave(control: NonNull<FiberControl>) -> bool {
    // SAFETY: the control lives as long as its fiber.
    let suspensions = unsafe { &control.as_ref().suspensions };
    suspensions.set(suspensions.get() + 1);
    keeping_exceptions(move || {
        // SAFETY: it runs, so somebody entered it.
        unsafe {
            let shadow = &control.as_ref().shadow;
            shadow.departing();
            let unwind = context::leave(control.as_ptr());
            shadow.arrived();
            unwind
        }
    })
}

#[inline(always)]
fn stack_pointer() -> usize {
    let here: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, rsp", out(reg) here, options(nomem, nostack, preserves_flags)) };
    here
}
