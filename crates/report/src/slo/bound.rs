//! One bound of an SLO: which statistic of which measure of which requests.

use std::fmt;

use crate::format::duration_us;
use crate::run::{Run, Summary};

/// One bound of an [`Slo`](super::Slo).
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The requests it applies to.
    pub scope: Scope,
    /// The measure.
    pub measure: Measure,
    /// The statistic of the measure.
    pub statistic: Statistic,
    /// The largest value allowed: µs for latency, a ratio for slowdown.
    pub at_most: f64,
}

/// The requests that a [`Bound`] applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All requests together.
    Overall,
    /// Each class by itself.
    EveryClass,
    /// One class.
    Class(String),
}

/// The measure that a [`Bound`] limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Sojourn time, in µs.
    Latency,
    /// Sojourn time over service time.
    Slowdown,
}

/// The statistic of a measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// Mean.
    Mean,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
    /// Maximum.
    Max,
}

impl Statistic {
    /// This statistic's value in `summary`.
    pub fn of(self, summary: &Summary) -> f64 {
        match self {
            Self::Mean => summary.mean,
            Self::P50 => summary.p50,
            Self::P90 => summary.p90,
            Self::P99 => summary.p99,
            Self::P999 => summary.p999,
            Self::Max => summary.max,
        }
    }

    /// The quantile that it is, 0.5 to 1; `None` for the mean, which is none.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::Mean => None,
            Self::P50 => Some(0.5),
            Self::P90 => Some(0.9),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
            Self::Max => Some(1.0),
        }
    }
}

impl Bound {
    /// The values in `run` that this bound limits, with the scope each belongs to: one for each
    /// class in [`Scope::EveryClass`], none for a class that the run does not have.
    pub fn values(&self, run: &Run) -> Vec<(Scope, f64)> {
        if self.scope == Scope::Overall {
            let value = self.pick(&run.overall.latency_us, &run.overall.slowdown);
            return vec![(Scope::Overall, value)];
        }
        run.classes
            .iter()
            .map(|class| {
                let value = self.pick(&class.latency_us, &class.slowdown);
                (Scope::Class(class.name.clone()), value)
            })
            .filter(|(class, _)| self.scope == Scope::EveryClass || self.scope == *class)
            .collect()
    }

    fn pick(&self, latency_us: &Summary, slowdown: &Summary) -> f64 {
        self.statistic.of(match self.measure {
            Measure::Latency => latency_us,
            Measure::Slowdown => slowdown,
        })
    }

    /// A value of the measure, formatted for people.
    pub(super) fn shown(&self, value: f64) -> String {
        match self.measure {
            Measure::Latency => duration_us(value),
            Measure::Slowdown => format!("{value:.1}"),
        }
    }
}

/// A latency in the largest unit that keeps the number at 1 or above and parses back to the same value: 250us, 20ms.
fn written_us(us: f64) -> String {
    let (unit, scale) = LATENCY_UNITS
        .iter()
        .find(|&&(_, scale): &&(&str, f64)| us / scale >= 1.0 && us / scale * scale == us)
        .unwrap_or(&("us", 1.0));
    format!("{}{unit}", us / scale)
}

/// Units that latencies are written in, in µs.
const LATENCY_UNITS: [(&str, f64); 3] = [("s", 1e6), ("ms", 1e3), ("us", 1.0)];

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scope,
            measure,
            statistic,
            at_most,
        } = self;
        write!(f, "{scope}.{measure}.{statistic}<=")?;
        match measure {
            Measure::Latency => f.write_str(&written_us(*at_most)),
            Measure::Slowdown => write!(f, "{at_most}"),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overall => f.write_str("overall"),
            Self::EveryClass => f.write_str("class.*"),
            Self::Class(name) => write!(f, "class.{name}"),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Latency => "latency",
            Self::Slowdown => "slowdown",
        })
    }
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Max => "max",
        })
    }
}
