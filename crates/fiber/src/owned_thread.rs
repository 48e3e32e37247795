//! A fiber and the thread whose state it owns: both change hands together.
#![expect(unsafe_code, reason = "enters code with another thread's variables")]

use std::ptr::NonNull;

use crate::context;
use crate::control::FiberControl;
use crate::credentials::stand_before_handler;
use crate::donor::Donor;
use crate::fs;
use crate::handover::ThreadWords;
use crate::kernel_mask;
use crate::sanitizer;

/// Gives a new fiber the state of a parked donor.
///
/// # Safety
/// The donor is parked and lends its state to nobody else; the control is the fiber's.
#[cold]
pub(crate) unsafe fn take_thread(donor: &Donor, control: NonNull<FiberControl>) {
    stand_before_handler();
    // SAFETY: the caller's promise.
    unsafe {
        ThreadWords::at(donor.base()).set_fiber(control.as_ptr());
        control.as_ref().home.set(donor.home());
        donor.has_fiber(
            control.as_ptr().cast(),
            run_at_home,
            &control.as_ref().shown,
        );
    }
}

/// As [`context::enter`], for a fiber that owns a thread's state: the thread-local variables change with the stack.
///
/// # Safety
/// As there; nothing else runs the fiber.
#[inline(always)]
pub(crate) unsafe fn enter_with_thread(
    control: NonNull<FiberControl>,
    from: usize,
    unwind: bool,
) -> usize {
    // SAFETY: the control lives as long as its fiber, which is the caller's until it is entered, and again when it has left. In between nothing here uses a
    // thread-local variable.
    unsafe {
        let fiber = control.as_ref();
        fiber.entering_mask();
        let own_base = fs::base();
        let (own, its) = (ThreadWords::at(own_base), ThreadWords::at(fiber.base));
        own.lend(its);
        fiber.resumer_base.set(own_base);
        fiber.shadow.entering_with_thread();
        fs::set_base(fiber.base);
        fiber.shadow.arrived_with_thread();
        own.pass_timer_on(its);
        let (left_at, _) = context::enter(control, from, unwind);
        fiber.shadow.left_with_thread();
        own.take_back(its);
        fiber.left_at.set(left_at);
        if fiber.is_suspended() {
            fiber.shown.set(left_at);
        }
        fiber.left_mask();
        left_at
    }
}

/// A parked donor goes on with its fiber, in its own thread.
///
/// It uses no thread-local variable after the fiber has left: another thread may go on with it.
///
/// # Safety
/// Called by the parked donor; the fiber is suspended.
unsafe extern "C" fn run_at_home(donor: *const Donor) {
    // SAFETY: whoever gave the order leaves the fiber alone until it is carried out.
    unsafe {
        sanitizer::acquire(donor);
        let control = NonNull::new_unchecked((*donor).fiber().cast::<FiberControl>());
        let fiber = control.as_ref();
        fiber.resumer_base.set((*donor).base());
        fiber.shown.set((*donor).home());
        // Handlers of the program run as in a worker, and children that are started here inherit what a worker's would.
        let parked = kernel_mask::replace((*donor).mask());
        fiber.entering_mask();
        let (left_at, _) = context::enter(control, fiber.left_at.get(), false);
        fiber.left_at.set(left_at);
        if fiber.is_suspended() {
            fiber.shown.set(left_at);
        }
        fiber.left_mask();
        kernel_mask::replace(parked);
        sanitizer::release(donor);
    }
}
