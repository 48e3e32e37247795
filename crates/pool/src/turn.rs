//! One turn of a job: how it ends, and the clock by which it interrupts itself.

use std::sync::Arc;

use headway_fiber::{Attached, WorkerTurns};
use headway_machine::Clock;
use headway_machine::thread::CpuClock;

use crate::chosen::ChosenJob;
use crate::current;
use crate::fiber_job::run_job;
use crate::job::{RunEnd, Runnable};
use crate::shared::SharedPool;

/// The end of a slice.
pub(crate) enum TurnEnd {
    Ended {
        ran: RunEnd,
        job: Arc<dyn Runnable>,
        /// Whether its worker is still its own: it did not block elsewhere.
        keeps_worker: bool,
    },
    Interrupted(Arc<dyn Runnable>),
    /// It did not run here: its own thread goes on with it, at home.
    AtHome(Arc<dyn Runnable>),
    /// It ended at home, and was counted.
    EndedAtHome(Arc<dyn Runnable>),
}

/// Runs the job on the thread's own stack.
#[inline]
pub(crate) fn to_the_end(
    assignment: ChosenJob,
    turns: Option<&Arc<WorkerTurns<CpuClock>>>,
) -> TurnEnd {
    current::set_thread_place(assignment.place(turns));
    let job = assignment.job;
    TurnEnd::Ended {
        ran: run_job(&job),
        job,
        keeps_worker: current::take_thread_place().is_some(),
    }
}

/// As [`to_the_end`], of a job that a fiber was not to be had for.
#[cold]
pub(crate) fn without_fiber(
    shared: &Arc<SharedPool>,
    assignment: ChosenJob,
    turns: Option<&Arc<WorkerTurns<CpuClock>>>,
) -> TurnEnd {
    shared.core.lock().without_fiber += 1;
    to_the_end(assignment, turns)
}

/// A thread's slices: its probes read the clock.
pub(crate) struct SliceClock {
    pub(crate) attached: Attached,
    clock: Clock,
    epoch: u64,
}

impl SliceClock {
    pub(crate) fn new(clock: Clock) -> Self {
        let attached = Attached::new();
        attached.self_timed(true);
        attached.no_slice();
        Self {
            attached,
            clock,
            epoch: 0,
        }
    }

    pub(crate) fn next_epoch(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    pub(crate) fn begin_slice(&self, slice_ns: u64) {
        self.attached
            .begin_slice(self.clock.ticks(), self.clock.ticks_in(slice_ns));
    }

    /// Whether the job that left its stack there goes on, and for how long, ns.
    pub(crate) fn goes_on(&self, shared: &Arc<SharedPool>, assignment: &ChosenJob) -> Option<u64> {
        let now_ns = self.clock.now_ns();
        let mut core = shared.core.lock();
        let longer = core.goes_on(now_ns, assignment.chosen.worker);
        shared.settle(core);
        longer
    }
}
