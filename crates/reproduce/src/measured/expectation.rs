//! The expected values and bounds of measured figures, and the rules that judge them.
//!
//! A claim is about a figure of one system, or about its ratio to another system's, paired by round. Over the rounds, the figure or ratio has
//! an interval (95 %):
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

use super::verdict::MeasuredVerdict;

/// Confidence of every interval over rounds.
const CONFIDENCE: f64 = 0.95;

/// The expected value or bound of a figure, or of a ratio of two figures.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expectation {
    /// The paper's ratio, above 0 and not 1.
    Paper(f64),
    /// A ratio above 1.
    More,
    /// A ratio below 1.
    Less,
    /// A ratio so near to 1 that neither figure exceeds the other by more than this fraction, above 0.
    Within(f64),
    /// A lower bound.
    AtLeast(f64),
    /// An upper bound.
    AtMost(f64),
}

/// A round's figures of both systems, or of one alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) of: f64,
    pub(crate) over: Option<f64>,
}

/// The interval over rounds: around the geometric mean of ratios, or the mean of single figures.
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

/// The estimate and its interval as tables show them; a dash without an interval.
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
    /// Checks that the expectation fits a ratio, or else a single figure.
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

    /// The expectation as tables show it.
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

    /// The verdict on an interval; without an interval it is undecided.
    pub(crate) fn judge(self, ours: Option<&ConfidenceInterval>) -> MeasuredVerdict {
        ours.map_or(MeasuredVerdict::Undecided, |ours| self.verdict(ours))
    }

    fn verdict(self, ours: &ConfidenceInterval) -> MeasuredVerdict {
        let beyond = |lo: f64, hi: f64| {
            if lo <= ours.lo && ours.hi <= hi {
                MeasuredVerdict::Reproduced
            } else if ours.hi < lo || hi < ours.lo {
                MeasuredVerdict::NotReproduced
            } else {
                MeasuredVerdict::Undecided
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
                if side == MeasuredVerdict::Reproduced && !ours.contains(paper) {
                    MeasuredVerdict::Deviates
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

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(expect: Expectation, ratios: &[f64]) -> MeasuredVerdict {
        let pairs: Vec<Pair> = ratios
            .iter()
            .map(|ratio: &f64| Pair {
                of: 30.0 * ratio,
                over: Some(30.0),
            })
            .collect();
        expect.judge(interval(&pairs).as_ref())
    }

    #[test]
    fn the_rules_by_their_table() {
        use Expectation::{AtLeast, AtMost, Less, More, Paper, Within};
        use MeasuredVerdict::{Deviates, NotReproduced, Reproduced, Undecided};
        let (half, one, twice, wide) = (
            [0.49, 0.5, 0.51],
            [0.99, 1.0, 1.01],
            [1.9, 2.0, 2.1],
            [0.5, 1.0, 2.5],
        );
        for (expect, ratios, verdict) in [
            (Paper(2.0), twice, Reproduced),
            (Paper(3.0), twice, Deviates),
            (Paper(2.0), half, NotReproduced),
            (Paper(2.0), wide, Undecided),
            (Paper(0.5), half, Reproduced),
            (Paper(0.5), twice, NotReproduced),
            (More, twice, Reproduced),
            (More, half, NotReproduced),
            (More, one, Undecided),
            (Less, half, Reproduced),
            (Less, twice, NotReproduced),
            (Within(0.25), one, Reproduced),
            (Within(0.25), half, NotReproduced),
            (Within(0.25), twice, NotReproduced),
            (Within(0.25), wide, Undecided),
            (AtLeast(1.2), twice, Reproduced),
            (AtLeast(1.2), one, NotReproduced),
            (AtLeast(1.2), wide, Undecided),
            (AtMost(1.2), one, Reproduced),
        ] {
            assert_eq!(judged(expect, &ratios), verdict, "{expect:?} {ratios:?}");
        }
        assert_eq!(judged(More, &[2.0]), Undecided, "one round tells nothing");
    }

    #[test]
    fn a_single_figure_has_the_interval_of_its_mean() {
        let pairs: Vec<Pair> = [0.93, 0.95, 0.94]
            .iter()
            .map(|of: &f64| Pair {
                of: *of,
                over: None,
            })
            .collect();
        let ours = interval(&pairs).unwrap();
        assert!((ours.estimate - 0.94).abs() < 1e-9);
        let verdict = |expect: Expectation| expect.judge(Some(&ours));
        assert_eq!(
            verdict(Expectation::AtLeast(0.9)),
            MeasuredVerdict::Reproduced
        );
        assert_eq!(
            verdict(Expectation::AtLeast(0.99)),
            MeasuredVerdict::NotReproduced
        );
    }
}
