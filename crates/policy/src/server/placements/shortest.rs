//! Join the shortest queue.

use super::{Placement, Workers};
use crate::Rng;
use crate::server::role::Owner;
use crate::server::{Job, Plan, WorkerId};

/// The worker that holds the fewest requests, ties at random (Tiny Quanta § 3).
#[derive(Clone, Debug)]
pub struct ShortestQueue {
    rng: Rng,
}

impl ShortestQueue {
    /// Ties fall by `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
        }
    }
}

impl Placement for ShortestQueue {
    const OWNER: Owner = Owner::Dispatcher;

    #[inline]
    fn has_room(&self, _workers: &Workers) -> bool {
        true
    }

    #[inline]
    fn place(&mut self, _job: &Job, _plan: &Plan, workers: &Workers) -> Option<WorkerId> {
        let least = workers.least()?;
        let worker = least.nth(self.rng.below(least.len()))?;
        Some(WorkerId(worker as u16))
    }

    fn adopt(&mut self, _fresh: &Self) {}
}
