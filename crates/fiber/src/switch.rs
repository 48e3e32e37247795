//! How the running fiber leaves its thread, and what it may know of that.
#![expect(unsafe_code, reason = "suspends the fiber that runs")]

use std::arch::asm;
use std::ptr::NonNull;
use std::sync::atomic::{Ordering, compiler_fence};
use std::thread;

use crate::context;
use crate::control::FiberControl;
use crate::fs;
use crate::held::Held;
use crate::kept::keeping_exceptions;
use crate::local;

/// Records for the running fiber the result of [`Fiber::take_held`](crate::Fiber::take_held) for a fiber that it runs within itself. Has no effect
/// outside a fiber.
#[cold]
pub fn note_held(held: Held) {
    let control = local::fiber();
    if control.is_null() {
        return;
    }
    // SAFETY: not null, so this thread's current fiber.
    let control = unsafe { &*control };
    control.held.set(held);
    control.is_held.set(true);
}

/// Whether the caller runs in a fiber.
#[inline]
pub fn in_fiber() -> bool {
    !local::fiber().is_null()
}

/// The number of suspensions of the running fiber so far; 0 outside of a fiber. Code that measures its own time compares two values: if they
/// differ, other code ran in between.
#[inline]
pub fn suspensions() -> u64 {
    let control = local::fiber();
    if control.is_null() {
        return 0;
    }
    // SAFETY: not null, so this thread's current fiber.
    unsafe { (*control).suspensions.get() }
}

/// The number of times so far that a probe took time from the running fiber: its suspensions, and the slices that were
/// [renewed](crate::Attached::set_renewal) on its stack; 0 outside of a fiber. Code that counts its own work leaves out the time between two readings
/// of the clock where this number differs.
#[inline]
pub fn pauses() -> u64 {
    let control = local::fiber();
    if control.is_null() {
        return 0;
    }
    // SAFETY: not null, so this thread's current fiber.
    let control = unsafe { &*control };
    control.suspensions.get() + control.renewals.get()
}

/// Whether the current fiber can be suspended here: it runs, and does not unwind.
///
/// A probe can stand in code that has set the current fiber and not switched to it yet, or has switched back already. A signal can come while the fiber leaves. A fiber that unwinds has
/// raised the standard library's thread-local count of panics, which other fibers must not see: unless it has one of its own.
///
/// # Safety
/// `control` is this thread's current fiber.
#[inline]
pub(crate) unsafe fn may_leave(control: NonNull<FiberControl>) -> bool {
    // SAFETY: the control lives as long as its fiber, which is current.
    let control = unsafe { control.as_ref() };
    control.holds(stack_pointer())
        && !control.is_leaving.get()
        && control.shadow.may_leave()
        && (control.owns_thread_state || !thread::panicking())
}

/// Suspends the fiber. Returns whether it must unwind.
///
/// # Safety
/// `control` is this thread's current fiber, and [`may_leave`].
#[inline(always)]
pub(crate) unsafe fn leave(control: NonNull<FiberControl>) -> bool {
    // SAFETY: the control lives as long as its fiber; the caller's promise.
    unsafe {
        if control.as_ref().owns_thread_state {
            leave_with_thread(control)
        } else {
            leave_plain(control)
        }
    }
}

/// As [`leave`], of a fiber that owns a thread's state.
///
/// # Safety
/// As there.
#[inline(always)]
pub(crate) unsafe fn leave_with_thread(control: NonNull<FiberControl>) -> bool {
    // SAFETY: it runs, so it was entered; between the two switches nothing here uses a thread-local variable.
    unsafe {
        let fiber = control.as_ref();
        fiber.suspensions.set(fiber.suspensions.get() + 1);
        fiber.is_leaving.set(true);
        compiler_fence(Ordering::SeqCst);
        let base = fiber.resumer_base.get();
        fiber.shadow.departing_with_thread();
        fs::set_base(base);
        let unwind = context::leave(control.as_ptr());
        fiber.shadow.arrived_with_thread();
        unwind
    }
}

/// As [`leave`], of a fiber that has no thread's state.
///
/// # Safety
/// As there.
#[inline(always)]
pub(crate) unsafe fn leave_plain(control: NonNull<FiberControl>) -> bool {
    // SAFETY: the control lives as long as its fiber.
    let suspensions = unsafe { &control.as_ref().suspensions };
    suspensions.set(suspensions.get() + 1);
    keeping_exceptions(move || {
        // SAFETY: it runs, so it was entered.
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
