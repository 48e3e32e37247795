//! Service-level objectives: bounds on a measure, written as text and checked against a run.

mod parse;

use std::fmt;
use std::str::FromStr;

use crate::format::{duration_us, percent};
use crate::run::{LOST_FRACTION_MAX, Run, Summary};

pub use parse::SloError;

/// Bounds that a run must keep, all of them.
///
/// The text is a list of bounds joined by commas, each `SCOPE.MEASURE.STATISTIC<=BOUND`:
///
/// - scope: `class.NAME`, `class.*` (each class by itself) or `overall`;
/// - measure: `latency`, bounded by a duration (`250us`, `1.5ms`), or `slowdown`, bounded by a
///   number;
/// - statistic: `mean`, `p50`, `p90`, `p99`, `p999` (also `p99.9`) or `max`.
///
/// # Examples
///
/// ```
/// use headway_report::Slo;
///
/// let slo: Slo = "class.*.slowdown.p999<=10, class.GET.latency.p99<=250us".parse().unwrap();
/// assert_eq!(slo.to_string(), "class.*.slowdown.p999<=10,class.GET.latency.p99<=250us");
///
/// let error = "overall.slowdwon.p999<=10".parse::<Slo>().unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "SLO, column 9: unknown measure `slowdwon`; did you mean `slowdown`?"
/// );
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Slo {
    bounds: Vec<Bound>,
}

/// One bound of an [`Slo`].
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Which requests.
    pub scope: Scope,
    /// Which of their measures.
    pub measure: Measure,
    /// Which statistic of it.
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

/// What a [`Bound`] limits.
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
}

/// What came of checking a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Every bound was kept.
    Met,
    /// At least one was not.
    Missed(Vec<Violation>),
    /// The run was overloaded: its tail measures only its length, so no bound was looked at.
    Overloaded,
    /// The run lost more than [`LOST_FRACTION_MAX`] of all requests, or of a bounded class: the latencies of the
    /// others say nothing about it, so no bound was looked at.
    Lossy(Loss),
}

/// The requests that a run lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Whose: all requests, or those of one class.
    pub scope: Scope,
    /// How much of them, 0 to 1.
    pub fraction: f64,
}

impl Verdict {
    /// Whether every bound was kept.
    pub fn is_met(&self) -> bool {
        *self == Self::Met
    }
}

/// A bound that was not kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The bound, its scope narrowed to the class that broke it.
    pub bound: Bound,
    /// The value found; `None` when no request was measured, which shows nothing to be kept.
    pub value: Option<f64>,
}

impl Slo {
    /// The bounds, in the order written.
    pub fn bounds(&self) -> &[Bound] {
        &self.bounds
    }

    /// Checks that every class named by a bound is one of `classes`.
    ///
    /// # Errors
    ///
    /// [`SloError::UnknownClass`] for the first that is not, with the nearest name.
    pub fn check_classes<'a>(
        &self,
        classes: impl IntoIterator<Item = &'a str>,
    ) -> Result<(), SloError> {
        let classes: Vec<&str> = classes.into_iter().collect();
        let unknown = self.bounds.iter().find_map(|bound| match &bound.scope {
            Scope::Class(name) if !classes.contains(&name.as_str()) => Some(name),
            _ => None,
        });
        unknown.map_or(Ok(()), |name| Err(SloError::unknown_class(name, &classes)))
    }

    /// Checks `run` against every bound.
    ///
    /// # Errors
    ///
    /// [`SloError::UnknownClass`] when a bound names a class that the run does not have.
    pub fn evaluate(&self, run: &Run) -> Result<Verdict, SloError> {
        self.check_classes(run.classes.iter().map(|class| class.name.as_str()))?;
        if run.meta.overloaded {
            return Ok(Verdict::Overloaded);
        }
        if let Some(loss) = self.loss(run) {
            return Ok(Verdict::Lossy(loss));
        }
        let violations: Vec<_> = self
            .bounds
            .iter()
            .flat_map(|bound| bound.check(run))
            .collect();
        Ok(if violations.is_empty() {
            Verdict::Met
        } else {
            Verdict::Missed(violations)
        })
    }
}

