//! The number of replications that an estimate needs for a tight interval.
//!
//! A sequential procedure (Law, *Simulation Modeling and Analysis*, 5th ed., § 9.4.1): after each
//! batch of replications the relative half-width of the mean's Student-t interval is compared with
//! the requested one. The batches grow by a fixed schedule, independent of the number of threads.
//! So the number of replications, and with it every figure, depends on the experiment alone. As
//! under every sequential stopping rule, the interval's coverage is a little below its confidence;
//! the first batch keeps the difference small.

use headway_report::Run;
use headway_report::slo::{Measure, Scope, Statistic};
use headway_report::stats::{ConfidenceInterval, mean_interval};

/// Confidence of the intervals.
pub const CONFIDENCE: f64 = 0.95;
/// Fewest replications for an interval.
const FIRST: u64 = 5;

/// A figure of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    /// The requests. [`Scope::EveryClass`] takes the largest value of all classes.
    pub scope: Scope,
    /// Their measure.
    pub measure: Measure,
    /// The statistic of the measure.
    pub statistic: Statistic,
}

/// The stopping rule: when a point has enough replications.
#[derive(Clone, PartialEq, Debug)]
pub struct Precision {
    /// The figure to estimate.
    pub figure: Figure,
    /// Largest half-width of its interval, relative to the estimate: 0.02 is ± 2 %.
    pub relative: f64,
    /// Most replications, even if the interval is still wider.
    pub most: u64,
}

impl Figure {
    /// The figure's value in a run: µs for a latency; NaN when nothing was measured.
    #[must_use]
    pub fn of(&self, run: &Run) -> f64 {
        let pick = |latency_us, slowdown| {
            self.statistic.of(match self.measure {
                Measure::Latency => latency_us,
                Measure::Slowdown => slowdown,
            })
        };
        let classes = run.classes.iter();
        match &self.scope {
            Scope::Overall => pick(&run.overall.latency_us, &run.overall.slowdown),
            Scope::Class(name) => run
                .class(name)
                .map_or(f64::NAN, |class| pick(&class.latency_us, &class.slowdown)),
            Scope::EveryClass => classes
                .map(|class| pick(&class.latency_us, &class.slowdown))
                .fold(f64::NAN, f64::max),
        }
    }
}

impl Precision {
    /// The number of replications needed in total, given the finished ones; equal to their number
    /// when no more are needed. Overloaded runs need none beyond the first batch: their tails only
    /// measure the runs' length.
    #[must_use]
    pub fn wanted(&self, runs: &[Run]) -> u64 {
        let made = runs.len() as u64;
        if made < FIRST {
            return FIRST.min(self.most);
        }
        let overloaded = runs.iter().any(|run| run.meta.overloaded);
        if overloaded || self.is_reached(runs) {
            made
        } else {
            (made + made.div_ceil(2)).min(self.most).max(made)
        }
    }

    /// Whether the interval is as tight as requested.
    #[must_use]
    pub fn is_reached(&self, runs: &[Run]) -> bool {
        self.interval(runs).is_some_and(|interval| {
            interval.half_width() <= self.relative * interval.estimate.abs()
        })
    }

    fn interval(&self, runs: &[Run]) -> Option<ConfidenceInterval> {
        let values: Vec<f64> = runs.iter().map(|run| self.figure.of(run)).collect();
        mean_interval(&values, CONFIDENCE).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;
    use headway_workload::Workload;

    fn runs(count: u64, load: f64) -> Vec<Run> {
        let workload = Workload::named("high-bimodal").expect("it is known");
        let experiment = Experiment::new(workload, "c-fcfs".parse().expect("a policy"))
            .workers(4)
            .load(load)
            .requests(20_000);
        (1..=count)
            .map(|seed| experiment.clone().seed(seed).run().expect("it runs").run)
            .collect()
    }

    fn precision(relative: f64, most: u64) -> Precision {
        Precision {
            figure: Figure {
                scope: Scope::Overall,
                measure: Measure::Slowdown,
                statistic: Statistic::P99,
            },
            relative,
            most,
        }
    }

    #[test]
    fn more_are_wanted_until_the_interval_is_tight_or_the_most_is_reached() {
        let runs = runs(8, 0.7);
        assert_eq!(precision(1e-9, 100).wanted(&[]), 5);
        assert_eq!(precision(1e-9, 100).wanted(&runs[..5]), 8);
        assert_eq!(precision(1e-9, 100).wanted(&runs), 12);
        assert_eq!(precision(1e-9, 8).wanted(&runs), 8);
        assert_eq!(precision(10.0, 100).wanted(&runs[..5]), 5);
    }

    #[test]
    fn what_is_reached_is_what_the_interval_says() {
        let runs = runs(8, 0.7);
        let precision = precision(0.05, 100);
        let interval = precision.interval(&runs).unwrap();
        let relative = interval.half_width() / interval.estimate;
        assert!(relative > 0.0);
        let at = |relative| Precision {
            relative,
            ..precision.clone()
        };
        assert!(at(relative * 1.01).is_reached(&runs));
        assert!(!at(relative * 0.99).is_reached(&runs));
    }

    #[test]
    fn overloaded_runs_are_not_replicated_further() {
        let runs = runs(5, 1.5);
        assert!(runs[0].meta.overloaded);
        assert_eq!(precision(1e-9, 100).wanted(&runs), 5);
    }
}
