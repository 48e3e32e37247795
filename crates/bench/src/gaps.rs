//! Gaps of a run (times that the machine took from it), and the aftermath of each.

use headway_runtime::Stall;
use std::ops::Range;

/// A longer time between two readings of a handler's clock counts as a gap, ns: about the length of an interrupt.
pub const GAP_NS: u64 = 5_000;

/// Length of the aftermath, as a multiple of the mean time in which the gap's backlog drains.
pub const RECOVERY: f64 = 3.0;

/// A gap: a time in which a runnable thread of the server did not run, ns.
pub type Gap = Range<u64>;

/// The times in which gaps affect a server: from each gap's begin until its backlog has drained with a margin.
#[derive(Clone, Debug)]
pub struct Aftermath {
    /// In order, disjoint.
    windows: Vec<Range<u64>>,
}

impl Aftermath {
    /// The aftermath of `gaps` for a server at this load (0 to 1). After a gap of length `g` the queue takes `g/(1 − ρ)` on
    /// average until it is as long as without the gap; the aftermath is [`RECOVERY`] times that.
    #[must_use]
    pub fn of(gaps: &[Gap], load: f64) -> Self {
        let whole = gaps.iter().map(|gap| (gap.clone(), gap.end - gap.start));
        Self::of_lost(whole, load, RECOVERY)
    }

    /// Like [`of`](Self::of), for a given number of ns lost somewhere within each time, and an aftermath of `recovery` times the average.
    #[must_use]
    pub fn of_lost(lost: impl IntoIterator<Item = (Gap, u64)>, load: f64, recovery: f64) -> Self {
        let factor = recovery / (1.0 - load).max(0.05);
        let mut reaches: Vec<Range<u64>> = lost
            .into_iter()
            .map(|(within, lost_ns)| {
                let recovery_ns = lost_ns as f64 * factor;
                within.start..within.end.saturating_add(recovery_ns as u64)
            })
            .collect();
        reaches.sort_unstable_by_key(|reach| reach.start);
        let mut windows: Vec<Range<u64>> = Vec::new();
        for reach in reaches {
            match windows.last_mut() {
                Some(last) if reach.start <= last.end => last.end = last.end.max(reach.end),
                _ => windows.push(reach),
            }
        }
        Self { windows }
    }

    /// Whether the aftermath overlaps the time from `from_ns` to `to_ns`, both included.
    #[must_use]
    pub fn touches(&self, from_ns: u64, to_ns: u64) -> bool {
        let next = self.windows.partition_point(|window| window.end <= from_ns);
        self.windows
            .get(next)
            .is_some_and(|window| window.start <= to_ns)
    }
}

/// A stall as a gap of a run that began at `start_ns`; an earlier part of it is cut off.
pub(crate) fn gap_of(stall: &Stall, start_ns: u64) -> Option<Gap> {
    (stall.to_ns > start_ns).then(|| stall.from_ns.saturating_sub(start_ns)..stall.to_ns - start_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_reaches_until_its_backlog_is_long_gone() {
        let aftermath = Aftermath::of(std::slice::from_ref(&(1_000..1_100)), 0.5);
        // 100 ns at load 0.5 drain in 200; three times that.
        assert!(!aftermath.touches(0, 999));
        assert!(aftermath.touches(0, 1_000));
        assert!(aftermath.touches(1_699, 5_000));
        assert!(!aftermath.touches(1_700, 5_000));
    }

    #[test]
    fn what_was_lost_within_a_longer_time_is_made_up_for_sooner() {
        let aftermath = Aftermath::of_lost([(1_000..1_100, 50)], 0.5, 3.0);
        assert!(aftermath.touches(1_000, 1_000));
        assert!(aftermath.touches(1_399, 5_000));
        assert!(!aftermath.touches(1_400, 5_000));
    }

    #[test]
    fn gaps_that_overlap_or_come_in_any_order_are_one() {
        let aftermath = Aftermath::of(&[500..600, 100..300, 250..260], 0.0);
        for at in 0..1_200 {
            let within = (100..900).contains(&at);
            assert_eq!(aftermath.touches(at, at), within, "{at}");
        }
        assert!(!Aftermath::of(&[], 0.5).touches(0, u64::MAX));
    }

    #[test]
    fn stalls_before_the_start_are_cut_off() {
        let stall = |from_ns, to_ns| Stall { from_ns, to_ns };
        assert_eq!(gap_of(&stall(10, 90), 100), None);
        assert_eq!(gap_of(&stall(10, 190), 100), Some(0..90));
        assert_eq!(gap_of(&stall(110, 190), 100), Some(10..90));
    }
}
