//! DARC's worker reservation: Algorithm 2 of Perséphone (SOSP '21, § 3).
//!
//! Classes whose mean service times are within a factor δ form a group; a group's demand is its
//! part of all CPU time, `Σ S·R` over the group ÷ `Σ S·R` over all; it gets the demand times the
//! number of workers, rounded half up and at least one, from the workers that are still free, and
//! may steal from all that no shorter group reserved.
//!
//! Two readings of the listing: it omits "× workers" and computes what can be stolen inside the
//! loop; the text and its TPC-C example (2, 6 and 6 of 14 workers) say what is done here.

use crate::server::{Group, Order, Plan};
use crate::{BitSet, ClassId};

/// What was measured of each declared class. Slices of equal length, indexed by class.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// Mean service time, ns; meaningless where the share is 0.
    pub mean_ns: &'a [f64],
    /// Share of the requests; 0 for a class that was never seen.
    pub share: &'a [f64],
}

impl Profile<'_> {
    /// Mean CPU time of a request of the whole workload, ns: `Σ S·R`.
    #[must_use]
    pub fn total_ns(&self) -> f64 {
        self.mean_ns
            .iter()
            .zip(self.share)
            .map(|(mean, share)| mean * share)
            .sum()
    }

    /// The class's part of all CPU time (Equation 1), 0 to 1.
    #[must_use]
    pub fn demand(&self, class: ClassId) -> f64 {
        let total = self.total_ns();
        let class = class.index();
        if total > 0.0 {
            self.mean_ns[class] * self.share[class] / total
        } else {
            0.0
        }
    }

    fn seen(&self, class: ClassId) -> bool {
        self.share
            .get(class.index())
            .is_some_and(|&share| share > 0.0)
    }
}

/// The two knobs of the algorithm.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rules {
    /// Classes join a group while their mean is within this factor of its shortest, inclusive.
    pub delta: f64,
    /// So many of the last workers serve the groups that found none free, classes never seen,
    /// and UNKNOWN.
    pub spillway: usize,
}

/// Plans anew, in place: ranks the classes, groups them, divides the workers `present`.
/// Never allocates.
pub fn reserve(plan: &mut Plan, profile: Profile<'_>, rules: Rules, present: &BitSet) {
    rank(plan, profile);
    group(plan, profile, rules.delta);
    divide(plan, present.len());
    assign(plan, rules.spillway, present);
}

/// Seen classes by mean service time; then those never seen; UNKNOWN last.
fn rank(plan: &mut Plan, profile: Profile<'_>) {
    plan.order = Order::Rank;
    plan.rank_by_key(|class| {
        if profile.seen(class) {
            profile.mean_ns[class.index()]
        } else {
            f64::INFINITY
        }
    });
}

/// `group_types(Types, δ).sort()`: a class joins if it is within δ of the group's shortest.
fn group(plan: &mut Plan, profile: Profile<'_>, delta: f64) {
    plan.groups.clear();
    let mut shortest_ns = 0.0;
    for position in 0..plan.ranked().len() {
        let class = plan.ranked()[position];
        if !profile.seen(class) {
            break;
        }
        let mean_ns = profile.mean_ns[class.index()];
        if plan.groups.is_empty() || mean_ns > delta * shortest_ns {
            plan.groups.push(Group {
                classes: BitSet::EMPTY,
                demand: 0.0,
                start: 0,
                end: 0,
            });
            shortest_ns = mean_ns;
        }
        let current = plan.groups.last_mut().expect("a group was just ensured");
        current.classes.insert(class.index());
        current.demand += profile.demand(class);
    }
}

/// Rounds each group's demand and takes so many of the next free workers.
fn divide(plan: &mut Plan, workers: usize) {
    let mut free = 0;
    for group in &mut plan.groups {
        let wanted = round_half_up(group.demand * workers as f64).max(1);
        group.start = free;
        group.end = (free + wanted).min(workers);
        free = group.end;
    }
}

/// Turns the groups' ranges into sets of workers. A range that starts past the last worker found
/// none free: that group runs on the spillway.
pub fn assign(plan: &mut Plan, spillway: usize, present: &BitSet) {
    let workers = present.len();
    let spillway = slice(present, workers.saturating_sub(spillway.max(1)), workers);
    for class in 0..plan.ranked().len() {
        plan.allow(ClassId(class as u16), spillway, BitSet::EMPTY);
    }
    for index in 0..plan.groups.len() {
        let Group {
            classes,
            start,
            end,
            ..
        } = plan.groups[index];
        if start >= workers {
            continue;
        }
        let (reserved, stealable) = (slice(present, start, end), slice(present, end, workers));
        for class in classes.iter() {
            plan.allow(ClassId(class as u16), reserved, stealable);
        }
    }
}

/// CPU waste expected of a plan, in cores: what rounding up (Equation 2) and the minimum of one
/// worker give to groups beyond their demand. Stealing makes the real waste smaller.
#[must_use]
pub fn expected_waste_cores(plan: &Plan, workers: usize) -> f64 {
    plan.groups
        .iter()
        .map(|group: &Group| {
            let reserved = group.end.saturating_sub(group.start) as f64;
            (reserved - group.demand * workers as f64).max(0.0)
        })
        .sum()
}

/// Members of `set` at positions `from..to`.
fn slice(set: &BitSet, from: usize, to: usize) -> BitSet {
    set.iter().take(to).skip(from).collect()
}

