//! Which types are served together: candidates by k-means (Pallas § 4.3, Algorithm 1).
//!
//! Points are (demand, share). The paper's demand is the part of all CPU time that a type takes, `D_r`. With it TPC-C's candidates do not
//! contain the grouping that the paper reports as the best, {Payment, OrderStatus}, {NewOrder}, {Delivery, StockLevel}. Ours is the logarithm
//! of the execution time: what makes two types alike is their ratio, not their difference, since it is the shorter's slowdown that suffers.

use super::Demand;
use alloc::vec;
use alloc::vec::Vec;

/// What makes two types alike, beside their shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Likeness {
    /// The ratio of their execution times (ours).
    #[default]
    Time,
    /// The difference of their parts of all CPU time (the paper's).
    Demand,
}

/// Types in groups, numbered from the shortest group to the longest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grouping {
    group_of: Vec<u16>,
    groups: usize,
}

impl Grouping {
    /// Groups given by hand: `group_of[type]`, any numbers; they are renumbered by execution time.
    #[must_use]
    pub fn new(group_of: &[u16], demand: &Demand) -> Self {
        let mut grouping = Self {
            group_of: group_of.to_vec(),
            groups: 0,
        };
        grouping.renumber(demand);
        grouping
    }

    /// Groups as an earlier grouping numbered them.
    #[must_use]
    pub fn numbered(group_of: &[u16]) -> Self {
        let most = group_of.iter().max();
        Self {
            group_of: group_of.to_vec(),
            groups: most.map_or(1, |&most| usize::from(most) + 1),
        }
    }

    /// All types together.
    #[must_use]
    pub fn one(types: usize) -> Self {
        Self {
            group_of: vec![0; types],
            groups: 1,
        }
    }

    /// How many groups there are.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// The type's group; what is not a type (UNKNOWN) goes with the longest.
    #[inline]
    #[must_use]
    pub fn of(&self, class: usize) -> usize {
        match self.group_of.get(class) {
            Some(&group) => usize::from(group),
            None => self.groups - 1,
        }
    }

    /// The group's types.
    pub fn members(&self, group: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.group_of.len()).filter(move |&class| usize::from(self.group_of[class]) == group)
    }

    /// Every grouping that k-means gives for k from 1 to the number of types seen and at most `most`, each once, fewest
    /// groups first. Overwrites `candidates`.
    pub fn candidates(
        demand: &Demand,
        most: usize,
        likeness: Likeness,
        candidates: &mut Vec<Self>,
    ) {
        let points = Points::new(demand, likeness);
        candidates.clear();
        let most = points.seen.len().min(most).max(1);
        // Those of fewer groups are the first of those of more.
        let centres = points.far_apart(most);
        for k in 1..=most {
            let mut grouping = Self {
                group_of: points.cluster(&centres[..k.min(centres.len())]),
                groups: 0,
            };
            grouping.renumber(demand);
            if !candidates.contains(&grouping) {
                candidates.push(grouping);
            }
        }
    }

    /// Numbers the groups from 0 by mean execution time.
    fn renumber(&mut self, demand: &Demand) {
        self.groups = self
            .group_of
            .iter()
            .max()
            .map_or(0, |&most| most as usize + 1);
        let mut order: Vec<(f64, u16)> = (0..self.groups as u16)
            .filter(|group| self.group_of.contains(group))
            .map(|group| {
                let mean = demand.mean_of_types_ns(self.members(usize::from(group)));
                (mean, group)
            })
            .collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut number_of = vec![0; self.groups];
        for (number, &(_, group)) in order.iter().enumerate() {
            number_of[usize::from(group)] = number as u16;
        }
        for group in &mut self.group_of {
            *group = number_of[usize::from(*group)];
        }
        self.groups = order.len().max(1);
    }
}

/// The types as points.
struct Points {
    at: Vec<[f64; 2]>,
    /// Types of which there were requests: only these are clustered.
    seen: Vec<usize>,
    is_seen: Vec<bool>,
}

impl Points {
    fn new(demand: &Demand, likeness: Likeness) -> Self {
        let types = demand.types();
        let place = |class: usize| match likeness {
            Likeness::Time => log2(types[class].mean_ns),
            Likeness::Demand => demand.of_type(class),
        };
        Self {
            at: (0..types.len())
                .map(|class| [place(class), types[class].share])
                .collect(),
            seen: (0..types.len())
                .filter(|&class| types[class].share > 0.0)
                .collect(),
            is_seen: types.iter().map(|hint| hint.share > 0.0).collect(),
        }
    }

    /// Lloyd's algorithm from centres far from one another, so that it depends on nothing random.
    fn cluster(&self, centres: &[[f64; 2]]) -> Vec<u16> {
        const ROUNDS: usize = 64;
        let mut centres = centres.to_vec();
        let mut group_of = self.nearest(&centres);
        for _ in 0..ROUNDS {
            self.recentre(&group_of, &mut centres);
            let next = self.nearest(&centres);
            if next == group_of {
                break;
            }
            group_of = next;
        }
        group_of
    }

    /// The least type, then always the one that is farthest from those chosen.
    fn far_apart(&self, k: usize) -> Vec<[f64; 2]> {
        let Some(&first) = self
            .seen
            .iter()
            .min_by(|&&a: &&usize, &&b: &&usize| self.at[a][0].total_cmp(&self.at[b][0]))
        else {
            return vec![[0.0; 2]];
        };
        let mut centres = vec![self.at[first]];
        let mut gaps = vec![f64::INFINITY; self.at.len()];
        while centres.len() < k {
            let newest = centres[centres.len() - 1];
            for &class in &self.seen {
                gaps[class] = gaps[class].min(square(self.at[class], newest));
            }
            let farthest = self.seen.iter().copied();
            let farthest = farthest.reduce(|best, class| {
                if gaps[class] > gaps[best] {
                    class
                } else {
                    best
                }
            });
            match farthest {
                Some(class) if gaps[class] > 0.0 => centres.push(self.at[class]),
                _ => break,
            }
        }
        centres
    }

