//! Suspending the running fiber by its own wish.
#![expect(unsafe_code, reason = "suspends the fiber that runs")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::NonNull;
use std::thread;

use crate::context;
use crate::control::FiberControl;
use crate::kept::keeping_control_words;
use crate::local;
use crate::signal_frames::in_handler;
use crate::switch::{leave, leave_plain, leave_with_thread};

/// Suspends the calling fiber until it is resumed. Has no effect outside a fiber, while the thread panics, or in a signal's handler of a fiber with a
/// [thread's state](crate::Stacks::of_donors); without one, handlers must not call it. Inside a no-preempt section the
/// fiber yields at the section's end. A [strand](crate::Strand) goes back to its scheduler, which takes it for one that a probe suspended.
///
/// Unlike a probe, this does not preserve `errno` and the floating-point control words (rounding mode): restore them before the call.
#[inline(always)]
pub fn yield_now() {
    let (fiber, sections) = local::fiber_and_sections();
    let Some(control) = NonNull::new(fiber) else {
        return;
    };
    if sections > 0 {
        local::set_deferred(1);
        return;
    }
    // SAFETY: this thread's current fiber, which lives.
    if unsafe { control.as_ref().owns_thread_state } {
        return yield_with_thread(control);
    }
    if thread::panicking() {
        return;
    }
    // SAFETY: this thread's current fiber, which runs: the code that sets the current fiber does not call this before the switch.
    if unsafe { leave_plain(control) } {
        context::unwind();
    }
}

/// As [`yield_now`], in a fiber that owns a thread's state. Of its own, so that the callers of `yield_now` have the plain switch alone among their code.
#[inline(never)]
fn yield_with_thread(control: NonNull<FiberControl>) {
    // Looking takes a fifth of a switch between plain fibers, whose code minds itself.
    if in_handler(control) {
        return;
    }
    // SAFETY: as in `yield_now`.
    if unsafe { leave_with_thread(control) } {
        context::unwind();
    }
}

/// Calls the function in the fiber's own thread, *at home*: for what the kernel must know as the caller's, such as a change of credentials, a contended lock with priority
/// inheritance, `pthread_exit`, a virtual machine's attached thread, and for calls that block for long. The fiber leaves its worker meanwhile, and is suspended
/// once more when the function has returned.
///
/// It is called where the caller is if that is no fiber with a [thread's state](crate::Stacks::of_donors), or inside a no-preempt section, or if whoever resumes the fiber does not
/// [send it home](crate::SendFiber::take_home_wish).
pub fn on_own_thread<R>(call: impl FnOnce() -> R) -> R {
    let (fiber, sections) = local::fiber_and_sections();
    let Some(control) = NonNull::new(fiber) else {
        return call();
    };
    // SAFETY: this thread's current fiber, which lives.
    let fiber = unsafe { control.as_ref() };
    if !fiber.owns_thread_state || sections > 0 || in_handler(control) {
        return call();
    }
    fiber.wants_home.set(true);
    // The control words are the fiber's, at home too.
    keeping_control_words(|| {
        // SAFETY: current, and outside of sections; a fiber with a thread's state is not unwound from outside while it is sent home.
        unsafe { leave(control) };
    });
    fiber.wants_home.set(false);
    let result = catch_unwind(AssertUnwindSafe(call));
    keeping_control_words(|| {
        // SAFETY: as above: it is still, or again, the current fiber of whoever runs it.
        unsafe { leave(control) };
    });
    result.unwrap_or_else(|panic| resume_unwind(panic))
}
