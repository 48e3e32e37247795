//! The workers the plan allows the class: its own first, then those it may steal.

use super::{Placement, Workers};
use crate::server::role::Owner;
use crate::server::{Job, Plan, WorkerId};

/// An idle worker of reserved ∪ stealable, reserved ones first, lowest index first (Perséphone,
/// Algorithm 1).
#[derive(Clone, Copy, Debug, Default)]
pub struct Reserved;

impl Placement for Reserved {
    const OWNER: Owner = Owner::Dispatcher;

    #[inline]
    fn has_room(&self, workers: &Workers) -> bool {
        !workers.idle().is_empty()
    }

    #[inline]
    fn place(&mut self, job: &Job, plan: &Plan, workers: &Workers) -> Option<WorkerId> {
        let (reserved, stealable) = (plan.reserved(job.class), plan.stealable(job.class));
        let worker = workers.idle().first_in(reserved, stealable)?;
        Some(WorkerId(worker as u16))
    }

    fn adopt(&mut self, _fresh: &Self) {}
}
