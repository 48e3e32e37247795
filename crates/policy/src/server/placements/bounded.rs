//! Join the bounded shortest queue, JBSQ(k) (R2P2; Concord § 3.2).

use super::{Placement, Workers};
use crate::server::role::Owner;
use crate::server::{Job, Plan, WorkerId};

/// The least occupied worker that has room; the bound `k`, which counts the running request, is
/// that of [`Workers`]. `k = 1` is the single queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bounded;

impl Placement for Bounded {
    const OWNER: Owner = Owner::Dispatcher;

    #[inline]
    fn has_room(&self, workers: &Workers) -> bool {
        workers.least().is_some()
    }

    #[inline]
    fn place(&mut self, _job: &Job, _plan: &Plan, workers: &Workers) -> Option<WorkerId> {
        workers.shortest()
    }

    fn adopt(&mut self, _fresh: &Self) {}
}
