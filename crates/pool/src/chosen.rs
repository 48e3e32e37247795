//! A job that was chosen for a worker.

use std::sync::Arc;

use headway_fiber::WorkerTurns;
use headway_machine::thread::CpuClock;
use headway_policy::ClassId;

use crate::current::WorkerPlace;
use crate::decisions::Chosen;
use crate::job::Runnable;

/// A job that a thread runs as one of the workers.
pub(crate) struct ChosenJob {
    pub(crate) chosen: Chosen,
    pub(crate) class: ClassId,
    pub(crate) job: Arc<dyn Runnable>,
    /// Service before this slice, ns.
    pub(crate) attained_ns: u64,
    /// Whether it was interrupted before.
    pub(crate) is_resumed: bool,
    /// How long until it asks whether it goes on, ns; `None` where it runs to its end.
    pub(crate) slice_ns: Option<u64>,
    /// When the slice begins.
    pub(crate) from_ns: u64,
}

/// Whose run began, and when.
#[derive(Clone, Copy)]
pub(crate) struct RunStart {
    pub(crate) class: ClassId,
    pub(crate) from_ns: u64,
}

impl ChosenJob {
    #[inline]
    pub(crate) fn start(&self) -> RunStart {
        RunStart {
            class: self.class,
            from_ns: self.from_ns,
        }
    }

    /// The job's worker, of whose turns these are.
    #[inline]
    pub(crate) fn place(&self, turns: Option<&Arc<WorkerTurns<CpuClock>>>) -> WorkerPlace {
        WorkerPlace {
            chosen: self.chosen,
            attained_ns: self.attained_ns,
            from_ns: self.from_ns,
            turns: turns.cloned(),
        }
    }
}
