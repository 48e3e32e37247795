//! The token of a thread that parks: it is there or not.

use crate::sync::{AtomicU32, Ordering};

const EMPTY: u32 = 0;
/// The token is there.
const NOTIFIED: u32 = 1;
/// The thread waits for it.
const PARKED: u32 = 2;

/// The thread takes the token, anybody gives it.
#[derive(Debug)]
pub(crate) struct ParkToken(AtomicU32);

impl Default for ParkToken {
    fn default() -> Self {
        ParkToken(AtomicU32::new(EMPTY))
    }
}

impl ParkToken {
    /// The thread wants the token: whether it waits, until somebody makes it ready.
    pub(crate) fn waits(&self) -> bool {
        self.0
            .compare_exchange(EMPTY, PARKED, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// The thread goes on, and takes the token if it is there.
    pub(crate) fn take(&self) {
        self.0.swap(EMPTY, Ordering::Acquire);
    }

    /// Gives the token: whether the thread waits, which the caller makes ready.
    pub(crate) fn give(&self) -> bool {
        self.0.swap(NOTIFIED, Ordering::AcqRel) == PARKED
    }

    /// The time for which the thread waits has come: whether that is the first to happen. Then the caller makes it ready.
    pub(crate) fn times_out(&self) -> bool {
        self.0
            .compare_exchange(PARKED, EMPTY, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}
