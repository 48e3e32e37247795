//! How many cores an application needs, from what it did over the last period: the estimates of Arachne
//! (OSDI '18, § 5; its `CoreLoadEstimator`). Both change the number by at most one a period.

use super::Usage;
use alloc::vec::Vec;

/// What the estimate goes by.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Estimate {
    /// A core more when more than `most` threads per core were runnable on average; a core less once
    /// the utilisation falls below what it was when that core was added (Arachne's default, `most` = 1.5).
    LoadFactor {
        /// Runnable threads per core, the running one included, above 0.
        most: f64,
    },
    /// A core more when the cores were busier than `most`; a core less when the rest would not be.
    Utilization {
        /// Busy part of the cores' time, above 0 and at most 1.
        most: f64,
    },
}

impl Default for Estimate {
    fn default() -> Self {
        Self::LoadFactor { most: 1.5 }
    }
}

/// The estimate of one application.
#[derive(Clone, Debug)]
pub struct Estimator {
    rule: Estimate,
    /// Cores' worth of utilisation by which a core must be superfluous before it is given up.
    hysteresis_cores: f64,
    last: Usage,
    /// Busy cores when the number of cores was last raised from the index.
    raised_at: Vec<f64>,
}

impl Estimator {
    /// For an application of at most `most` cores.
    #[must_use]
    pub fn new(rule: Estimate, hysteresis_cores: f64, most: usize) -> Self {
        Self {
            rule,
            hysteresis_cores,
            last: Usage::default(),
            raised_at: alloc::vec![0.0; most + 1],
        }
    }

    /// How many cores it should have next, 1 at least, after a period of `period_ns` with `cores`.
    pub fn next(&mut self, now: Usage, period_ns: u64, cores: usize) -> usize {
        let period_ns = period_ns.max(1) as f64;
        let busy = (now.busy_ns - self.last.busy_ns) as f64 / period_ns;
        let runnable = (now.runnable_ns - self.last.runnable_ns) as f64 / period_ns;
        self.last = now;
        let (more, fewer) = match self.rule {
            Estimate::LoadFactor { most } => {
                let more = runnable > most * cores as f64;
                let before = cores
                    .checked_sub(1)
                    .map_or(0.0, |fewer| self.raised_at[fewer]);
                (more, busy < before - self.hysteresis_cores)
            }
            Estimate::Utilization { most } => {
                let rest = cores.saturating_sub(1) as f64;
                (
                    busy > most * cores as f64,
                    busy < most * rest - self.hysteresis_cores,
                )
            }
        };
        if more && cores + 1 < self.raised_at.len() {
            self.raised_at[cores] = busy;
            cores + 1
        } else if fewer {
            (cores - 1).max(1)
        } else {
            cores.max(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Periods of 1000 ns: busy cores and runnable threads of each.
    fn run(estimator: &mut Estimator, mut cores: usize, periods: &[(f64, f64)]) -> Vec<usize> {
        let mut usage = estimator.last;
        periods
            .iter()
            .map(|&(busy, runnable): &(f64, f64)| {
                usage.busy_ns += (busy * 1000.0) as u64;
                usage.runnable_ns += (runnable * 1000.0) as u64;
                cores = estimator.next(usage, 1000, cores);
                cores
            })
            .collect()
    }

    #[test]
    fn load_factor_adds_one_core_a_period_and_returns_it_with_hysteresis() {
        let mut estimator = Estimator::new(Estimate::default(), 0.1, 4);
        let overloaded = run(&mut estimator, 1, &[(1.0, 9.0), (2.0, 9.0), (2.0, 4.0)]);
        assert_eq!(overloaded, [2, 3, 3]);
        // The third core came at 2.0 busy cores: it goes below 1.9, not at 1.95.
        assert_eq!(run(&mut estimator, 3, &[(1.95, 2.0), (1.85, 2.0)]), [3, 2]);
    }

    #[test]
    fn utilization_keeps_the_cores_below_its_bound() {
        let mut estimator = Estimator::new(Estimate::Utilization { most: 0.5 }, 0.1, 8);
        let busy = [(1.0, 1.0), (1.2, 1.2), (1.2, 1.2), (0.3, 0.3), (0.3, 0.3)];
        assert_eq!(run(&mut estimator, 1, &busy), [2, 3, 3, 2, 1]);
    }

    #[test]
    fn it_stays_within_one_and_the_most() {
        let mut estimator = Estimator::new(Estimate::default(), 0.1, 2);
        assert_eq!(run(&mut estimator, 2, &[(2.0, 99.0)]), [2]);
        assert_eq!(run(&mut estimator, 0, &[(0.0, 0.0)]), [1]);
    }
}
