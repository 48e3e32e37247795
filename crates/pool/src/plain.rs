//! Plain fibers: a job shares its thread's state with the jobs that run while it is suspended, and goes on in its thread.
#![expect(unsafe_code, reason = "a suspended fiber is resumed")]

use std::collections::HashMap;
use std::sync::Arc;

use headway_fiber::{Fiber, Stacks, Turn};
use headway_policy::JobId;

use crate::chosen::ChosenJob;
use crate::current;
use crate::fiber_job::FiberJob;
use crate::job::Runnable;
use crate::shared::SharedPool;
use crate::turn::{SliceClock, TurnEnd, to_the_end, without_fiber};

/// A job that was interrupted, and the innermost job on its stack: it may run one for which it waits.
struct InterruptedJob {
    fiber: Fiber<FiberJob>,
    innermost: Option<Arc<dyn Runnable>>,
}

/// A thread's fibers.
pub(crate) struct PlainFibers {
    pub(crate) slices: SliceClock,
    stacks: Arc<Stacks>,
    idle: Vec<Fiber<FiberJob>>,
    suspended: HashMap<JobId, InterruptedJob>,
}

impl PlainFibers {
    /// For the calling thread.
    pub(crate) fn new(stacks: Arc<Stacks>, shared: &SharedPool) -> Self {
        Self {
            slices: SliceClock::new(shared),
            stacks,
            idle: Vec::new(),
            suspended: HashMap::new(),
        }
    }

    pub(crate) fn run(&mut self, shared: &Arc<SharedPool>, assignment: ChosenJob) -> TurnEnd {
        let Some(slice_ns) = assignment.slice_ns else {
            return to_the_end(assignment, None);
        };
        let epoch = self.slices.begin_run(&assignment);
        self.slices.attached().begin(epoch);
        if assignment.is_resumed {
            let suspended = self.suspended.remove(&assignment.chosen.token);
            let InterruptedJob { fiber, innermost } =
                suspended.expect("what was interrupted here goes on here");
            current::begin(innermost);
            return self.turns(shared, &assignment, fiber, slice_ns, None);
        }
        match self.idle.pop().or_else(|| self.fiber()) {
            Some(fiber) => {
                let begun = Some(FiberJob::new(&assignment.job));
                self.turns(shared, &assignment, fiber, slice_ns, begun)
            }
            // There is no memory for a stack: this one is not interrupted.
            None => without_fiber(shared, assignment, None),
        }
    }

    fn fiber(&self) -> Option<Fiber<FiberJob>> {
        let stack = self.stacks.take().ok()?;
        Some(Fiber::new(stack, FiberJob::run))
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
        loop {
            self.slices.begin_slice(slice_ns);
            let turn = match begun.take() {
                Some(job) => fiber.run(job, u64::from(assignment.class.0)),
                // SAFETY: this is the loop of a worker, no destructor of a thread-local variable.
                None => unsafe { fiber.resume() },
            };
            self.slices.attached().no_slice();
            if let Turn::Finished(job) = turn {
                self.idle.push(fiber);
                return TurnEnd::Ended {
                    ran: job.ran,
                    job: job.job,
                    keeps_worker: true,
                };
            }
            let longer = self.slices.goes_on(shared, assignment);
            match longer {
                // A job that waits for another makes way at once.
                Some(longer_ns) if !current::waits_here() => slice_ns = longer_ns,
                _ => {
                    let innermost = current::begin(None);
                    let suspended = InterruptedJob { fiber, innermost };
                    self.suspended.insert(assignment.chosen.token, suspended);
                    return TurnEnd::Interrupted(Arc::clone(&assignment.job));
                }
            }
        }
    }
}
