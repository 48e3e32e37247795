//! The token of a thread that parks: present or absent. The caller makes the thread wait and run again.

use crate::atomic::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
/// The token is present.
const NOTIFIED: u32 = 1;
/// The thread waits for it.
const PARKED: u32 = 2;

/// A park token: its thread takes it, and any thread gives it.
#[derive(Debug)]
pub struct ParkToken(AtomicU32);

impl Default for ParkToken {
    fn default() -> Self {
        ParkToken(AtomicU32::new(EMPTY))
    }
}

impl ParkToken {
    /// Begins a wait for the token. Returns whether the thread must wait until it is made ready.
    #[inline]
    #[must_use]
    pub fn waits(&self) -> bool {
        self.0
            .compare_exchange(EMPTY, PARKED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Takes the token, if it is present, as the thread resumes.
    #[inline]
    pub fn take(&self) {
        self.0.swap(EMPTY, Ordering::Acquire);
    }

    /// Gives the token. Returns whether the thread waits and the caller must make it ready.
    #[inline]
    #[must_use]
    pub fn give(&self) -> bool {
        self.0.swap(NOTIFIED, Ordering::AcqRel) == PARKED
    }

    /// Ends a timed wait. Returns whether the timeout came before the token; then the caller makes the thread ready.
    #[inline]
    #[must_use]
    pub fn times_out(&self) -> bool {
        self.0
            .compare_exchange(PARKED, EMPTY, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}
