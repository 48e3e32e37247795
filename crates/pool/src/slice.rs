//! One slice of a job: the only place that knows fibers.
//!
//! By default a job runs on its thread's own stack, to its end. Where the program promised that its jobs can be suspended
//! ([`interrupt_with_plain_fibers`](crate::PoolBuilder::interrupt_with_plain_fibers)), each runs on a fiber of its thread, whose probes read the clock.
#![expect(unsafe_code, reason = "a suspended fiber is resumed")]

use std::collections::HashMap;
use std::sync::Arc;

use headway_fiber::{Attached, Fiber, Stacks, Turn};
use headway_machine::Clock;
use headway_policy::JobId;

use crate::core::ChosenJob;
use crate::current;
use crate::job::{RunEnd, Runnable};
use crate::shared::SharedPool;
use crate::slice_settings::SliceSettings;

/// The end of a slice.
pub(crate) enum TurnEnd {
    Ended(RunEnd),
    Interrupted(Arc<dyn Runnable>),
}

/// How one thread runs jobs.
pub(crate) enum JobSlices {
    ToTheEnd,
    PlainFibers(Box<FiberSlices>),
}

impl JobSlices {
    /// For the calling thread.
    pub(crate) fn new(shared: &Arc<SharedPool>) -> Self {
        match &shared.slices {
            SliceSettings::ToTheEnd => Self::ToTheEnd,
            SliceSettings::PlainFibers(stacks) => {
                Self::PlainFibers(Box::new(FiberSlices::new(Arc::clone(stacks), shared.clock)))
            }
        }
    }

    #[inline]
    pub(crate) fn run(&mut self, shared: &Arc<SharedPool>, assignment: ChosenJob) -> TurnEnd {
        match self {
            Self::PlainFibers(fibers) => fibers.run(shared, &assignment),
            Self::ToTheEnd => TurnEnd::Ended(assignment.job.run()),
        }
    }
}

/// A job on a fiber, and how it ended.
struct FiberJob {
    job: Arc<dyn Runnable>,
    ran: RunEnd,
}

/// A job that was interrupted, and the innermost job on its stack: it may run one for which it waits.
struct SuspendedJob {
    fiber: Fiber<FiberJob>,
    innermost: Option<Arc<dyn Runnable>>,
}

/// A thread's fibers.
pub(crate) struct FiberSlices {
    attached: Attached,
    stacks: Arc<Stacks>,
    clock: Clock,
    idle: Vec<Fiber<FiberJob>>,
    suspended: HashMap<JobId, SuspendedJob>,
    epoch: u64,
}

impl FiberSlices {
    fn new(stacks: Arc<Stacks>, clock: Clock) -> Self {
        let attached = Attached::new();
        attached.self_timed(true);
        attached.no_slice();
        Self {
            attached,
            stacks,
            clock,
            idle: Vec::new(),
            suspended: HashMap::new(),
            epoch: 0,
        }
    }

    fn run(&mut self, shared: &Arc<SharedPool>, assignment: &ChosenJob) -> TurnEnd {
        let job = || Arc::clone(&assignment.job);
        let Some(slice_ns) = assignment.slice_ns else {
            return TurnEnd::Ended(job().run());
        };
        self.epoch += 1;
        self.attached.begin(self.epoch);
        if assignment.is_resumed {
            let suspended = self.suspended.remove(&assignment.chosen.token);
            let SuspendedJob { fiber, innermost } =
                suspended.expect("what was interrupted here goes on here");
            current::begin(innermost);
            return self.turns(shared, assignment, fiber, slice_ns, None);
        }
        let fiber = self.idle.pop().or_else(|| self.fiber());
        match fiber {
            Some(fiber) => {
                let begun = FiberJob {
                    job: job(),
                    ran: RunEnd::Done,
                };
                self.turns(shared, assignment, fiber, slice_ns, Some(begun))
            }
            // There is no memory for a stack: this one is not interrupted.
            None => TurnEnd::Ended(job().run()),
        }
    }

    fn fiber(&self) -> Option<Fiber<FiberJob>> {
        let stack = self.stacks.take().ok()?;
        let body = |job: &mut FiberJob| job.ran = Arc::clone(&job.job).run();
        Some(Fiber::new(stack, body))
    }

    /// Runs the job until it ends, or its policy interrupts it.
    fn turns(
        &mut self,
        shared: &Arc<SharedPool>,
        assignment: &ChosenJob,
        mut fiber: Fiber<FiberJob>,
        mut slice_ns: u64,
        mut begun: Option<FiberJob>,
    ) -> TurnEnd {
        let worker = assignment.chosen.worker;
        loop {
            self.attached
                .begin_slice(self.clock.ticks(), self.clock.ticks_in(slice_ns));
            let turn = match begun.take() {
                Some(job) => fiber.run(job, u64::from(assignment.class.0)),
                // SAFETY: this is the loop of a worker, no destructor of a thread-local variable.
                None => unsafe { fiber.resume() },
            };
            self.attached.no_slice();
            if let Turn::Finished(job) = turn {
                self.idle.push(fiber);
                return TurnEnd::Ended(job.ran);
            }
            let now_ns = self.clock.now_ns();
            let mut core = shared.core.lock();
            let longer = core.goes_on(now_ns, worker);
            shared.settle(core);
            match longer {
                // A job that waits for another makes way at once.
                Some(longer_ns) if !current::waits_here() => slice_ns = longer_ns,
                _ => {
                    let innermost = current::begin(None);
                    let suspended = SuspendedJob { fiber, innermost };
                    self.suspended.insert(assignment.chosen.token, suspended);
                    return TurnEnd::Interrupted(Arc::clone(&assignment.job));
                }
            }
        }
    }
}
