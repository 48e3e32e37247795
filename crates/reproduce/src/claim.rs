//! A paper's claims, and their verdicts.

use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// A paper's claim about a figure (`of`), a ratio of two (`of` ÷ `over`), their difference (`of` −
/// `minus`), or an order of several (`ascending`).
///
/// If the names are those of curves, `at` or `take` selects a point. The ratio of two curves is
/// formed point by point first.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The claim in words.
    pub says: String,
    /// The figure, as `SYSTEM: WHAT`.
    pub of: Option<String>,
    /// The divisor.
    pub over: Option<String>,
    /// The figure to subtract.
    pub minus: Option<String>,
    /// Figures that grow strictly in this order; `at` and `take` apply to each.
    pub ascending: Option<Vec<String>>,
    /// The place on a curve's axis.
    pub at: Option<f64>,
    /// The point of a curve or its mean, instead of `at`.
    pub take: Option<Aggregate>,
    /// The paper's figure.
    pub paper: Option<f64>,
    /// The largest relative deviation that still counts as reproduced; 0.10 by default.
    pub tolerance: Option<f64>,
    /// The paper's bound: at least this.
    pub at_least: Option<f64>,
    /// The paper's bound: at most this.
    pub at_most: Option<f64>,
    /// The side of 1 (a ratio) or of 0 (a difference) on which the figure must lie: gain or loss.
    pub sign: Option<Sign>,
    /// The deviation expected before the run, and its reason.
    pub expected: Option<Expected>,
    /// Why the result differs from the paper's, found after the run, unlike `expected`: one to
    /// three sentences with the figure of the run that shows it. It changes no verdict. Reports
    /// show it beneath the claims unless the claim is reproduced.
    pub reason: Option<String>,
}

/// The figure to take from a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The first.
    First,
    /// The last that is a number.
    Last,
    /// The arithmetic mean.
    Mean,
    /// The place on the axis of the largest.
    Argmax,
    /// The place on the axis of the smallest.
    Argmin,
}

/// A gain or a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sign {
    /// Above 1, or above 0 for a difference.
    Positive,
    /// Below 1, or below 0 for a difference.
    Negative,
}

/// A deviation known beforehand.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The smallest and the largest figure that the reason explains.
    #[serde(default)]
    pub between: Option<[f64; 2]>,
    /// Whether the reason explains a missing figure.
    #[serde(default)]
    pub no_figure: bool,
    /// The reason.
    pub because: String,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClaimVerdict {
    /// The rule holds.
    Reproduced,
    /// The rule does not hold, but the figure lies where the file expected it before the run.
    ExpectedDeviation,
    /// The figure is off by this fraction, in the paper's direction: the same winner for a ratio,
    /// within a factor of two for a figure.
    Deviates(f64),
    /// None of the above.
    NotReproduced,
}

/// A claim beside the measured figures.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// The claim in words.
    pub says: String,
    /// The compared figures: `darc: rps ÷ c-fcfs: rps`.
    pub figure: String,
    /// The paper's figure or bound, as shown.
    pub paper: String,
    /// The measured figure; not a number if there is none.
    pub ours: f64,
    /// The measured figure as shown.
    pub shown: String,
    /// Measured ÷ paper − 1, if the paper has a figure.
    pub deviation: Option<f64>,
    /// The verdict: `reproduced`, `expected-deviation`, `deviates` or `not-reproduced`.
    pub verdict: ClaimVerdict,
    /// The rule that gave the verdict.
    pub rule: String,
    /// Why a deviation was expected; none unless the verdict is `expected-deviation`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Why the result differs from the paper's; none if it is reproduced or the cause is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Serialize for ClaimVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Reproduced => "reproduced",
            Self::ExpectedDeviation => "expected-deviation",
            Self::Deviates(_) => "deviates",
            Self::NotReproduced => "not-reproduced",
        })
    }
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reproduced => f.write_str("reproduced"),
            Self::ExpectedDeviation => f.write_str("deviates as expected"),
            Self::Deviates(by) => write!(f, "deviates by {:+.0} %", 100.0 * by),
            Self::NotReproduced => f.write_str("not reproduced"),
        }
    }
}
