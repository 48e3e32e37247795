//! A service-level objective: bounds, all of which a run must keep.

use std::fmt;
use std::str::FromStr;

use super::bound::{Bound, Scope};
use super::parse::{self, SloError};
use super::samples::{ENOUGH_SAMPLES, FewSamples};
use super::verdict::{Loss, Verdict};
use crate::run::{LOST_FRACTION_MAX, Run};

/// Bounds that a run must keep, all of them.
///
/// The text is a list of bounds joined by commas, each `SCOPE.MEASURE.STATISTIC<=BOUND`:
///
/// - scope: `class.NAME`, `class.*` (each class by itself) or `overall`;
/// - measure: `latency`, bounded by a duration (`250us`, `1.5ms`, `20min`), or `slowdown`, bounded by a
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
        if !violations.is_empty() {
            return Ok(Verdict::Missed(violations));
        }
        let few = self.few_samples(run).filter(FewSamples::is_nothing);
        Ok(few.map_or(Verdict::Met, Verdict::Unshown))
    }
}

impl Slo {
    /// The bound with the largest ratio of value to bound in `run`, its scope narrowed to the class,
    /// and this ratio; a ratio up to 1 keeps the bound. `None` when the run is overloaded or lossy,
    /// or when the requests of some bound were not measured.
    pub fn tightest(&self, run: &Run) -> Option<(Bound, f64)> {
        if run.meta.overloaded || self.loss(run).is_some() {
            return None;
        }
        let uses = self.bounds.iter().flat_map(|bound| {
            bound
                .values(run)
                .into_iter()
                .map(|(scope, value): (Scope, f64)| {
                    let bound = Bound {
                        scope,
                        ..bound.clone()
                    };
                    let used = value / bound.at_most;
                    (bound, used)
                })
        });
        let uses: Vec<(Bound, f64)> = uses.collect();
        let shown = uses.iter().all(|(_, used)| used.is_finite());
        let tightest = uses.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        tightest.filter(|_| shown)
    }

    /// The bounded figure of the run that rests on the fewest requests, where they are fewer than ten: another run may say something else.
    pub fn few_samples(&self, run: &Run) -> Option<FewSamples> {
        let all = self.bounds.iter().flat_map(|bound| bound.samples(run));
        let fewest = all.min_by(|a, b| a.requests.total_cmp(&b.requests))?;
        (fewest.requests < ENOUGH_SAMPLES).then_some(fewest)
    }

    /// The loss that makes `run` unusable for a verdict: of all requests, or else of a bounded class.
    fn loss(&self, run: &Run) -> Option<Loss> {
        let of_all = Loss {
            scope: Scope::Overall,
            fraction: run.lost_fraction(),
        };
        let of_classes = run.classes.iter().map(|class| Loss {
            scope: Scope::Class(class.name.clone()),
            fraction: class.lost_fraction(),
        });
        std::iter::once(of_all)
            .chain(of_classes)
            .filter(|loss: &Loss| {
                loss.scope == Scope::Overall
                    || self
                        .bounds
                        .iter()
                        .any(|bound| bound.scope == Scope::EveryClass || bound.scope == loss.scope)
            })
            .find(|loss| loss.fraction > LOST_FRACTION_MAX)
    }
}

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
