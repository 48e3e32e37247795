//! What the slices of a self-timed thread go by: the clock of its deadlines, and the function that renews a slice.

use std::cell::Cell;

/// Decides whether a slice that is over is renewed, and sets the new [deadline](crate::Attached::set_deadline) if so. It gets the reading of the
/// time-stamp counter that showed the end a few ns ago, since another reading would cost as much as the rest. A panic in it aborts the process.
pub type RenewSlice = unsafe extern "C" fn(data: *mut (), tsc: u64) -> bool;

thread_local! {
    /// Without a destructor, so that a signal's handler may read it.
    static GIVEN_CLOCK: Cell<Option<fn() -> u64>> = const { Cell::new(None) };
}

/// Sets the [`given_clock`] of the calling thread.
pub(crate) fn give_clock(read: Option<fn() -> u64>) {
    GIVEN_CLOCK.set(read);
}

/// The clock that the calling thread was [given](crate::Attached::set_clock).
#[inline(never)] // The caller may have gone on in another thread.
pub(crate) fn given_clock() -> Option<fn() -> u64> {
    GIVEN_CLOCK.get()
}
