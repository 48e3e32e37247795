//! Receive-side scaling: the flow's hash names the queue, whoever is busy.

use super::{Placement, Workers};
use crate::role::Owner;
use crate::{Job, Plan, WorkerId};

/// The present worker at position `hash · count ÷ 2³²`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hashed {
    /// Flows that the requests belong to; 0 for as many as requests. Few flows load queues
    /// unevenly, however many requests there are.
    flows: u64,
}

impl Hashed {
    /// Requests of so many flows, 0 for one each.
    #[must_use]
    pub fn new(flows: u64) -> Self {
        Self { flows }
    }

    /// Position `hash · count ÷ 2³²` by multiply-shift: uniform over any count, and no division on the way in.
    #[inline]
    pub(crate) fn position(hash: u64, count: u64) -> usize {
        ((hash * count) >> 32) as usize
    }

    /// The hash by which a request is steered.
    fn hash(self, job: &Job) -> u64 {
        match self.flows {
            0 => u64::from(job.flow),
            flows => {
                let flow = (u64::from(job.flow) * flows) >> 32;
                // Fibonacci hashing (Knuth, vol. 3, § 6.4) spreads neighbouring flows.
                flow.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
            }
        }
    }
}

impl Placement for Hashed {
    const OWNER: Owner = Owner::Steering;

    #[inline]
    fn has_room(&self, _workers: &Workers) -> bool {
        true
    }

    #[inline]
    fn place(&mut self, job: &Job, _plan: &Plan, workers: &Workers) -> Option<WorkerId> {
        let present = workers.present();
        let count = present.len();
        if count == 0 {
            return None;
        }
        let position = Self::position(self.hash(job), count as u64);
        present
            .iter()
            .nth(position)
            .map(|worker| WorkerId(worker as u16))
    }

    fn adopt(&mut self, _fresh: &Self) {}
}
