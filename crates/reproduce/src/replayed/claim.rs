//! What the paper says of the systems, and the rules by which it is judged.
//!
//! A claim is about a figure of one system, or about its ratio to another system's. Over the rounds it has an interval (95 %), paired by round:
//!
//! | expected | reproduced | not reproduced | otherwise |
//! |---|---|---|---|
//! | `paper` (a ratio) | the interval holds it and not 1 | it lies on the other side of 1 | undecided where it holds 1, else deviates |
//! | `more`, `less` (a ratio) | it lies on that side of 1 | it lies on the other | undecided |
//! | `within` (a ratio) | it lies between 1 ÷ (1 + w) and 1 + w | it lies outside | undecided |
//! | `at_least`, `at_most` | it lies beyond the bound | it lies short of it | undecided |

use headway_report::stats::{ConfidenceInterval, mean_interval, ratio_interval};
use serde::{Deserialize, Serialize};

use super::figure::RunFigure;
use crate::live::LiveVerdict;
use crate::text::on_one_line;

/// Of every interval over rounds.
const CONFIDENCE: f64 = 0.95;

/// A claim of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayedClaim {
    /// In words.
    pub says: String,
    /// The system's name.
    pub of: String,
    /// That of the one it is divided by; without one the figure itself is meant.
    pub over: Option<String>,
    /// Which figure.
    pub figure: RunFigure,
    /// At which load.
    pub load: f64,
    /// What it is expected to be.
    pub expect: Expectation,
    /// Why it comes out otherwise here, found after the measurement; it changes no verdict.
    pub reason: Option<String>,
}

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

/// A claim beside what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayedJudged {
    /// In words.
    pub says: String,
    /// What is compared: `+ stealing ÷ rss`.
    pub of: String,
    /// Which figure.
    pub figure: RunFigure,
    /// At which load.
    pub load: f64,
    /// What was expected.
    pub expect: Expectation,
    /// Ours, over the rounds that count; none of fewer than two.
    pub live: Option<ConfidenceInterval>,
    /// The same of the simulations.
    pub simulated: Option<ConfidenceInterval>,
    /// Rounds that count.
    pub rounds: usize,
    /// The verdict on ours.
    pub verdict: LiveVerdict,
    /// Why it comes out otherwise than in the paper, where that was found out and it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A figure of both systems in a round; of the first alone where there is no other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) of: f64,
    pub(super) over: Option<f64>,
}

impl ReplayedClaim {
    /// Whether it can be judged.
    pub(super) fn check(&self) -> Result<(), String> {
        let is_ratio = self.over.is_some();
        let problem = match self.expect {
            Expectation::Paper(ratio) if ratio <= 0.0 || ratio == 1.0 => {
                Some("`paper` is a ratio above 0 that is not 1: write `within` for as much")
            }
            Expectation::Within(part) if part <= 0.0 => Some("`within` must be above 0"),
            Expectation::AtLeast(_) | Expectation::AtMost(_) => None,
            _ if !is_ratio => Some("a single figure is expected `at_least` or `at_most` something"),
            _ => None,
        };
        problem.map_or(Ok(()), |problem| {
            Err(format!("the claim {:?}: {problem}", self.says))
        })
    }

    /// By the figures of each round that counts, live and simulated.
    pub(super) fn judge(&self, live: &[Pair], simulated: &[Pair]) -> ReplayedJudged {
        let ours = interval(live);
        let verdict = ours.map_or(LiveVerdict::Undecided, |ours| self.expect.verdict(&ours));
        let reason = self.reason.as_deref().map(on_one_line);
        ReplayedJudged {
            says: self.says.clone(),
            of: match &self.over {
                Some(over) => format!("{} ÷ {over}", self.of),
                None => self.of.clone(),
            },
            figure: self.figure,
            load: self.load,
            expect: self.expect,
            live: ours,
            simulated: interval(simulated),
            rounds: live.len(),
            verdict,
            reason: reason.filter(|_| verdict != LiveVerdict::Reproduced),
        }
    }
}

/// Over rounds: of the ratios, a geometric mean; of single figures, a mean.
fn interval(pairs: &[Pair]) -> Option<ConfidenceInterval> {
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

impl Expectation {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(expect: Expectation, ratios: &[f64]) -> LiveVerdict {
        let claim = ReplayedClaim {
            says: "it is".into(),
            of: "a".into(),
            over: Some("b".into()),
            figure: RunFigure::SlowdownP99,
            load: 0.7,
            expect,
            reason: None,
        };
        let pairs: Vec<Pair> = ratios
            .iter()
            .map(|ratio: &f64| Pair {
                of: 30.0 * ratio,
                over: Some(30.0),
            })
            .collect();
        claim.judge(&pairs, &pairs).verdict
    }

    #[test]
    fn the_rules_by_their_table() {
        use Expectation::{AtLeast, AtMost, Less, More, Paper, Within};
        use LiveVerdict::{Deviates, NotReproduced, Reproduced, Undecided};
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
        let verdict = |expect: Expectation| expect.verdict(&ours);
        assert_eq!(verdict(Expectation::AtLeast(0.9)), LiveVerdict::Reproduced);
        assert_eq!(
            verdict(Expectation::AtLeast(0.99)),
            LiveVerdict::NotReproduced
        );
    }
}