    /// Each type's nearest centre, the first among equals; types never seen go by execution time alone.
    fn nearest(&self, centres: &[[f64; 2]]) -> Vec<u16> {
        let points = self.at.iter().zip(&self.is_seen);
        let nearest = points.map(|(at, &is_seen)| {
            // What was never seen has no share to compare.
            let weight = if is_seen { 1.0 } else { 0.0 };
            let (mut best, mut least) = (0, f64::INFINITY);
            for (number, centre) in centres.iter().enumerate() {
                let (time, share) = (at[0] - centre[0], at[1] - centre[1]);
                let distance = time * time + weight * (share * share);
                if distance < least {
                    (best, least) = (number, distance);
                }
            }
            best as u16
        });
        nearest.collect()
    }

    fn recentre(&self, group_of: &[u16], centres: &mut [[f64; 2]]) {
        let mut sums = vec![([0.0; 2], 0.0); centres.len()];
        for &class in &self.seen {
            let (sum, members) = &mut sums[usize::from(group_of[class])];
            *sum = [sum[0] + self.at[class][0], sum[1] + self.at[class][1]];
            *members += 1.0;
        }
        for (centre, (sum, members)) in centres.iter_mut().zip(sums) {
            if members > 0.0 {
                *centre = [sum[0] / members, sum[1] / members];
            }
        }
    }
}

fn square(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1])
}

/// The binary logarithm, straight between powers of two: monotonic, at most 0.09 too small, and the same on every machine
/// (`core` has no logarithm).
fn log2(ns: f64) -> f64 {
    let whole = (ns as u64).max(1);
    let power = whole.ilog2();
    f64::from(power) + whole as f64 / (1u64 << power) as f64 - 1.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClassHint;
    use proptest::prelude::*;

    fn demand(types: &[(f64, f64)]) -> Demand {
        Demand::declared(
            &types
                .iter()
                .map(|&(us, share): &(f64, f64)| ClassHint::new(us * 1e3, share))
                .collect::<Vec<_>>(),
        )
    }

    fn candidates(types: &[(f64, f64)]) -> Vec<Vec<u16>> {
        let mut found = Vec::new();
        Grouping::candidates(&demand(types), 80, Likeness::Time, &mut found);
        found
            .into_iter()
            .map(|grouping| grouping.group_of)
            .collect()
    }

    #[test]
    fn tpcc_offers_the_papers_grouping() {
        let tpcc = [
            (5.0, 0.43),
            (6.0, 0.04),
            (16.0, 0.45),
            (62.0, 0.04),
            (74.0, 0.04),
        ];
        let found = candidates(&tpcc);
        assert_eq!(found[0], [0, 0, 0, 0, 0]);
        assert_eq!(found[1], [0, 0, 0, 1, 1]);
        assert_eq!(found[2], [0, 0, 1, 2, 2]);
        assert_eq!(found.last().unwrap(), &[0, 1, 2, 3, 4]);
    }

    /// As printed: by parts of all CPU time the grouping that the paper reports is no candidate.
    #[test]
    fn tpcc_by_demand_does_not() {
        let tpcc = [
            (5.0, 0.43),
            (6.0, 0.04),
            (16.0, 0.45),
            (62.0, 0.04),
            (74.0, 0.04),
        ];
        let mut found = Vec::new();
        Grouping::candidates(&demand(&tpcc), 80, Likeness::Demand, &mut found);
        assert!(found.len() > 2);
        assert!(
            found
                .iter()
                .all(|grouping| grouping.group_of != [0, 0, 1, 2, 2])
        );
    }

    #[test]
    fn a_bimodal_workload_is_split_or_not() {
        assert_eq!(candidates(&[(10.0, 0.9), (100.0, 0.1)]), [[0, 0], [0, 1]]);
    }

    #[test]
    fn equal_types_are_never_separated() {
        assert_eq!(candidates(&[(10.0, 0.5), (10.0, 0.5)]), [[0, 0]]);
    }

    #[test]
    fn a_type_never_seen_goes_with_its_like() {
        let found = candidates(&[(10.0, 0.5), (90.0, 0.0), (100.0, 0.5)]);
        assert_eq!(found, [[0, 0, 0], [0, 1, 1]]);
    }

    #[test]
    fn the_logarithm_is_monotonic_and_near() {
        let mut before = -1.0;
        for ns in 1..5_000u32 {
            let log = log2(f64::from(ns));
            assert!(log > before);
            before = log;
        }
        assert_eq!(log2(1024.0), 10.0);
    }

    proptest! {
        /// Every candidate puts every type somewhere, has no empty group, and numbers them by execution time.
        #[test]
        fn candidates_are_sound(types in prop::collection::vec((0.5f64..1e4, 0.0f64..1.0), 1..12)) {
            let demand = demand(&types);
            let mut found = Vec::new();
            Grouping::candidates(&demand, 8, Likeness::Time, &mut found);
            prop_assert_eq!(found[0].groups(), 1);
            for grouping in &found {
                prop_assert!(grouping.groups() <= 8);
                let means: Vec<f64> = (0..grouping.groups())
                    .map(|group| demand.mean_of_types_ns(grouping.members(group)))
                    .collect();
                prop_assert!((0..grouping.groups()).all(|group| grouping.members(group).count() > 0));
                prop_assert!(means.windows(2).all(|pair| pair[0] <= pair[1]), "{:?}", means);
            }
        }
    }
}
