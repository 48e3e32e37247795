//! What the paper says of the systems.

use headway_report::stats::ConfidenceInterval;
use serde::{Deserialize, Serialize};

use super::figure::RunFigure;
use crate::expectation::{Expectation, Pair, interval};
use crate::live::LiveVerdict;
use crate::text::on_one_line;

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

impl ReplayedClaim {
    /// Whether it can be judged.
    pub(super) fn check(&self) -> Result<(), String> {
        let checked = self.expect.check(self.over.is_some());
        checked.map_err(|problem| format!("the claim {:?}: {problem}", self.says))
    }

    /// By the figures of each round that counts, live and simulated.
    pub(super) fn judge(&self, live: &[Pair], simulated: &[Pair]) -> ReplayedJudged {
        let ours = interval(live);
        let verdict = self.expect.judge(ours.as_ref());
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
        let verdict = |expect: Expectation| expect.judge(Some(&ours));
        assert_eq!(verdict(Expectation::AtLeast(0.9)), LiveVerdict::Reproduced);
        assert_eq!(
            verdict(Expectation::AtLeast(0.99)),
            LiveVerdict::NotReproduced
        );
    }
}
