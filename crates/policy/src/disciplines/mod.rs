//! Queue disciplines: in which order waiting requests are offered to the placement.

mod any;
mod classes;
mod cycle_stealing;
mod deadline;
mod drr;
mod fifo;
mod heap;
mod mlfq;
mod multi_queue;
mod remaining;
mod sizes;
mod split_fifo;
mod typed;
mod wrr;

pub use any::AnyDiscipline;
pub use cycle_stealing::CycleStealing;
pub use deadline::{Deadlines, Earliest};
pub use drr::DeficitRoundRobin;
pub use fifo::Fifo;
pub use heap::{ByKey, Key};
pub use mlfq::{Levels, Mlfq};
pub use multi_queue::{MultiQueue, Reentry};
pub use remaining::{Remaining, Shortest};
pub use sizes::{SizeSource, Sizes};
pub use split_fifo::SplitFifo;
pub use typed::Typed;
pub use wrr::WeightedRoundRobin;

use crate::role::Shed;
use crate::{ClassId, Job, JobId, Jobs, Plan, WorkerId};

/// Keeps the waiting requests and offers them in its order.
pub trait Discipline {
    /// Queues a request.
    ///
    /// # Errors
    /// [`Shed`] when its queue is full.
    fn push(&mut self, jobs: &mut Jobs, plan: &Plan, job: Job) -> Result<(), Shed>;

    /// Queues a request that was already accepted and then interrupted, whatever the bound.
    fn requeue(&mut self, jobs: &mut Jobs, plan: &Plan, job: Job);

    /// Offers heads in order to `place` until it names a worker for one, and takes that one out. By reference: a copy would
    /// wait for the stores that have just written the job.
    fn take<'a>(
        &mut self,
        now_ns: u64,
        jobs: &'a Jobs,
        plan: &Plan,
        place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(&'a Job, WorkerId)>;

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

    /// When the request that would be offered first was admitted, relative to all others of the slab; `None` where the order
    /// is not that of admission.
    fn front_sequence(&self, _jobs: &Jobs) -> Option<u64> {
        None
    }

    /// Takes out the oldest request that no worker has begun, where the discipline can tell
    /// (Concord's dispatcher cannot go on with what a worker began, § 3.3).
    fn take_unstarted(&mut self, _jobs: &Jobs) -> Option<Job> {
        None
    }

    /// The request that would be offered after `others` more, in case these leave first; `None`
    /// when there is none or the discipline cannot tell.
    fn after<'a>(&self, jobs: &'a Jobs, others: usize) -> Option<&'a Job> {
        if others == 0 { self.head(jobs) } else { None }
    }

    /// Takes the oldest waiting request of the class out, if no worker has begun it and the discipline tells classes apart.
    fn withdraw(&mut self, _jobs: &Jobs, _plan: &Plan, _class: ClassId) -> Option<JobId> {
        None
    }

    /// A request of the class that was interrupted and kept for its own worker goes on there.
    fn resumed(&mut self, _class: ClassId) {}

    /// A request of the class left its worker, finished or not, after so much service there.
    fn served(&mut self, _class: ClassId, _served_ns: u64) {}

    /// A request of the class finished after so much service in all.
    fn completed(&mut self, _class: ClassId, _cpu_ns: u64) {}

    /// The plan's ranking changed.
    fn replanned(&mut self, plan: &Plan);
}
