//! One turn of a job: how it ends, and the clock by which it interrupts itself.

use std::sync::Arc;

use headway_fiber::{Attached, WorkerTurns};
use headway_machine::Clock;
use headway_machine::thread::CpuClock;

use crate::chosen::{ChosenJob, RunStart};
use crate::current;
use crate::job::{RunEnd, Runnable};
use crate::poller::Poller;
use crate::shared::SharedPool;
use crate::stalls::StallWatch;

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
    let place = assignment.place(turns);
    let job = assignment.job;
    current::begin_outermost(Arc::clone(&job), place);
    let ran = job.run();
    let (_, place) = current::end_outermost();
    TurnEnd::Ended {
        ran,
        job,
        keeps_worker: place.is_some(),
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
    /// When the slice under way is over, ns; never where none is.
    over_ns: u64,
    stalls: StallWatch,
    poller: Option<Poller>,
}

impl SliceClock {
    /// The calling thread's.
    pub(crate) fn new(shared: &SharedPool) -> Self {
        let attached = Attached::new();
        attached.self_timed(true);
        attached.no_slice();
        Self {
            attached,
            clock: shared.clock,
            epoch: 0,
            over_ns: u64::MAX,
            stalls: StallWatch::new(shared),
            poller: shared.poller(),
        }
    }

    /// The number of the run that begins.
    #[inline]
    pub(crate) fn begin_run(&mut self, assignment: &ChosenJob) -> u64 {
        self.stalls.begin_run(assignment.start());
        self.epoch += 1;
        self.epoch
    }

    #[inline]
    pub(crate) fn begin_slice(&mut self, slice_ns: u64) {
        let ticks = self.clock.ticks();
        self.attached
            .begin_slice(ticks, self.clock.ticks_in(slice_ns));
        self.over_ns = self.clock.to_ns(ticks).saturating_add(slice_ns);
    }

    /// The job left its worker: it has no slice any more.
    pub(crate) fn leave_slice(&mut self) {
        self.over_ns = u64::MAX;
    }

    /// The run is over at this time, ns.
    #[inline]
    pub(crate) fn end_run(&mut self, shared: &SharedPool, run: RunStart, now_ns: u64) {
        let late_ns = self.late_ns(now_ns);
        self.stalls.ended(shared, run, now_ns, late_ns);
    }

    /// For how long the slice has been over, ns. Asked once a slice.
    #[inline]
    fn late_ns(&mut self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(std::mem::replace(&mut self.over_ns, u64::MAX))
    }

    /// Whether the job that left its stack there goes on, and for how long, ns.
    pub(crate) fn goes_on(
        &mut self,
        shared: &Arc<SharedPool>,
        assignment: &ChosenJob,
    ) -> Option<u64> {
        let now_ns = self.clock.now_ns();
        let late_ns = self.late_ns(now_ns);
        self.stalls
            .met_probe(shared, assignment.start(), now_ns, late_ns);
        self.poller.as_ref().inspect(|poller| poller.poll());
        let mut core = shared.core.lock();
        let longer = core.goes_on(now_ns, assignment.class, assignment.chosen.worker);
        shared.settle(core);
        longer
    }
}
