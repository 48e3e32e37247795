//! Plans that are made once.

use super::{Control, WithoutLearning, WithoutShares};
use crate::server::Plan;
use crate::{BitSet, ClassId};

/// How a fixed plan divides the workers that are there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fixed {
    /// Nothing is reserved.
    Open,
    /// So many workers for the first-ranked class, which may use all others too (DARC-static;
    /// 0 is fixed priority). At least one worker stays open to the rest.
    First(usize),
}

impl Control for Fixed {
    fn plans(&self) -> bool {
        false
    }

    fn workers_changed(&mut self, plan: &mut Plan, present: &BitSet) {
        let workers = present.len();
        let reserved = match *self {
            Self::Open => 0,
            Self::First(reserved) => reserved.min(workers.saturating_sub(1)),
        };
        let first: BitSet = present.iter().take(reserved).collect();
        let rest = present.difference(&first);
        for rank in 0..plan.ranked().len() {
            let own = if rank == 0 { first } else { BitSet::EMPTY };
            plan.allow(plan.ranked()[rank], own, rest);
        }
        if reserved > 0 {
            // UNKNOWN never competes with declared classes for more than the spillway.
            let spillway: BitSet = present.iter().skip(workers - 1).collect();
            plan.allow(
                ClassId(plan.ranked().len() as u16 - 1),
                spillway,
                BitSet::EMPTY,
            );
        }
    }

    fn adopt(&mut self, fresh: &Self) -> bool {
        let differs = self != fresh;
        *self = *fresh;
        differs
    }
}

impl WithoutLearning for Fixed {}
impl WithoutShares for Fixed {}
