//! Workers that poll: they see to the program's own events between slices, and all the time [while they have no job](crate::idle_wait).
//!
//! What is polled usually holds the pool, to submit: so the pool lets go of it at its end, and each worker when it leaves.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use headway_sync::atomic::{AtomicBool, Ordering};

use crate::current;
use crate::job::drop_quietly;

/// What a program has its workers call: the same for all who hold it.
#[derive(Clone)]
pub(crate) struct Poller(Arc<ProgramsPoll>);

struct ProgramsPoll {
    /// Taken when the last one leaves.
    call: Option<Box<dyn Fn() + Send + Sync>>,
    /// One that panicked is not called again.
    panicked: AtomicBool,
}

impl Drop for ProgramsPoll {
    fn drop(&mut self) {
        drop_quietly(self.call.take());
    }
}

impl Poller {
    pub(crate) fn new(call: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(ProgramsPoll {
            call: Some(Box::new(call)),
            panicked: AtomicBool::new(false),
        }))
    }

    /// Whether it panicked.
    pub(crate) fn is_over(&self) -> bool {
        self.0.panicked.load(Ordering::SeqCst)
    }

    /// Called on a worker's stack, between slices.
    #[inline]
    pub(crate) fn poll(&self) {
        let Some(call) = &self.0.call else { return };
        if self.is_over() {
            return;
        }
        // It is no part of the job that was interrupted: what it submits comes from outside, and a future that it polls runs nothing here.
        let polled = current::polling(|| catch_unwind(AssertUnwindSafe(call)));
        if polled.is_err() {
            self.0.panicked.store(true, Ordering::SeqCst);
            drop_quietly(polled);
        }
    }
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller").finish_non_exhaustive()
    }
}
