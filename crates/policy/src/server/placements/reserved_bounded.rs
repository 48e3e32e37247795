//! JBSQ(k) within what a plan allows: typed queues in front of bounded ones.

use super::{Placement, Workers};
use crate::server::role::Owner;
use crate::server::{Job, Plan, WorkerId};

/// The least occupied worker with room of reserved ∪ stealable; reserved ones first among equals,
/// then the lowest index. `k = 1` is [`Reserved`](super::Reserved); where nothing is reserved it
/// is [`Bounded`](super::Bounded).
#[derive(Clone, Copy, Debug, Default)]
pub struct ReservedBounded;

impl Placement for ReservedBounded {
    const OWNER: Owner = Owner::Dispatcher;

    #[inline]
    fn has_room(&self, workers: &Workers) -> bool {
        workers.least().is_some()
    }

    #[inline]
    fn place(&mut self, job: &Job, plan: &Plan, workers: &Workers) -> Option<WorkerId> {
        let (reserved, stealable) = (plan.reserved(job.class), plan.stealable(job.class));
        let mut levels = workers.levels();
        let worker = levels.find_map(|level| level.first_in(reserved, stealable))?;
        Some(WorkerId(worker as u16))
    }

    fn adopt(&mut self, _fresh: &Self) {}
}
