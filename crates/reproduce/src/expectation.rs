//! What a figure of measured systems is expected to be, and the rules by which it is judged.
//!
//! A claim is about a figure of one system, or about its ratio to another system's. Over the rounds it has an interval (95 %), paired by round:
//!
//! | expected | reproduced | not reproduced | otherwise |
//! |---|---|---|---|
//! | `paper` (a ratio) | the interval holds it and not 1 | it lies on the other side of 1 | undecided where it holds 1, else deviates |
//! | `more`, `less` (a ratio) | it lies on that side of 1 | it lies on the other | undecided |
//! | `within` (a ratio) | it lies between 1 ÷ (1 + w) and 1 + w | it lies outside | undecided |
//! | `at_least`, `at_most` | it lies beyond the bound | it lies short of it | undecided |

use headway_report::format;
use headway_report::stats::{ConfidenceInterval, mean_interval, ratio_interval};
use serde::{Deserialize, Serialize};

use crate::live::LiveVerdict;

/// Of every interval over rounds.
const CONFIDENCE: f64 = 0.95;

/// What a figure, or a ratio of two, is expected to be.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// The paper's ratio, above 0 and not 1.
    Paper(f64),
    /// A ratio above 1.
    More,
    /// A ratio below 1.
    Less,
    /// A ratio so near to 1 that neither is more than this part larger, above 0.
    Within(f64),
    /// No less.
    AtLeast(f64),
    /// No more.
    AtMost(f64),
}

/// A figure of both systems in a round; of the first alone where there is no other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) of: f64,
    pub(crate) over: Option<f64>,
}

/// Over rounds: of the ratios, a geometric mean; of single figures, a mean.
pub(crate) fn interval(pairs: &[Pair]) -> Option<ConfidenceInterval> {
    let ratios: Option<Vec<(f64, f64)>> = pairs
        .iter()
        .map(|pair| pair.over.map(|over| (pair.of, over)))
        .collect();
    match ratios {
        Some(ratios) => ratio_interval(&ratios, CONFIDENCE).ok(),
        None => {
            let figures: Vec<f64> = pairs.iter().map(|pair| pair.of).collect();
            mean_interval(&figures, CONFIDENCE).ok()
        }
    }
}

/// As tables say it.
pub(crate) fn interval_words(interval: Option<&ConfidenceInterval>) -> String {
    let number = |value: f64| format::significant(value, 3);
    interval.map_or("–".into(), |it| {
        format!(
            "{} [{}, {}]",
            number(it.estimate),
            number(it.lo),
            number(it.hi)
        )
    })
}

impl Expectation {
    /// Whether it can be judged of a ratio, or else of a single figure.
    pub(crate) fn check(self, is_ratio: bool) -> Result<(), &'static str> {
        let problem = match self {
            Self::Paper(ratio) if ratio <= 0.0 || ratio == 1.0 => {
                "`paper` is a ratio above 0 that is not 1: write `within` for as much"
            }
            Self::Within(part) if part <= 0.0 => "`within` must be above 0",
            Self::AtLeast(_) | Self::AtMost(_) => return Ok(()),
            _ if !is_ratio => "a single figure is expected `at_least` or `at_most` something",
            _ => return Ok(()),
        };
        Err(problem)
    }

    /// As tables say it.
    pub(crate) fn words(self) -> String {
        let number = |value: f64| format::significant(value, 3);
        match self {
            Self::Paper(ratio) => format!("{} ×", number(ratio)),
            Self::More => "more".into(),
            Self::Less => "less".into(),
            Self::Within(part) => format!("as much, within {}", format::percent(part)),
            Self::AtLeast(bound) => format!("at least {}", number(bound)),
            Self::AtMost(bound) => format!("at most {}", number(bound)),
        }
    }

    /// The verdict on an interval; none is undecided.
    pub(crate) fn judge(self, ours: Option<&ConfidenceInterval>) -> LiveVerdict {
        ours.map_or(LiveVerdict::Undecided, |ours| self.verdict(ours))
    }

    fn verdict(self, ours: &ConfidenceInterval) -> LiveVerdict {
        let beyond = |lo: f64, hi: f64| {
            if lo <= ours.lo && ours.hi <= hi {
                LiveVerdict::Reproduced
            } else if ours.hi < lo || hi < ours.lo {
                LiveVerdict::NotReproduced
            } else {
                LiveVerdict::Undecided
            }
        };
        // A ratio of exactly 1 is on neither side.
        let (above, below) = (1.0_f64.next_up(), 1.0_f64.next_down());
        match self {
            Self::Paper(paper) => {
                let side = if paper > 1.0 {
                    beyond(above, f64::INFINITY)
                } else {
                    beyond(0.0, below)
                };
                if side == LiveVerdict::Reproduced && !ours.contains(paper) {
                    LiveVerdict::Deviates
                } else {
                    side
                }
            }
            Self::More => beyond(above, f64::INFINITY),
            Self::Less => beyond(0.0, below),
            Self::Within(part) => beyond(1.0 / (1.0 + part), 1.0 + part),
            Self::AtLeast(bound) => beyond(bound, f64::INFINITY),
            Self::AtMost(bound) => beyond(f64::NEG_INFINITY, bound),
        }
    }
}
