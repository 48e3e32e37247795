//! The paper's claims about the measured systems, and the rule that judges them.
//!
//! A claim divides the rate that one system carries by the rate that another carries. Over the rounds, that ratio has an interval:
//!
//! 1. It holds 1: undecided. These rounds cannot tell the two systems apart.
//! 2. It lies on the opposite side of 1 from the paper's figure: not reproduced.
//! 3. It holds the paper's figure, or the paper has none: reproduced.
//! 4. Otherwise: deviates. The same system wins, by another factor.

use serde::{Deserialize, Serialize};

use super::carried::{CarriedRate, Ratio};
use super::tail::Tail;
use crate::measured::MeasuredVerdict;
use crate::text::on_one_line;

/// A claim of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveClaim {
    /// The claim in words.
    pub says: String,
    /// Name of the system whose figure the claim is about.
    pub of: String,
    /// Name of the system whose figure is the divisor.
    pub over: String,
    /// The bounded percentile of the slowdown; by default the 99.9th, as in the papers.
    #[serde(default = "as_in_the_papers")]
    pub tail: Tail,
    /// The paper's ratio; without it, the claim is only that `of` carries more than `over`.
    pub paper: Option<f64>,
    /// Why the result differs here, found after the measurement; it changes no verdict.
    pub reason: Option<String>,
}

fn as_in_the_papers() -> Tail {
    Tail::P999
}

/// A claim beside the measured figures.
#[derive(Clone, Debug, Serialize)]
pub struct LiveJudged {
    /// The claim in words.
    pub says: String,
    /// The compared systems: `Concord ÷ Shinjuku`.
    pub figure: String,
    /// The bounded percentile of the slowdown.
    pub tail: Tail,
    /// The paper's figure.
    pub paper: Option<f64>,
    /// The measured ratio.
    pub ours: Ratio,
    /// The verdict.
    pub verdict: MeasuredVerdict,
    /// Why the result differs from the paper's; none if it is reproduced or the cause is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl LiveClaim {
    /// Judges the claim by the rates that both systems carried in each round.
    pub(crate) fn judge(&self, pairs: &[(CarriedRate, CarriedRate)]) -> LiveJudged {
        let ours = Ratio::of(pairs);
        let verdict = verdict(&ours, self.paper);
        let reason = self.reason.as_deref().map(on_one_line);
        LiveJudged {
            says: self.says.clone(),
            figure: format!("{} ÷ {}", self.of, self.over),
            tail: self.tail,
            paper: self.paper,
            ours,
            verdict,
            reason: reason.filter(|_| verdict != MeasuredVerdict::Reproduced),
        }
    }
}

fn verdict(ours: &Ratio, paper: Option<f64>) -> MeasuredVerdict {
    let paper_wins = paper.is_none_or(|paper| paper > 1.0);
    let ours_wins = ours.lo > 1.0;
    match paper {
        _ if ours.allows(1.0) => MeasuredVerdict::Undecided,
        _ if ours_wins != paper_wins => MeasuredVerdict::NotReproduced,
        Some(paper) if !ours.allows(paper) => MeasuredVerdict::Deviates,
        _ => MeasuredVerdict::Reproduced,
    }
}

#[cfg(test)]
mod tests {
    use super::super::carried::CarriedRate::At;
    use super::*;

    /// Judges a claim by one ratio for each round.
    fn judged(paper: Option<f64>, ratios: &[f64]) -> LiveJudged {
        let claim = LiveClaim {
            says: "it carries more".into(),
            of: "Concord".into(),
            over: "Shinjuku".into(),
            tail: Tail::P999,
            paper,
            reason: Some("it has one\n core".into()),
        };
        let pairs: Vec<_> = ratios
            .iter()
            .map(|ratio| (At(100.0 * ratio), At(100.0)))
            .collect();
        claim.judge(&pairs)
    }

    #[test]
    fn the_rule_in_its_order() {
        for (paper, ratios, verdict) in [
            (Some(1.5), [0.9, 1.1, 1.6], MeasuredVerdict::Undecided),
            (Some(1.5), [0.5, 0.52, 0.51], MeasuredVerdict::NotReproduced),
            (Some(1.5), [1.4, 1.5, 1.6], MeasuredVerdict::Reproduced),
            (Some(1.5), [3.0, 3.1, 3.05], MeasuredVerdict::Deviates),
            (Some(0.9), [0.88, 0.9, 0.92], MeasuredVerdict::Reproduced),
            (Some(0.9), [1.4, 1.5, 1.6], MeasuredVerdict::NotReproduced),
            (None, [1.4, 1.5, 1.6], MeasuredVerdict::Reproduced),
            (None, [0.5, 0.52, 0.51], MeasuredVerdict::NotReproduced),
        ] {
            assert_eq!(
                judged(paper, &ratios).verdict,
                verdict,
                "{paper:?} {ratios:?}"
            );
        }
    }

    #[test]
    fn a_reason_stands_beside_what_is_not_reproduced() {
        assert_eq!(judged(None, &[1.4, 1.5, 1.6]).reason, None);
        let told = judged(None, &[0.5, 0.52, 0.51]).reason;
        assert_eq!(told.as_deref(), Some("it has one core"));
    }
}
