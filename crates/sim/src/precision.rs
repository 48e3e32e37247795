//! How many replications an estimate needs: as many as its interval takes to become tight.
//!
//! A sequential procedure (Law, *Simulation Modeling and Analysis*, 5th ed., § 9.4.1): after each
//! batch of replications the relative half-width of the mean's Student-t interval is compared with
//! the one that was asked for. The batches grow by a fixed schedule that knows nothing of threads,
//! so the number of replications, and with it every figure, depends on the experiment alone. As
//! with every rule that looks before it stops, the interval covers a little less often than it
//! says; the first batch is what keeps that little.

use headway_report::Run;
use headway_report::slo::{Measure, Scope, Statistic};
use headway_report::stats::{ConfidenceInterval, mean_interval};

/// Confidence of the intervals that are waited for.
pub const CONFIDENCE: f64 = 0.95;
/// Fewest replications that an interval is judged by.
const FIRST: u64 = 5;

/// A figure of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Figure {
    /// Of which requests. [`Scope::EveryClass`] is the largest of all classes.
    pub scope: Scope,
    /// Which measure of theirs.
    pub measure: Measure,
    /// Which statistic of it.
    pub statistic: Statistic,
}

/// When a point has been replicated enough.
#[derive(Clone, PartialEq, Debug)]
pub struct Precision {
    /// The figure to be known.
    pub figure: Figure,
    /// Largest half-width of its interval, relative to the estimate: 0.02 is ± 2 %.
    pub relative: f64,
    /// Most replications, whatever their interval.
    pub most: u64,
}

impl Figure {
    /// Its value in a run: µs for a latency; NaN when nothing was measured.
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
    /// How many replications there are to be, given those that were made; as many as were made
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

    /// Whether the figure is known as well as was asked for.
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
