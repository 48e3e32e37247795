//! What a thread runs jobs on.
//!
//! Jobs that no policy interrupts run on their thread's own stack, to their end. Others run on fibers whose probes read the clock: on fibers that
//! [own a thread's state](crate::owning), or, where the program promised that its jobs keep nothing in their threads
//! ([`plain_fibers`](crate::PoolBuilder::plain_fibers)), on [plain ones](crate::plain).

use std::sync::Arc;

use crate::chosen::{ChosenJob, RunStart};
use crate::owning::OwningFibers;
use crate::plain::PlainFibers;
use crate::shared::SharedPool;
use crate::slice_settings::SliceSettings;
use crate::turn::{TurnEnd, to_the_end};

/// How one thread runs jobs.
pub(crate) enum JobSlices {
    ToTheEnd,
    Plain(Box<PlainFibers>),
    Owning(Box<OwningFibers>),
}

impl JobSlices {
    /// For the calling thread.
    pub(crate) fn new(shared: &Arc<SharedPool>) -> Self {
        match &shared.slices {
            SliceSettings::ToTheEnd => Self::ToTheEnd,
            SliceSettings::PlainFibers(stacks) => {
                Self::Plain(Box::new(PlainFibers::new(Arc::clone(stacks), shared)))
            }
            SliceSettings::OwningFibers(stacks, rescue) => {
                Self::Owning(Box::new(OwningFibers::new(shared, stacks, rescue)))
            }
        }
    }

    #[inline]
    pub(crate) fn run(&mut self, shared: &Arc<SharedPool>, assignment: ChosenJob) -> TurnEnd {
        match self {
            Self::ToTheEnd => to_the_end(assignment, None),
            Self::Plain(fibers) => fibers.run(shared, assignment),
            Self::Owning(fibers) => fibers.run(shared, assignment),
        }
    }

    /// Gets ready for jobs to come, step by step, while there is none. Returns whether there was a step to do.
    pub(crate) fn make_ready(&mut self, shared: &Arc<SharedPool>) -> bool {
        match self {
            Self::ToTheEnd | Self::Plain(_) => false,
            Self::Owning(fibers) => fibers.make_ready(shared),
        }
    }

    /// Calls what runs code of the program's beside its jobs. If the worker falls asleep there, it is [rescued](crate::rescue) as in a job.
    #[inline]
    pub(crate) fn in_turn<R>(&self, call: impl FnOnce() -> R) -> R {
        match self {
            Self::ToTheEnd | Self::Plain(_) => call(),
            Self::Owning(fibers) => fibers.in_turn(call),
        }
    }

    /// What [`run`](Self::run) returned of was over at this time, ns.
    #[inline]
    pub(crate) fn end_run(&mut self, shared: &SharedPool, run: RunStart, now_ns: u64) {
        match self {
            Self::ToTheEnd => {}
            Self::Plain(fibers) => fibers.slices.end_run(shared, run, now_ns),
            Self::Owning(fibers) => fibers.slices.end_run(shared, run, now_ns),
        }
    }
}
