//! The plan a typed dispatcher follows: in which order classes are served, and by whom.

use crate::{BitSet, ClassId};
use alloc::vec;
use alloc::vec::Vec;

/// How a typed dispatcher orders the heads of its queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Oldest head first: c-FCFS over typed queues, DARC's first window (Perséphone § 3).
    Arrival,
    /// By the plan's ranking.
    Rank,
}

/// Classes that share reserved workers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Group {
    /// Its classes, as indices.
    pub classes: BitSet,
    /// Demand, as a fraction of the whole workload's: Σ S·R over the group ÷ Σ S·R over all.
    pub demand: f64,
    /// Workers that are this group's own: position in the list of present workers, from …
    pub start: usize,
    /// … to (exclusive). From here on it steals.
    pub end: usize,
}

/// Which class runs where, and in which order.
#[derive(PartialEq, Debug)]
pub struct Plan {
    /// Present order of service.
    pub order: Order,
    ranked: Vec<ClassId>,
    rank: Vec<u16>,
    reserved: Vec<BitSet>,
    stealable: Vec<BitSet>,
    /// Ascending by service time. Empty while nothing is reserved.
    pub groups: Vec<Group>,
}

/// By hand, so that a copy has room for as many groups as there can be: none but the first copy of a plan allocates.
impl Clone for Plan {
    fn clone(&self) -> Self {
        let mut copy = Self::open(self.order, self.ranked.clone(), BitSet::EMPTY);
        copy.clone_from(self);
        copy
    }

    fn clone_from(&mut self, source: &Self) {
        let Self {
            order,
            ranked,
            rank,
            reserved,
            stealable,
            groups,
        } = source;
        self.order = *order;
        self.ranked.clone_from(ranked);
        self.rank.clone_from(rank);
        self.reserved.clone_from(reserved);
        self.stealable.clone_from(stealable);
        self.groups.clone_from(groups);
    }
}

impl Plan {
    /// Every class may run on every worker of `workers`, in the order of `ranked`.
    ///
    /// # Panics
    /// When `ranked` is not a permutation of `0..ranked.len()`.
    #[must_use]
    pub fn open(order: Order, ranked: Vec<ClassId>, workers: BitSet) -> Self {
        let classes = ranked.len();
        let mut plan = Self {
            order,
            ranked,
            rank: vec![0; classes],
            reserved: vec![BitSet::EMPTY; classes],
            stealable: vec![workers; classes],
            groups: Vec::with_capacity(classes),
        };
        plan.index_ranks();
        plan
    }

    /// Classes in the order in which they are served.
    #[must_use]
    pub fn ranked(&self) -> &[ClassId] {
        &self.ranked
    }

    /// The place of a class in that order.
    #[inline]
    #[must_use]
    pub fn rank(&self, class: ClassId) -> usize {
        usize::from(self.rank[class.index()])
    }

    /// Workers that are the class's own.
    #[inline]
    #[must_use]
    pub fn reserved(&self, class: ClassId) -> &BitSet {
        &self.reserved[class.index()]
    }

    /// Workers of longer classes that the class may use as well.
    #[inline]
    #[must_use]
    pub fn stealable(&self, class: ClassId) -> &BitSet {
        &self.stealable[class.index()]
    }

    /// Says where a class may run.
    pub fn allow(&mut self, class: ClassId, reserved: BitSet, stealable: BitSet) {
        self.reserved[class.index()] = reserved;
        self.stealable[class.index()] = stealable;
    }

    /// Orders the classes by a key, ascending; ties keep the order of declaration.
    pub fn rank_by_key(&mut self, key: impl Fn(ClassId) -> f64) {
        self.ranked
            .sort_unstable_by(|&a, &b| key(a).total_cmp(&key(b)).then(a.cmp(&b)));
        self.index_ranks();
    }

    /// Orders the classes as listed.
    ///
    /// # Panics
    /// When not every class is listed exactly once.
    pub fn rank_as(&mut self, ranked: &[ClassId]) {
        assert_eq!(ranked.len(), self.ranked.len(), "every class has a place");
        self.ranked.copy_from_slice(ranked);
        self.index_ranks();
    }

    fn index_ranks(&mut self) {
        for (rank, class) in self.ranked.iter().enumerate() {
            self.rank[class.index()] = rank as u16;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_takes_later_plans_without_allocating() {
        let classes = [ClassId(0), ClassId(1)].to_vec();
        let mut plan = Plan::open(Order::Arrival, classes, BitSet::range(0, 3));
        let mut copy = plan.clone();
        let place = copy.groups.as_ptr();
        plan.order = Order::Rank;
        plan.rank_by_key(|class| -f64::from(class.0));
        plan.allow(ClassId(1), BitSet::range(0, 1), BitSet::range(1, 3));
        plan.groups.extend((0..2).map(|k| Group {
            classes: [k].into_iter().collect(),
            demand: 0.5,
            start: k,
            end: k + 1,
        }));
        copy.clone_from(&plan);
        assert_eq!(alloc::format!("{copy:?}"), alloc::format!("{plan:?}"));
        assert_eq!(copy.groups.as_ptr(), place);
    }
}
