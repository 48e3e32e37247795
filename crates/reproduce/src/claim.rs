//! What a paper says, and the rule by which it is judged.

use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// Something that a paper says, about a figure (`of`), a ratio of two (`of` ÷ `over`), or an
/// order of several (`ascending`).
///
/// Where names stand for curves, `at` or `take` says which point; the ratio of two curves is
/// formed point by point first.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// In words.
    pub says: String,
    /// The figure, as `SYSTEM: WHAT`.
    pub of: Option<String>,
    /// What it is divided by.
    pub over: Option<String>,
    /// What is subtracted from it.
    pub minus: Option<String>,
    /// Figures that grow strictly in this order; `at` and `take` apply to each.
    pub ascending: Option<Vec<String>>,
    /// Where on a curve.
    pub at: Option<f64>,
    /// Which point of a curve, instead.
    pub take: Option<Aggregate>,
    /// The paper's figure.
    pub paper: Option<f64>,
    /// How far off, relative to the paper's figure, still counts as the same: 0.10 unless said.
    pub tolerance: Option<f64>,
    /// The paper's bound: at least this.
    pub at_least: Option<f64>,
    /// The paper's bound: at most this.
    pub at_most: Option<f64>,
    /// On which side of 1 (a ratio), or of 0 (a difference), it must be: gain or loss.
    pub sign: Option<Sign>,
    /// What is expected instead, written down before the run, and why.
    pub expected: Option<Expected>,
    /// Why it comes out otherwise than in the paper, found after the run, unlike what is expected:
    /// one to three sentences with the figure of the run that shows it. It changes no verdict, and
    /// is shown beneath the claims unless this one is reproduced.
    pub reason: Option<String>,
}

/// Which point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// The first.
    First,
    /// The last that exists.
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
    /// Below it.
    Negative,
}

/// A deviation known beforehand.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Least and largest figure that the reason explains.
    #[serde(default)]
    pub between: Option<[f64; 2]>,
    /// Whether the reason explains that there is no figure.
    #[serde(default)]
    pub no_figure: bool,
    /// The reason.
    pub because: String,
}

/// What a claim came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClaimVerdict {
    /// The rule holds.
    Reproduced,
    /// It does not, but the figure is where it was expected for a reason written down before.
    ExpectedDeviation,
    /// Off by this fraction, in the paper's direction: the same winner for a ratio, within a
    /// factor of two for a figure.
    Deviates(f64),
    /// Neither.
    NotReproduced,
}

/// A claim beside what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// In words.
    pub says: String,
    /// What is compared: `darc: rps ÷ c-fcfs: rps`.
    pub figure: String,
    /// The paper's figure or bound, as shown.
    pub paper: String,
    /// Ours; not a number where there is none.
    pub ours: f64,
    /// The same as shown.
    pub shown: String,
    /// Ours ÷ paper − 1, where the paper has a figure.
    pub deviation: Option<f64>,
    /// The verdict: `reproduced`, `expected-deviation`, `deviates` or `not-reproduced`.
    pub verdict: ClaimVerdict,
    /// The rule that gave it.
    pub rule: String,
    /// Why a deviation was expected, where one was and is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Why it comes out otherwise than in the paper, where that was found out and it does.
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
