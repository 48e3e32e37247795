//! What a probe's slow path does, once the registers are safe: decide, and yield.
#![expect(unsafe_code, reason = "suspends the fiber that runs")]

use crate::abi::{NEVER, SELF_TIMED};
use crate::control::Control;
use crate::kept::keeping_control_words;
use crate::local;
use crate::switch::{leave, may_leave};

/// What made a probe call.
#[derive(Clone, Copy)]
enum Request {
    /// Another thread asks the assignment of this epoch to yield.
    Asked(u64),
    /// The deadline has passed.
    Late,
}

impl Request {
    /// Takes the request back. False when another came in its place meanwhile, which the next probe will see.
    #[inline]
    fn withdraw(self) -> bool {
        match self {
            Request::Asked(epoch) => local::answer(epoch, local::resting()),
            Request::Late => {
                local::set_deadline(NEVER);
                true
            }
        }
    }

    /// Whether it is meant for what runs now, rather than for what ran before.
    #[inline]
    fn is_current(self) -> bool {
        match self {
            Request::Asked(epoch) => epoch == local::epoch(),
            Request::Late => true,
        }
    }
}

/// A flag probe found something in this thread's line. (A self-timed thread comes here past its deadline only.)
pub(crate) extern "C-unwind" fn preempted() {
    match local::asked() {
        0 => {}
        SELF_TIMED => grant(Request::Late),
        epoch => grant(Request::Asked(epoch)),
    }
}

/// A TSC probe's countdown ran out, past the deadline.
pub(crate) extern "C-unwind" fn late() {
    grant(Request::Late);
}

#[inline]
fn grant(request: Request) {
    let control = local::fiber();
    if control.is_null() || !request.is_current() {
        request.withdraw();
        return;
    }
    // SAFETY: not null, so this thread's current fiber.
    if !unsafe { may_leave(control) } {
        return; // It stays asked, and soon meets a probe where it can.
    }
    if !request.withdraw() {
        return;
    }
    if local::no_preempt() > 0 {
        local::set_deferred(1);
        return;
    }
    // SAFETY: current, and may be left.
    unsafe { suspend(control) };
}

/// A no-preempt section ended, and a request came while it was open.
///
/// For C: `if (--count == 0 && deferred) __headway_deferred();` with the count and the word of [`abi`](crate::abi).
#[unsafe(no_mangle)]
#[cold]
pub extern "C-unwind" fn __headway_deferred() {
    local::set_deferred(0);
    let control = local::fiber();
    // SAFETY: not null, so this thread's current fiber; left only where it may be.
    unsafe {
        if !control.is_null() && may_leave(control) {
            suspend(control);
        }
    }
}

/// Suspends a fiber that does not know of it: what C code expects to be unchanged is.
///
/// # Safety
/// As [`leave`].
unsafe fn suspend(control: *const Control) {
    let errno = errno::get();
    keeping_control_words(|| {
        // SAFETY: the caller's promise.
        unsafe { leave(control) };
    });
    errno::set(errno);
}

/// This thread's `errno`.
mod errno {
    use std::hint::black_box;

    type Location = unsafe extern "C" fn() -> *mut libc::c_int;

    /// The C library declares the function as one without effects, whose result a compiler may keep; it is another after a migration.
    /// A call by an unknown pointer is made each time.
    fn location() -> *mut libc::c_int {
        let locate: Location = black_box(libc::__errno_location);
        // SAFETY: always valid to call.
        unsafe { locate() }
    }

    pub(super) fn get() -> libc::c_int {
        // SAFETY: this thread's own.
        unsafe { *location() }
    }

    pub(super) fn set(errno: libc::c_int) {
        // SAFETY: this thread's own.
        unsafe { *location() = errno };
    }
}
