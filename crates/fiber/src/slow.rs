//! What a probe's slow path does, once the registers are safe: decide, and yield.
#![expect(unsafe_code, reason = "suspends the fiber that runs")]

use crate::abi::{NEVER, SELF_TIMED};
use std::ptr::NonNull;

use crate::control::FiberControl;
use crate::kept::keeping_control_words;
use crate::local;
use crate::no_preempt::{in_one_thread, in_one_thread_before_leaving};
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

    /// As [`withdraw`](Self::withdraw), of a request for what runs now.
    #[inline]
    fn take(self) -> bool {
        match self {
            Request::Asked(epoch) => {
                let taken = local::take(epoch, local::resting());
                local::set_granted_message(local::message());
                taken
            }
            Request::Late => self.withdraw(),
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

/// Why a no-preempt section is to yield at its end; in the `deferred` word, where any but 0 says that it is.
mod deferral {
    pub(super) const ASKED: u32 = 1;
    pub(super) const LATE: u32 = 2;
    pub(super) const SIGNALLED: u32 = 3;
}

/// A flag probe found something in this thread's line. (A self-timed thread comes here past its deadline only.)
pub(crate) extern "C-unwind" fn preempted() {
    match local::asked() {
        0 => {}
        SELF_TIMED => late(),
        epoch => {
            // Lines that another core reads. Stores leave in order: each would wait for its line behind the others, and with them, once they
            // fill the queue, whoever is to run next.
            local::fetch_next_writes();
            yield_for(Request::Asked(epoch), deferral::ASKED);
        }
    }
}

/// A TSC probe's countdown ran out, past the deadline.
pub(crate) extern "C-unwind" fn late() {
    yield_for(Request::Late, deferral::LATE);
}

/// A signal came. The fiber that is to be [suspended](suspend) for it.
pub(crate) fn signalled() -> Option<NonNull<FiberControl>> {
    match local::asked() {
        0 | SELF_TIMED => None,
        epoch => granted(Request::Asked(epoch), deferral::SIGNALLED),
    }
}

#[inline]
fn yield_for(request: Request, deferral: u32) {
    if let Some(control) = granted(request, deferral) {
        // SAFETY: granted.
        unsafe { suspend(control) };
    }
}

/// The fiber that is to yield now, if this is a request for what runs now, and it may be left.
#[inline]
fn granted(request: Request, deferral: u32) -> Option<NonNull<FiberControl>> {
    let Some(control) = NonNull::new(local::fiber()) else {
        request.withdraw();
        return None;
    };
    if !request.is_current() {
        request.withdraw();
        return None;
    }
    // SAFETY: this thread's current fiber.
    if !unsafe { may_leave(control) } {
        return None; // It stays asked, and soon meets a probe where it can.
    }
    if !request.take() {
        return None;
    }
    if local::no_preempt() > 0 {
        local::set_deferred(deferral);
        return None;
    }
    Some(control)
}

/// A no-preempt section ended, and a request came while it was open.
///
/// For C: `if (--count == 0 && deferred) __headway_deferred();` with the count and the word of [`abi`](crate::abi).
#[unsafe(no_mangle)]
#[cold]
pub extern "C-unwind" fn __headway_deferred() {
    local::set_deferred(0);
    let Some(control) = NonNull::new(local::fiber()) else {
        return;
    };
    // SAFETY: this thread's current fiber; left only where it may be.
    unsafe {
        if may_leave(control) {
            suspend(control);
        }
    }
}

/// As [`__headway_deferred`], for sections inside a library whose callers may hold locks: a request that a probe met waits for the next
/// probe, since a probe would not stand in such a caller. One that came by signal could have met that caller itself.
///
/// For C: as [`__headway_deferred`].
#[unsafe(no_mangle)]
#[cold]
pub extern "C-unwind" fn __headway_deferred_in_library() {
    match local::deferred() {
        deferral::SIGNALLED => __headway_deferred(),
        deferral::LATE => {
            local::set_deferred(0);
            local::set_deadline(0);
        }
        _ => {
            local::set_deferred(0);
            local::ask_again();
        }
    }
}

/// Suspends a fiber that does not know of it: what C code expects to be unchanged is.
///
/// # Safety
/// As [`leave`].
pub(crate) unsafe fn suspend(control: NonNull<FiberControl>) {
    let errno = in_one_thread_before_leaving(errno::get);
    // SAFETY: current, so it lives.
    let preempted = unsafe { &(*control.as_ptr()).preempted };
    preempted.set(true);
    keeping_control_words(|| {
        // SAFETY: the caller's promise.
        unsafe { leave(control) };
    });
    preempted.set(false);
    in_one_thread(|| errno::set(errno));
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
