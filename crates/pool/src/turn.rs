//! One turn of a job: how it ends, and the clock by which it interrupts itself.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use headway_fiber::{Attached, WorkerTurns};
use headway_machine::thread::CpuClock;

use crate::chosen::{ChosenJob, RunStart};
use crate::current;
use crate::decisions::GoesOn;
use crate::job::{RunEnd, Runnable};
use crate::poller::Poller;
use crate::running_slice::RunningSlice;
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

/// A decision holds for so long at most, ns, whatever its policy says.
const LONGEST_HOLD_NS: u64 = 1_000_000;

/// A thread's slices: its probes read the clock.
pub(crate) struct SliceClock {
    slice: Rc<RunningSlice>,
    epoch: u64,
    stalls: StallWatch,
    poller: Option<Poller>,
    /// Whether jobs whose slice is over go on without a look where nothing has happened since the last one.
    holds: bool,
}

impl SliceClock {
    /// The calling thread's.
    pub(crate) fn new(shared: &SharedPool) -> Self {
        let attached = Attached::new();
        attached.self_timed(true);
        attached.no_slice();
        Self {
            slice: Rc::new(RunningSlice::new(attached, shared)),
            epoch: 0,
            stalls: StallWatch::new(shared),
            poller: shared.poller(),
            holds: false,
        }
    }

    /// The same, whose jobs go on without a look while the policy's last decision [holds](crate::decisions::GoesOn::holds_ns). Not where workers poll between slices.
    pub(crate) fn holding(mut self) -> Self {
        self.holds = self.poller.is_none();
        if self.holds {
            self.slice.renew_in_place();
        }
        self
    }

    #[inline]
    pub(crate) fn attached(&self) -> &Attached {
        self.slice.attached()
    }

    /// The number of the run that begins.
    #[inline]
    pub(crate) fn begin_run(&mut self, assignment: &ChosenJob) -> u64 {
        self.stalls.begin_run(assignment.start());
        self.slice.hold_until(0, 0);
        self.epoch += 1;
        self.epoch
    }

    #[inline]
    pub(crate) fn begin_slice(&mut self, slice_ns: u64) {
        self.slice.begin(slice_ns);
    }

    /// The job left its worker: it has no slice any more.
    pub(crate) fn leave_slice(&mut self) {
        self.slice.leave();
    }

    /// The run is over at this time, ns.
    #[inline]
    pub(crate) fn end_run(&mut self, shared: &SharedPool, run: RunStart, now_ns: u64) {
        let late_ns = self.slice.late_ns(now_ns);
        self.stalls.ended(shared, run, now_ns, late_ns);
    }

    /// Whether the job that left its stack there goes on, and for how long, ns.
    pub(crate) fn goes_on(
        &mut self,
        shared: &Arc<SharedPool>,
        assignment: &ChosenJob,
    ) -> Option<u64> {
        let now_ns = shared.clock.now_ns();
        let late_ns = self.slice.late_ns(now_ns);
        self.stalls
            .met_probe(shared, assignment.start(), now_ns, late_ns);
        self.poller.as_ref().inspect(|poller| poller.poll());
        let probes_met = 1 + self.slice.take_renewals();
        let mut core = shared.core.lock();
        let longer = core.goes_on(
            now_ns,
            assignment.class,
            assignment.chosen.worker,
            probes_met,
        );
        // Nobody counts an event before the lock is released.
        let events = shared.events.load(Ordering::Relaxed);
        shared.settle(core);
        let GoesOn {
            ask_after_ns,
            holds_ns,
        } = longer?;
        if self.holds {
            let holds_ns = holds_ns.min(LONGEST_HOLD_NS);
            self.slice.hold_until(now_ns + holds_ns, events);
        }
        Some(ask_after_ns)
    }
}
