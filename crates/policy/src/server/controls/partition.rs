//! Static partitioning: every class has its workers, and nobody else's (Perséphone, Table 5).

use super::{Control, WithoutLearning, WithoutShares};
use crate::server::Plan;
use crate::server::reservation::{Profile, Rules, assign, reserve};
use crate::{BitSet, ClassHint, ClassId};
use alloc::vec::Vec;

/// Divides the workers by the declared demands and never again.
pub struct Partition {
    mean_ns: Vec<f64>,
    share: Vec<f64>,
}

impl Partition {
    /// By the declared means and shares.
    #[must_use]
    pub fn new(classes: &[ClassHint]) -> Self {
        Self {
            mean_ns: classes.iter().map(|hint| hint.mean_ns).collect(),
            share: classes.iter().map(|hint| hint.share).collect(),
        }
    }
}

impl Control for Partition {
    fn plans(&self) -> bool {
        true
    }

    /// Algorithm 2 without its stealing; what rounding left over goes to the longest class.
    fn workers_changed(&mut self, plan: &mut Plan, present: &BitSet) {
        const EACH_ALONE: Rules = Rules {
            delta: 1.0,
            spillway: 1,
        };
        let profile = Profile {
            mean_ns: &self.mean_ns,
            share: &self.share,
        };
        reserve(plan, profile, EACH_ALONE, present);
        if let Some(longest) = plan.groups.last_mut() {
            longest.end = present.len().max(longest.start);
        }
        assign(plan, EACH_ALONE.spillway, present);
        for class in (0..plan.ranked().len() as u16).map(ClassId) {
            let own = *plan.reserved(class);
            plan.allow(class, own, BitSet::EMPTY);
        }
    }

    fn adopt(&mut self, _fresh: &Self) -> bool {
        false
    }
}

impl WithoutLearning for Partition {}
impl WithoutShares for Partition {}
