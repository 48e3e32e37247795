//! The verdict on a claim about measured figures.

use serde::Serialize;

/// The verdict on a claim, from an interval over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasuredVerdict {
    /// The interval lies where the paper's figure is.
    Reproduced,
    /// The interval lies on the paper's side of 1, without the paper's ratio.
    Deviates,
    /// The interval lies wholly elsewhere.
    NotReproduced,
    /// The interval is too wide, or missing.
    Undecided,
}

impl MeasuredVerdict {
    /// The verdict as tables show it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Deviates => "deviates",
            Self::NotReproduced => "not reproduced",
            Self::Undecided => "undecided",
        }
    }
}
