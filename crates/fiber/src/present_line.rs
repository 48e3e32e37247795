//! The line that the probes of a worker read, which changes with the fiber.
//!
//! A fiber that owns a [thread's state](crate::donor) has thread-local variables of its own, with a line to flag among them. It finds its worker by one word, which is set
//! each time that it is resumed.

use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// A worker, as others see it who ask it to yield.
#[derive(Debug)]
pub(crate) struct PresentLine {
    /// The line that the probes of the present assignment read.
    line: AtomicPtr<AtomicU64>,
}

impl PresentLine {
    /// Of a worker that runs no fiber, and whose own line this is.
    pub(crate) fn new(line: *const AtomicU64) -> PresentLine {
        PresentLine {
            line: AtomicPtr::new(line.cast_mut()),
        }
    }

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
