//! Rounds: the order of their runs, the runs that count, and medians over them.

use headway_report::Histogram;
use serde::Serialize;

/// A request that leaves later than this is late. A tenth of the shortest service time would be too strict: a sleep's own delay reaches it.
pub(crate) const LATE_NS: u64 = 1_000_000;
/// The fraction of a run's requests that may be late.
const LATE_FRACTION_MAX: f64 = 0.01;

/// A planned run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedRun {
    pub(crate) round: usize,
    /// Index of the load.
    pub(crate) load: usize,
    /// Index of the system.
    pub(crate) system: usize,
}

impl PlannedRun {
    /// Seed of the arrivals: the same for all systems at one load of a round, different for each round and load.
    pub(crate) fn seed(self) -> u64 {
        (self.round as u64) << 32 | self.load as u64
    }
}

/// Plans every system at every load in every round. Systems at the same load run one after the other, so that slow changes of the machine
/// affect all of them. The first system changes from load to load and from round to round.
pub(crate) fn planned_runs(rounds: usize, loads: usize, systems: &[usize]) -> Vec<PlannedRun> {
    let mut planned = Vec::new();
    for round in 0..rounds {
        for load in 0..loads {
            for place in 0..systems.len() {
                planned.push(PlannedRun {
                    round,
                    load,
                    system: systems[(place + round + load) % systems.len()],
                });
            }
        }
    }
    planned
}

/// Sending delays at the client, µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lag {
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Largest.
    pub max_us: f64,
    /// The fraction of the requests that left more than 1 ms late.
    pub late_fraction: f64,
}

impl Lag {
    pub(crate) fn of(lag_ns: &Histogram) -> Self {
        let quantile = |quantile| lag_ns.quantile(quantile).unwrap_or(0) as f64 / 1e3;
        Self {
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            max_us: lag_ns.max().unwrap_or(0) as f64 / 1e3,
            late_fraction: lag_ns.count_above(LATE_NS) as f64 / lag_ns.count().max(1) as f64,
        }
    }

    /// Whether too many requests were late, so that the run measured a client without processor time.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.late_fraction > LATE_FRACTION_MAX
    }
}

/// The median of the finite values; of an even number of them, the mean of the middle two.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count => (values[(count - 1) / 2] + values[count / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_system_runs_at_every_load_in_every_round_and_each_is_first_at_times() {
        let systems = [0, 2, 3];
        let planned = planned_runs(3, 2, &systems);
        assert_eq!(planned.len(), 18);
        for group in planned.chunks(3) {
            let mut met: Vec<usize> = group.iter().map(|run| run.system).collect();
            met.sort_unstable();
            assert_eq!(met, systems);
            assert!(group.iter().all(|run| run.seed() == group[0].seed()));
        }
        let firsts: BTreeSet<usize> = planned.chunks(3).map(|group| group[0].system).collect();
        assert_eq!(firsts.len(), 3);
        let seeds: BTreeSet<u64> = planned.iter().map(|run| run.seed()).collect();
        assert_eq!(seeds.len(), 6);
    }

    #[test]
    fn lateness_is_that_of_more_than_one_in_a_hundred() {
        let lag = |late: usize| {
            let mut lag_ns = Histogram::new();
            (0..1000 - late).for_each(|_| lag_ns.record(20_000));
            (0..late).for_each(|_| lag_ns.record(3_000_000));
            Lag::of(&lag_ns)
        };
        assert!(!lag(10).is_late() && lag(11).is_late());
        assert!((lag(10).p50_us - 20.0).abs() < 0.5 && lag(10).max_us >= 2_900.0);
    }

    #[test]
    fn the_median_of_two_lies_between_them() {
        assert_eq!(median([3.0, f64::NAN, 1.0].into_iter()), 2.0);
        assert_eq!(median([5.0, 1.0, 3.0].into_iter()), 3.0);
        assert!(median(std::iter::empty()).is_nan());
    }
}