/// `round()` of the paper, half away from zero; demands are never negative.
fn round_half_up(demand: f64) -> usize {
    (demand + 0.5) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn plan_for(classes: &[(f64, f64)], workers: usize, delta: f64) -> Plan {
        let ranked = (0..=classes.len() as u16).map(ClassId).collect();
        let present = BitSet::range(0, workers);
        let mut plan = Plan::open(Order::Arrival, ranked, present);
        let (mean_ns, share): (Vec<f64>, Vec<f64>) = classes.iter().copied().unzip();
        let profile = Profile {
            mean_ns: &mean_ns,
            share: &share,
        };
        reserve(&mut plan, profile, Rules { delta, spillway: 1 }, &present);
        plan
    }

    const TPCC: [(f64, f64); 5] = [
        (5_700.0, 0.44),
        (6_000.0, 0.04),
        (20_000.0, 0.44),
        (88_000.0, 0.04),
        (100_000.0, 0.04),
    ];

    #[test]
    fn tpcc_gives_the_papers_two_six_six() {
        let plan = plan_for(&TPCC, 14, 2.0);
        let (a, b, c) = (ClassId(0), ClassId(2), ClassId(4));
        assert_eq!(plan.groups.len(), 3);
        assert_eq!(*plan.reserved(a), BitSet::range(0, 2));
        assert_eq!(*plan.stealable(a), BitSet::range(2, 14));
        assert_eq!(plan.reserved(ClassId(1)), plan.reserved(a));
        assert_eq!(*plan.reserved(b), BitSet::range(2, 8));
        assert_eq!(*plan.stealable(b), BitSet::range(8, 14));
        assert_eq!(*plan.reserved(c), BitSet::range(8, 14));
        assert_eq!(plan.reserved(ClassId(3)), plan.reserved(c));
        assert!(plan.stealable(c).is_empty());
    }

    #[test]
    fn high_bimodal_reserves_one_worker_and_wastes_0_86_cores() {
        let plan = plan_for(&[(1_000.0, 0.5), (100_000.0, 0.5)], 14, 2.0);
        assert_eq!(plan.groups[0].end, 1);
        assert_eq!(plan.groups[1].end, 14);
        assert!((expected_waste_cores(&plan, 14) - 0.86).abs() < 0.005);
    }

    #[test]
    fn rocksdb_wastes_0_97_cores() {
        let plan = plan_for(&[(1_500.0, 0.5), (635_000.0, 0.5)], 14, 2.0);
        assert!((expected_waste_cores(&plan, 14) - 0.967).abs() < 0.001);
    }

    #[test]
    fn figure_one_reserves_three() {
        let plan = plan_for(&[(500.0, 0.995), (500_000.0, 0.005)], 16, 2.0);
        assert_eq!(plan.groups[0].end, 3);
    }

    #[test]
    fn a_group_that_finds_no_worker_shares_the_spillway() {
        let plan = plan_for(&[(1e3, 0.9), (1e5, 0.0001), (1e7, 0.000_000_1)], 2, 2.0);
        assert_eq!(*plan.reserved(ClassId(2)), BitSet::range(1, 2));
        assert!(plan.stealable(ClassId(2)).is_empty());
    }

    #[test]
    fn delta_is_inclusive_and_compares_with_the_groups_shortest() {
        let plan = plan_for(&[(1e3, 0.3), (2e3, 0.3), (4e3, 0.4)], 8, 2.0);
        assert_eq!(plan.groups.len(), 2);
        assert_eq!(plan.groups[0].classes, BitSet::range(0, 2));
    }

    #[test]
    fn a_class_never_seen_and_unknown_run_on_the_spillway_alone() {
        let plan = plan_for(&[(1e3, 0.5), (1e2, 0.0), (1e5, 0.5)], 4, 2.0);
        for class in [ClassId(1), ClassId(3)] {
            assert_eq!(*plan.reserved(class), BitSet::range(3, 4));
            assert!(plan.stealable(class).is_empty());
        }
        assert_eq!(
            plan.ranked(),
            [ClassId(0), ClassId(2), ClassId(1), ClassId(3)]
        );
    }

    proptest! {
        /// Whatever the profile: everyone can run somewhere, groups reserve disjoint workers
        /// (the spillway aside), nobody steals from a shorter group, and every worker serves.
        #[test]
        fn reservations_are_sound(
            classes in prop::collection::vec((1.0f64..1e7, 0.0f64..1.0), 1..20),
            workers in 1usize..65,
            delta in 1.0f64..10.0,
        ) {
            let plan = plan_for(&classes, workers, delta);
            let all = BitSet::range(0, workers);
            let mut taken = BitSet::EMPTY;
            for group in &plan.groups {
                let class = ClassId(group.classes.first().unwrap() as u16);
                let (own, steal) = (*plan.reserved(class), *plan.stealable(class));
                prop_assert!(!own.is_empty());
                prop_assert!(own.intersection(&steal).is_empty());
                prop_assert!(steal.intersection(&taken).is_empty());
                prop_assert_eq!(own.union(&steal).difference(&all), BitSet::EMPTY);
                if group.start < workers {
                    prop_assert!(own.intersection(&taken).is_empty());
                    prop_assert_eq!(own.union(&steal).union(&taken), all);
                }
                taken = taken.union(&own);
            }
        }
    }
}
