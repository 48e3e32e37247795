//! Signal masks of jobs.
//!
//! The kernel keeps a mask for a thread. A job that changes it would leave it to the next job of its thread, and go on without it elsewhere. So the functions that change a mask note
//! it in the fiber that runs: when the fiber leaves, the thread has the mask again that it had, and the fiber's own comes back with the fiber. Jobs that change no mask cost no system call.
#![expect(unsafe_code, reason = "stands before two functions of the C library")]

use std::ffi::c_int;
use std::ptr::NonNull;
use std::{mem, ptr};

use crate::control::FiberControl;
use crate::kernel_mask::{RESERVED, change, replace};
use crate::local;
use crate::signal_frames::in_handler;

impl FiberControl {
    /// It is about to run in the calling thread.
    #[inline(always)]
    pub(crate) fn entering_mask(&self) {
        if self.has_own_mask.get() {
            take_own_mask(self);
        }
    }

    /// It has left.
    #[inline(always)]
    pub(crate) fn left_mask(&self) {
        if self.has_own_mask.get() {
            leave_own_mask(self);
        }
    }
}

// No methods: whoever switches fibers refers to these, and so links the object file of this module, with the C library's functions below. Nothing else makes a linker
// take them that has met another definition first, such as a sanitizer's.
#[cold]
#[inline(never)]
fn take_own_mask(control: &FiberControl) {
    control.thread_mask.set(replace(control.own_mask.get()));
}

#[cold]
#[inline(never)]
fn leave_own_mask(control: &FiberControl) {
    let own_mask = replace(control.thread_mask.get());
    control.own_mask.set(own_mask);
    control.has_own_mask.set(control.is_suspended());
}

/// Notes that the fiber that runs is about to have a mask of its own, and returns the fiber if it had none. Noted before the change: a probe in a handler that the change
/// lets in may suspend the fiber. A handler's own changes are not noted: the kernel takes them back at the handler's end.
fn note_first() -> Option<NonNull<FiberControl>> {
    let fiber = NonNull::new(local::fiber())?;
    // SAFETY: this thread's current fiber, which lives.
    let control = unsafe { fiber.as_ref() };
    if control.has_own_mask.get() || in_handler(fiber) {
        return None;
    }
    let mut now = 0;
    // SAFETY: only asks.
    unsafe { change(libc::SIG_BLOCK, ptr::null(), &raw mut now) };
    control.thread_mask.set(now);
    control.has_own_mask.set(true);
    Some(fiber)
}

/// As the C library's function of the name, and notes in the fiber that runs that it has a mask of its own.
///
/// # Safety
/// As there.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn pthread_sigmask(
    how: c_int,
    set: *const libc::sigset_t,
    before: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: the caller's promises; a set of the C library's begins with the kernel's.
    unsafe {
        let mask = set.as_ref().map(|set| {
            let mask = ptr::from_ref(set).cast::<u64>().read();
            // Nobody blocks those.
            if how == libc::SIG_UNBLOCK {
                mask
            } else {
                mask & !RESERVED
            }
        });
        let noted = mask.and_then(|_| note_first());
        let mut was = 0;
        let given = mask.as_ref().map_or(ptr::null(), ptr::from_ref);
        if change(how, given, &raw mut was) != 0 {
            if let Some(fiber) = noted {
                fiber.as_ref().has_own_mask.set(false);
            }
            return libc::EINVAL;
        }
        if let Some(before) = before.as_mut() {
            *before = mem::zeroed();
            ptr::from_mut(before).cast::<u64>().write(was);
        }
    }
    0
}

/// As [`pthread_sigmask`], with the error in `errno`.
///
/// # Safety
/// As the C library's.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn sigprocmask(
    how: c_int,
    set: *const libc::sigset_t,
    before: *mut libc::sigset_t,
) -> c_int {
    // SAFETY: the caller's promises.
    let error = unsafe { pthread_sigmask(how, set, before) };
    if error == 0 {
        return 0;
    }
    // SAFETY: this thread's.
    unsafe { *libc::__errno_location() = error };
    -1
}
