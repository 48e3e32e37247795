//! What came of checking a run.

use std::fmt;

use super::bound::{Bound, Scope};
use super::samples::FewSamples;
use crate::format::percent;
use crate::run::{LOST_FRACTION_MAX, Run};

/// What came of checking a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Every bound was kept.
    Met,
    /// At least one was not.
    Missed(Vec<Violation>),
    /// Every bound was kept, but a bounded percentile rests on less than one request, so the run cannot show it.
    Unshown(FewSamples),
    /// The run was overloaded: its tail measures only its length, so no bound was checked.
    Overloaded,
    /// The run lost more than [`LOST_FRACTION_MAX`] of all requests, or of a bounded class: the latencies of the
    /// other requests prove nothing, so no bound was checked.
    Lossy(Loss),
}

/// The requests that a run lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// The scope of the loss: all requests, or those of one class.
    pub scope: Scope,
    /// The lost fraction, 0 to 1.
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
    /// The value found; `None` when no request was measured, which counts as a broken bound.
    pub value: Option<f64>,
}

impl Bound {
    /// The values that break this bound.
    pub(super) fn check(&self, run: &Run) -> Vec<Violation> {
        self.values(run)
            .into_iter()
            .filter_map(|(scope, value)| self.judge(scope, value))
            .collect()
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
