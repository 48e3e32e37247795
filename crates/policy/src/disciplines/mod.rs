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
        jobs: &Jobs,
        plan: &Plan,
        place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(Job, WorkerId)>;

    /// Requests waiting.
    fn waiting(&self) -> usize;

    /// Requests of one class waiting; 0 where the discipline does not tell classes apart.
    fn waiting_of(&self, class: ClassId) -> usize;

    /// The plan's ranking changed.
    fn replanned(&mut self, plan: &Plan);
}
