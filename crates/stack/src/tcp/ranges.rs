//! Disjoint ranges of stream positions: what arrived out of order, and what a peer has of what it was sent.

/// The most ranges. A segment that would make one more is not kept.
const MOST_RANGES: usize = 64;

/// Disjoint ranges in ascending order, none adjacent to another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RangeSet(Vec<(u64, u64)>);

impl RangeSet {
    /// Adds a range. Returns `false`, and adds nothing, when there would be too many.
    pub(crate) fn insert(&mut self, first: u64, end: u64) -> bool {
        if first >= end {
            return true;
        }
        let from = self.0.partition_point(|range| range.1 < first);
        let to = from + self.0[from..].partition_point(|range| range.0 <= end);
        if from == to {
            if self.0.len() >= MOST_RANGES {
                return false;
            }
            self.0.insert(from, (first, end));
        } else {
            self.0[from] = (first.min(self.0[from].0), end.max(self.0[to - 1].1));
            self.0.drain(from + 1..to);
        }
        true
    }

    /// Removes all below a position.
    pub(crate) fn remove_below(&mut self, position: u64) {
        let gone = self.0.partition_point(|range| range.1 <= position);
        self.0.drain(..gone);
        if let Some(first) = self.0.first_mut() {
            first.0 = first.0.max(position);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn as_slice(&self) -> &[(u64, u64)] {
        &self.0
    }

    /// The end of the last range.
    pub(crate) fn end(&self) -> Option<u64> {
        self.0.last().map(|range| range.1)
    }

    /// The first gap from `position` on, up to `end`.
    pub(crate) fn gap_from(&self, position: u64, end: u64) -> Option<(u64, u64)> {
        let mut first = position;
        let at = self.0.partition_point(|range| range.1 <= first);
        let mut next = self.0[at..].iter();
        let mut range = next.next();
        if let Some(covering) = range.filter(|range| range.0 <= first) {
            first = covering.1;
            range = next.next();
        }
        let end = range.map_or(end, |range| range.0.min(end));
        (first < end).then_some((first, end))
    }

    /// Bytes of the ranges within two positions.
    pub(crate) fn bytes_within(&self, first: u64, end: u64) -> u64 {
        let within = |range: &(u64, u64)| range.1.min(end).saturating_sub(range.0.max(first));
        self.0.iter().map(within).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_a_set_of_positions(steps in prop::collection::vec((0..200u64, 0..30u64, any::<bool>()), 1..40)) {
            let (mut ranges, mut set) = (RangeSet::default(), BTreeSet::new());
            for (first, bytes, is_insert) in steps {
                if is_insert {
                    prop_assert!(ranges.insert(first, first + bytes));
                    set.extend(first..first + bytes);
                } else {
                    ranges.remove_below(first);
                    set.retain(|position| *position >= first);
                }
                let all: Vec<u64> = ranges.as_slice().iter().flat_map(|range| range.0..range.1).collect();
                prop_assert!(set.iter().copied().eq(all));
                prop_assert!(ranges.as_slice().windows(2).all(|pair| pair[0].1 < pair[1].0));
                let gap = (first..250).find(|position| !set.contains(position));
                prop_assert_eq!(ranges.gap_from(first, 250).map(|gap| gap.0), gap);
                let within = set.range(first..first + bytes).count() as u64;
                prop_assert_eq!(ranges.bytes_within(first, first + bytes), within);
            }
        }
    }
}
