//! Plans that somebody else makes: a rack's control plane (Pallas § 4.3).

use super::{Control, FollowsShares, WithoutLearning};
use crate::server::role::GroupShares;
use crate::server::{Order, Plan};
use crate::{BitSet, ClassId};
use alloc::vec::Vec;

/// Follows the shares that it is given: one group is served first come first served by all workers; several have their workers
/// reserved and may use those of longer ones, as under DARC. The order of classes is the declared one until the shares give
/// another.
pub struct GivenShares {
    /// Workers and types of each group, shortest first; no more than one: nothing is reserved.
    parts: Vec<(BitSet, usize)>,
    /// All types by execution time, as the last duty that tells it lists them.
    ascending: Vec<ClassId>,
}

impl GivenShares {
    /// No shares yet: c-FCFS.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        Self {
            parts: Vec::with_capacity(classes),
            ascending: Vec::with_capacity(classes),
        }
    }

    /// Where a type runs that is in none of the groups: with the first that is as long, else with the longest. Late
    /// arrivals and clones.
    fn host(&self, plan: &Plan, class: ClassId) -> usize {
        let longest = |classes: &BitSet| {
            let ranks = classes.iter().map(|class| plan.rank(ClassId(class as u16)));
            ranks.max().unwrap_or(0)
        };
        let own = self
            .parts
            .iter()
            .position(|(classes, _)| classes.contains(class.index()));
        own.or_else(|| {
            self.parts
                .iter()
                .position(|(classes, _)| longest(classes) >= plan.rank(class))
        })
        .unwrap_or(self.parts.len() - 1)
    }
}

impl Control for GivenShares {
    fn plans(&self) -> bool {
        false
    }

    fn workers_changed(&mut self, plan: &mut Plan, present: &BitSet) {
        let classes = plan.ranked().len() as u16;
        if !self.ascending.is_empty() {
            plan.rank_as(&self.ascending);
        }
        if self.parts.len() < 2 {
            plan.order = Order::Arrival;
            (0..classes).for_each(|class| plan.allow(ClassId(class), BitSet::EMPTY, *present));
            return;
        }
        plan.order = Order::Rank;
        for class in (0..classes).map(ClassId) {
            let host = self.host(plan, class);
            let start: usize = self.parts[..host].iter().map(|(_, cores)| cores).sum();
            let own = self.parts[host].1;
            // With fewer workers than were counted on, the last one serves who found none.
            let start = start.min(present.len().saturating_sub(1));
            let workers = |from: usize, to: usize| present.iter().take(to).skip(from).collect();
            let end = if host + 1 == self.parts.len() {
                present.len()
            } else {
                start + own
            };
            plan.allow(class, workers(start, end), workers(end, present.len()));
        }
    }

    fn adopt(&mut self, _fresh: &Self) -> bool {
        false
    }
}

impl WithoutLearning for GivenShares {}

impl FollowsShares for GivenShares {
    fn assigned(&mut self, shares: &GroupShares) -> bool {
        self.parts.clear();
        let parts = shares.shares.iter();
        self.parts
            .extend(parts.map(|share| (share.classes, share.workers)));
        if !shares.ascending.is_empty() {
            self.ascending.clear();
            self.ascending.extend_from_slice(&shares.ascending);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::role::Share;

    fn plan() -> Plan {
        let ranked = (0..4).map(ClassId).collect();
        Plan::open(Order::Rank, ranked, BitSet::EMPTY)
    }

    fn given(parts: &[(&[usize], usize)]) -> GivenShares {
        let mut given = GivenShares::new(4);
        assert!(
            given.assigned(&GroupShares {
                shares: parts
                    .iter()
                    .map(|&(classes, workers): &(&[usize], usize)| Share {
                        classes: classes.iter().copied().collect(),
                        workers,
                    })
                    .collect(),
                ascending: Vec::new(),
            })
        );
        given
    }

    #[test]
    fn one_group_is_first_come_first_served() {
        let mut plan = plan();
        given(&[(&[0, 1], 4)]).workers_changed(&mut plan, &BitSet::range(0, 4));
        assert_eq!(plan.order, Order::Arrival);
        assert!((0..4).all(|class| *plan.stealable(ClassId(class)) == BitSet::range(0, 4)));
    }

    #[test]
    fn groups_have_their_workers_and_steal_from_longer_ones() {
        let mut plan = plan();
        given(&[(&[0], 3), (&[2, 3], 7)]).workers_changed(&mut plan, &BitSet::range(0, 10));
        assert_eq!(plan.order, Order::Rank);
        assert_eq!(*plan.reserved(ClassId(0)), BitSet::range(0, 3));
        assert_eq!(*plan.stealable(ClassId(0)), BitSet::range(3, 10));
        assert_eq!(*plan.reserved(ClassId(2)), BitSet::range(3, 10));
        // A stranger runs with the first group that is as long.
        assert_eq!(plan.reserved(ClassId(1)), plan.reserved(ClassId(2)));
    }

    #[test]
    fn classes_are_served_in_the_order_that_the_assignment_tells() {
        let mut plan = plan();
        let mut given = given(&[(&[0], 3), (&[2, 3], 7)]);
        let swapped = [2, 1, 0, 3].map(ClassId);
        let share = |classes: &[usize], workers| Share {
            classes: classes.iter().copied().collect(),
            workers,
        };
        given.assigned(&GroupShares {
            shares: alloc::vec![share(&[2], 3), share(&[0, 3], 7)],
            ascending: swapped.to_vec(),
        });
        given.workers_changed(&mut plan, &BitSet::range(0, 10));
        assert_eq!(plan.ranked(), swapped);
        // A stranger runs with the first group that is as long: now that of type 0.
        assert_eq!(plan.reserved(ClassId(1)), plan.reserved(ClassId(0)));
    }

    #[test]
    fn everyone_runs_somewhere_however_few_workers_are_left() {
        let mut plan = plan();
        given(&[(&[0], 3), (&[2], 7)]).workers_changed(&mut plan, &BitSet::range(5, 6));
        assert!((0..4).all(|class| *plan.reserved(ClassId(class)) == BitSet::range(5, 6)));
    }
}
