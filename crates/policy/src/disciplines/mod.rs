//! Queue disciplines: in which order waiting requests are offered to the placement.

mod fifo;
mod typed;

pub use fifo::Fifo;
pub use typed::Typed;

use crate::role::Shed;
use crate::{ClassId, Job, Jobs, Plan, WorkerId};

/// Keeps the waiting requests and offers them in its order.
pub trait Discipline {
    /// Queues a request.
    ///
    /// # Errors
    /// [`Shed`] when its queue is full.
    fn push(&mut self, jobs: &mut Jobs, plan: &Plan, job: Job) -> Result<(), Shed>;

    /// Queues a request that was already accepted and then interrupted, whatever the bound.
    fn requeue(&mut self, jobs: &mut Jobs, plan: &Plan, job: Job);

    /// Offers heads in order to `place` until it names a worker for one, and takes that one out.
    fn take(
        &mut self,
        now_ns: u64,
        jobs: &Jobs,
        plan: &Plan,
        place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(Job, WorkerId)>;

    /// Requests waiting.
    fn waiting(&self) -> usize;

    /// Requests of one class waiting; 0 where the discipline does not tell classes apart.
    fn waiting_of(&self, class: ClassId) -> usize;

    /// Whether something waits that the plan lets run on this worker.
    #[inline]
    fn wants(&self, _plan: &Plan, _worker: WorkerId) -> bool {
        self.waiting() > 0
    }

    /// The request that would be offered first; `None` when nothing waits or the discipline cannot
    /// tell.
    fn head<'a>(&self, _jobs: &'a Jobs) -> Option<&'a Job> {
        None
    }

    /// Takes out the oldest request that no worker has begun, where the discipline can tell
    /// (Concord's dispatcher cannot go on with what a worker began, § 3.3).
    fn take_unstarted(&mut self, _jobs: &Jobs) -> Option<Job> {
        None
    }

    /// A request of the class received so much service.
    fn served(&mut self, _class: ClassId, _served_ns: u64) {}

    /// The plan's ranking changed.
    fn replanned(&mut self, plan: &Plan);
}
