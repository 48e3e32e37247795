//! The paper's claims about the systems.

use headway_report::stats::ConfidenceInterval;
use serde::{Deserialize, Serialize};

use super::figure::RunFigure;
use crate::measured::MeasuredVerdict;
use crate::measured::expectation::{Expectation, Pair, interval};
use crate::text::on_one_line;

/// A claim of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayedClaim {
    /// The claim in words.
    pub says: String,
    /// Name of the system whose figure the claim is about.
    pub of: String,
    /// Name of the system whose figure is the divisor; without it, the claim is about the figure itself.
    pub over: Option<String>,
    /// The kind of figure.
    pub figure: RunFigure,
    /// The offered load.
    pub load: f64,
    /// The expected value or bound.
    pub expect: Expectation,
    /// Why the result differs here, found after the measurement; it changes no verdict.
    pub reason: Option<String>,
}

/// A claim beside the measured figures.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayedJudged {
    /// The claim in words.
    pub says: String,
    /// The compared systems: `+ stealing ÷ rss`.
    pub of: String,
    /// The kind of figure.
    pub figure: RunFigure,
    /// The offered load.
    pub load: f64,
    /// The expected value or bound.
    pub expect: Expectation,
    /// The measured estimate and its interval over the rounds that count; none with fewer than two rounds.
    pub live: Option<ConfidenceInterval>,
    /// The simulated estimate and its interval over the same rounds.
    pub simulated: Option<ConfidenceInterval>,
    /// Number of rounds that count.
    pub rounds: usize,
    /// The verdict on the measured interval.
    pub verdict: MeasuredVerdict,
    /// Why the result differs from the paper's; none if it is reproduced or the cause is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ReplayedClaim {
    /// Checks that the claim's expectation fits its figure: a ratio or a single one.
    pub(super) fn check(&self) -> Result<(), String> {
        let checked = self.expect.check(self.over.is_some());
        checked.map_err(|problem| format!("the claim {:?}: {problem}", self.says))
    }

    /// Judges the claim by the live and simulated figures of each round that counts.
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
            reason: reason.filter(|_| verdict != MeasuredVerdict::Reproduced),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(expect: Expectation, ratios: &[f64]) -> MeasuredVerdict {
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
