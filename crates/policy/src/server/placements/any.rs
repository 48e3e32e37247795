//! Any placement of a dispatcher, chosen while running: for systems that are put together by name.

use super::{Choices, IdleWorker, Placement, Reserved, ReservedBounded, ShortestQueue, Workers};
use crate::server::role::Owner;
use crate::server::{Job, Plan, WorkerId};

/// One of the placements. A match costs a predicted branch per call, and all these systems share
/// one compiled type.
pub enum AnyPlacement {
    /// Any idle worker.
    Idle(IdleWorker),
    /// An idle worker that the plan allows.
    Reserved(Reserved),
    /// The least occupied worker with room that the plan allows.
    ReservedBounded(ReservedBounded),
    /// The least occupied worker at once.
    Shortest(ShortestQueue),
    /// The least occupied of some drawn at random, at once.
    Choices(Choices),
}

impl Placement for AnyPlacement {
    const OWNER: Owner = Owner::Dispatcher;

    #[inline]
    fn has_room(&self, workers: &Workers) -> bool {
        match self {
            Self::Idle(placement) => placement.has_room(workers),
            Self::Reserved(placement) => placement.has_room(workers),
            Self::ReservedBounded(placement) => placement.has_room(workers),
            Self::Shortest(placement) => placement.has_room(workers),
            Self::Choices(placement) => placement.has_room(workers),
        }
    }

    #[inline]
    fn place(&mut self, job: &Job, plan: &Plan, workers: &Workers) -> Option<WorkerId> {
        match self {
            Self::Idle(placement) => placement.place(job, plan, workers),
            Self::Reserved(placement) => placement.place(job, plan, workers),
            Self::ReservedBounded(placement) => placement.place(job, plan, workers),
            Self::Shortest(placement) => placement.place(job, plan, workers),
            Self::Choices(placement) => placement.place(job, plan, workers),
        }
    }

    fn adopt(&mut self, fresh: &Self) {
        match (self, fresh) {
            (Self::Idle(own), Self::Idle(fresh)) => own.adopt(fresh),
            (Self::Reserved(own), Self::Reserved(fresh)) => own.adopt(fresh),
            (Self::ReservedBounded(own), Self::ReservedBounded(fresh)) => own.adopt(fresh),
            (Self::Shortest(own), Self::Shortest(fresh)) => own.adopt(fresh),
            (Self::Choices(own), Self::Choices(fresh)) => own.adopt(fresh),
            // Which placement it is does not change: workers hold as many requests as it let them.
            _ => {}
        }
    }
}