impl Slo {
    /// The bound that `run` uses most of, its scope narrowed to the class, with value ÷ bound: up
    /// to 1 it is kept. `None` when the run is overloaded or lossy, or some bound's requests were not
    /// measured: then nothing is shown.
    pub fn tightest(&self, run: &Run) -> Option<(Bound, f64)> {
        if run.meta.overloaded || self.loss(run).is_some() {
            return None;
        }
        let uses = self.bounds.iter().flat_map(|bound| {
            let narrowed = |(scope, value): (Scope, f64)| {
                let bound = Bound {
                    scope,
                    ..bound.clone()
                };
                let used = value / bound.at_most;
                (bound, used)
            };
            bound.values(run).into_iter().map(narrowed)
        });
        let uses: Vec<(Bound, f64)> = uses.collect();
        let shown = uses.iter().all(|(_, used)| used.is_finite());
        let tightest = uses.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        tightest.filter(|_| shown)
    }

    /// The loss that keeps `run` from meeting anything: of all requests, or else of a bounded class.
    fn loss(&self, run: &Run) -> Option<Loss> {
        let of_all = Loss {
            scope: Scope::Overall,
            fraction: run.lost_fraction(),
        };
        let of_classes = run.classes.iter().map(|class| Loss {
            scope: Scope::Class(class.name.clone()),
            fraction: class.lost_fraction(),
        });
        let is_bounded = |loss: &Loss| {
            loss.scope == Scope::Overall
                || self
                    .bounds
                    .iter()
                    .any(|bound| bound.scope == Scope::EveryClass || bound.scope == loss.scope)
        };
        std::iter::once(of_all)
            .chain(of_classes)
            .filter(is_bounded)
            .find(|loss| loss.fraction > LOST_FRACTION_MAX)
    }
}

impl Bound {
    fn check(&self, run: &Run) -> Vec<Violation> {
        self.values(run)
            .into_iter()
            .filter_map(|(scope, value)| self.judge(scope, value))
            .collect()
    }

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

    fn judge(&self, scope: Scope, value: f64) -> Option<Violation> {
        let value = (!value.is_nan()).then_some(value);
        let kept = value.is_some_and(|value| value <= self.at_most);
        (!kept).then(|| Violation {
            bound: Self {
                scope,
                ..self.clone()
            },
            value,
        })
    }

    /// A value of the measure, for people.
    fn shown(&self, value: f64) -> String {
        match self.measure {
            Measure::Latency => duration_us(value),
            Measure::Slowdown => format!("{value:.1}"),
        }
    }
}

/// A latency in the largest unit that keeps the number at 1 or above and reads back as the same: 250us, 20ms.
fn written_us(us: f64) -> String {
    let reads_back = |&&(_, scale): &&(&str, f64)| us / scale >= 1.0 && us / scale * scale == us;
    let (unit, scale) = LATENCY_UNITS
        .iter()
        .find(reads_back)
        .unwrap_or(&("us", 1.0));
    format!("{}{unit}", us / scale)
}

/// Units that latencies are written in, in µs.
const LATENCY_UNITS: [(&str, f64); 3] = [("s", 1e6), ("ms", 1e3), ("us", 1.0)];

impl FromStr for Slo {
    type Err = SloError;

    fn from_str(text: &str) -> Result<Self, SloError> {
        parse::bounds(text).map(|bounds| Self { bounds })
    }
}

impl fmt::Display for Slo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, bound) in self.bounds.iter().enumerate() {
            write!(f, "{}{bound}", if index > 0 { "," } else { "" })?;
        }
        Ok(())
    }
}

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

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) => write!(f, "{} is broken: {}", self.bound, self.bound.shown(value)),
            None => write!(f, "{} is not shown: no request was measured", self.bound),
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (lost, most) = (percent(self.fraction), percent(LOST_FRACTION_MAX));
        write!(f, "{lost} of {} was lost, more than {most}", self.scope)
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

#[cfg(test)]
mod tests;
