//! Queue disciplines: in which order waiting requests are offered to the placement.

mod any;
mod classes;
mod cycle_stealing;
mod deadline;
mod drr;
mod fifo;
mod gittins;
mod heap;
mod mlfq;
mod multi_queue;
mod remaining;
mod service_lengths;
mod sizes;
mod split_fifo;
mod typed;
mod wrr;

pub use any::AnyDiscipline;
pub use cycle_stealing::CycleStealing;
pub use deadline::{Deadlines, Earliest};
pub use drr::DeficitRoundRobin;
pub use fifo::Fifo;
pub use gittins::Gittins;
pub use heap::{ByKey, Key};
pub use mlfq::{Levels, Mlfq};
pub use multi_queue::{MultiQueue, Reentry};
pub use remaining::{Remaining, Shortest};
pub use sizes::{SizeSource, Sizes};
pub use split_fifo::SplitFifo;
pub use typed::Typed;
pub use wrr::WeightedRoundRobin;

use crate::ClassId;
use crate::server::role::{Shed, UrgencyIndex};
use crate::server::{Job, Jobs, Plan, WorkerId};

/// What an engine gives back after no more service than this it could not go on with, ns: others come first.
const UNTOUCHED_NS: u64 = 100;

/// Keeps the waiting requests and offers them in its order. What only some can do is in three traits of their own, of which a
/// discipline has each or says that it is [without](crate::server::role#what-a-role-can-do-more).
pub trait Discipline: Preview + Accounting + Withdrawal {
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
    fn wants(&self, plan: &Plan, worker: WorkerId) -> bool;

    /// The plan's ranking changed.
    fn replanned(&mut self, plan: &Plan);

    /// Takes over the rules of one that was just built; requests that wait keep their places: see
    /// [`Ingress::adopt`](crate::server::role::Ingress::adopt).
    fn adopt(&mut self, fresh: &Self);
}

/// A look at what a discipline would offer.
pub trait Preview {
    /// The request that would be offered after `others` more, in case these leave first; 0 asks for the next. `None` when
    /// there is none or the discipline cannot tell.
    fn peek<'a>(&self, jobs: &'a Jobs, others: usize) -> Option<&'a Job>;

    /// When the request that would be offered first was admitted, relative to all others of the slab; `None` where the order
    /// is not that of admission.
    fn front_sequence(&self, jobs: &Jobs) -> Option<u64>;

    /// How urgent a request of the class is after so much service; `None` where the order goes by something else.
    fn index(&self, class: ClassId, attained_ns: u64) -> Option<UrgencyIndex>;
}

/// Cannot tell the next request before there is a worker for it.
pub trait WithoutPreview {}

impl<D: WithoutPreview> Preview for D {
    #[inline]
    fn peek<'a>(&self, _jobs: &'a Jobs, _others: usize) -> Option<&'a Job> {
        None
    }

    fn front_sequence(&self, _jobs: &Jobs) -> Option<u64> {
        None
    }

    #[inline]
    fn index(&self, _class: ClassId, _attained_ns: u64) -> Option<UrgencyIndex> {
        None
    }
}

/// A discipline that tells which requests no worker has begun.
pub trait Withdrawal {
    /// Takes out the oldest request of the class, or of any class, that no worker has begun; `None` where there is none:
    /// for a dispatcher that works, which cannot go on with what a worker began (Concord § 3.3), and for requests that are to
    /// be served elsewhere.
    fn take_unstarted<'a>(
        &mut self,
        jobs: &'a Jobs,
        plan: &Plan,
        class: Option<ClassId>,
    ) -> Option<&'a Job>;
}

/// Keeps every request until a worker takes it.
pub trait WithoutWithdrawal {}

impl<D: WithoutWithdrawal> Withdrawal for D {
    fn take_unstarted<'a>(
        &mut self,
        _jobs: &'a Jobs,
        _plan: &Plan,
        _class: Option<ClassId>,
    ) -> Option<&'a Job> {
        None
    }
}

/// A discipline that orders by the service its requests received.
pub trait Accounting {
    /// A request of the class that was interrupted and kept for its own worker goes on there.
    fn resumed(&mut self, class: ClassId);

    /// A request of the class left its worker, finished or not, after so much service there.
    fn served(&mut self, class: ClassId, served_ns: u64);

    /// A request of the class finished after so much service in all.
    fn completed(&mut self, class: ClassId, cpu_ns: u64);
}

/// Counts no service.
pub trait WithoutAccounting {}

impl<D: WithoutAccounting> Accounting for D {
    #[inline]
    fn resumed(&mut self, _class: ClassId) {}

    #[inline]
    fn served(&mut self, _class: ClassId, _served_ns: u64) {}

    #[inline]
    fn completed(&mut self, _class: ClassId, _cpu_ns: u64) {}
}
