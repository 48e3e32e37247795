//! What is the worker's, whichever fiber it runs.
//!
//! A fiber that owns a [thread's state](crate::donor) has thread-local variables of its own. It finds its worker by one word among them, which is set each
//! time that it is resumed.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::local;

/// A worker, as others see it who ask it to yield.
#[derive(Debug)]
pub(crate) struct WorkerState {
    /// The line that the probes of the present assignment read.
    line: AtomicPtr<AtomicU64>,
}

impl Default for WorkerState {
    /// The calling thread's, which runs no fiber.
    fn default() -> WorkerState {
        WorkerState {
            line: AtomicPtr::new(local::shared_line().cast_mut()),
        }
    }
}

impl WorkerState {
    /// The line to which whoever asks writes. It stays valid for as long as there are [flags](crate::YieldFlag).
    #[inline(always)]
    pub(crate) fn line(&self) -> *const AtomicU64 {
        self.line.load(Ordering::Acquire)
    }

    /// From now on that is this line. Called before the assignment's epoch is published: so who knows the epoch asks there.
    #[inline(always)]
    pub(crate) fn set_line(&self, line: *const AtomicU64) {
        if self.line.load(Ordering::Relaxed).cast_const() != line {
            self.line.store(line.cast_mut(), Ordering::Release);
        }
    }
}

/// When the worker that runs the caller was last known to get on: a time of the caller's own, carried along with the worker's words. 0 at first.
#[inline]
#[must_use]
pub fn alive_ns() -> u64 {
    local::alive_ns()
}

/// Sets [`alive_ns`].
#[inline]
pub fn set_alive_ns(now_ns: u64) {
    local::set_alive_ns(now_ns);
}
