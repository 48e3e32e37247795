//! A job on a fiber.

use std::sync::Arc;

use headway_fiber::SendFiber;

use crate::current::{self, JobDesk};
use crate::job::{RunEnd, Runnable};

/// Runs the job as the innermost one of the calling thread or fiber.
#[inline]
pub(crate) fn run_job(job: &Arc<dyn Runnable>) -> RunEnd {
    let outer = current::begin(Some(Arc::clone(job)));
    let ran = job.run();
    current::begin(outer);
    ran
}

/// A job on a fiber, and how it ended.
pub(crate) struct FiberJob {
    pub(crate) job: Arc<dyn Runnable>,
    pub(crate) ran: RunEnd,
}

impl FiberJob {
    pub(crate) fn new(job: &Arc<dyn Runnable>) -> Self {
        Self {
            job: Arc::clone(job),
            ran: RunEnd::Done,
        }
    }

    pub(crate) fn run(&mut self) {
        self.ran = run_job(&self.job);
    }
}

/// A fiber with a thread's state, and what its job and its worker tell each other.
pub(crate) struct OwningFiber {
    pub(crate) fiber: SendFiber<FiberJob>,
    pub(crate) desk: Arc<JobDesk>,
}
