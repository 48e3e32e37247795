//! Receive-side scaling: the flow's hash names the queue, whoever is busy.

use super::{Placement, Workers};
use crate::role::Owner;
use crate::{Job, Plan, WorkerId};

/// The present worker at position `flow · count ÷ 2³²`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hashed;

impl Placement for Hashed {
    const OWNER: Owner = Owner::Steering;

    #[inline]
    fn place(&mut self, job: &Job, _plan: &Plan, workers: &Workers) -> Option<WorkerId> {
        let present = workers.present();
        let count = present.len();
        if count == 0 {
            return None;
        }
        // Multiply-shift: uniform over any count, and no division on the way in.
        let position = ((u64::from(job.flow) * count as u64) >> 32) as usize;
        present
            .iter()
            .nth(position)
            .map(|worker| WorkerId(worker as u16))
    }
}
