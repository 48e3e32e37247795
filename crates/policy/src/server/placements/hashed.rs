//! Receive-side scaling: the flow's hash names the queue, whoever is busy.

use super::{Placement, Workers, flow_hash};
use crate::server::role::Owner;
use crate::server::{Job, Plan, WorkerId};

/// The present worker at position `hash · count ÷ 2³²`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hashed {
    /// Flows that the requests belong to; 0 for as many as requests. Few flows load queues
    /// unevenly, however many requests there are.
    flows: u64,
    /// Of the flows' addresses.
    seed: u64,
}

impl Hashed {
    /// Requests of `flows` flows, 0 for one each, whose addresses are drawn from `seed`.
    #[must_use]
    pub fn new(flows: u64, seed: u64) -> Self {
        Self { flows, seed }
    }

    /// Position `hash · count ÷ 2³²` by multiply-shift: uniform over any count, and no division on the way in.
    #[inline]
    pub(crate) fn position(hash: u64, count: u64) -> usize {
        ((hash * count) >> 32) as usize
    }

    /// Which of `queues` receive queues a request of this [`flow`](Job::flow) reaches.
    #[must_use]
    #[inline]
    pub fn queue(&self, flow: u32, queues: usize) -> usize {
        Self::position(self.hash(flow), queues as u64)
    }

    /// The hash by which a request is steered.
    #[inline]
    fn hash(&self, flow: u32) -> u64 {
        match self.flows {
            0 => u64::from(flow),
            flows => flow_hash((u64::from(flow) * flows) >> 32, self.seed).into(),
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
        let position = self.queue(job.flow, count);
        present
            .iter()
            .nth(position)
            .map(|worker| WorkerId(worker as u16))
    }

    fn adopt(&mut self, _fresh: &Self) {}
}
