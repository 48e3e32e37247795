//! Times that the machine took from a run, and how far their traces reach.

use headway_runtime::Stall;
use std::ops::Range;

/// Readings of a handler's clock further apart than this count as a gap, ns: about what an interrupt takes.
pub const GAP_NS: u64 = 5_000;

/// Traces of a gap are taken to last this many times as long as its backlog takes to drain on average.
pub const RECOVERY: f64 = 3.0;

/// A time in which a thread of the server should have run and did not, ns.
pub type Gap = Range<u64>;

/// The times in which a server felt its gaps: from the gap's begin until what piled up is long gone.
#[derive(Clone, Debug)]
pub struct Aftermath {
    /// In order, disjoint.
    windows: Vec<Range<u64>>,
}

impl Aftermath {
    /// The aftermath of `gaps` for a server at this load (0 to 1). What comes in during a gap of length `g` waits for
    /// `g/(1 − ρ)` on average until the queue is what it would have been; [`RECOVERY`] times that is allowed for.
    #[must_use]
    pub fn of(gaps: &[Gap], load: f64) -> Self {
        let whole = gaps.iter().map(|gap| (gap.clone(), gap.end - gap.start));
        Self::of_lost(whole, load, RECOVERY)
    }

    /// As [`of`](Self::of), where only so many ns, somewhere within each time, were lost, and `recovery` times the average is allowed for.
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

    /// Whether anything between `from_ns` and `to_ns`, both included, falls into it.
    #[must_use]
    pub fn touches(&self, from_ns: u64, to_ns: u64) -> bool {
        let next = self.windows.partition_point(|window| window.end <= from_ns);
        self.windows
            .get(next)
            .is_some_and(|window| window.start <= to_ns)
    }
}

/// A stall as a gap of a run that began at `start_ns`; what was before is cut off.
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
