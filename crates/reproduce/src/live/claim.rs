//! What the paper says of the systems measured, and the rule by which it is judged.
//!
//! A claim is about how much one system carries, divided by how much another does. Over the rounds that ratio has an interval:
//!
//! 1. It holds 1: undecided. These rounds cannot tell the two apart.
//! 2. It lies on the other side of 1 than the paper's figure: not reproduced.
//! 3. It holds the paper's figure, or the paper has none: reproduced.
//! 4. Else: deviates; the same system wins, by another factor.

use serde::{Deserialize, Serialize};

use super::carried::{Carried, Ratio};
use super::tail::Tail;
use crate::text::on_one_line;

/// A claim of the paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveClaim {
    /// In words.
    pub says: String,
    /// The system's name.
    pub of: String,
    /// That of the one it is divided by.
    pub over: String,
    /// Which percentile of the slowdown is bounded; the 99.9th, as in the papers, unless said.
    #[serde(default = "as_in_the_papers")]
    pub tail: Tail,
    /// The paper's figure; without one, only that the first carries more.
    pub paper: Option<f64>,
    /// Why it comes out otherwise here, found after the measurement; it changes no verdict.
    pub reason: Option<String>,
}

fn as_in_the_papers() -> Tail {
    Tail::P999
}

/// What a claim came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LiveVerdict {
    /// The interval holds the paper's figure and not 1.
    Reproduced,
    /// The same system wins, by another factor.
    Deviates,
    /// The other one wins.
    NotReproduced,
    /// The rounds cannot tell.
    Undecided,
}

impl LiveVerdict {
    /// As shown.
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

/// A claim beside what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct LiveJudged {
    /// In words.
    pub says: String,
    /// What is compared: `Concord ÷ Shinjuku`.
    pub figure: String,
    /// Which percentile of the slowdown is bounded.
    pub tail: Tail,
    /// The paper's figure.
    pub paper: Option<f64>,
    /// Ours.
    pub ours: Ratio,
    /// The verdict.
    pub verdict: LiveVerdict,
    /// Why it comes out otherwise than in the paper, where that was found out and it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl LiveClaim {
    /// By what both carried, round by round.
    pub(crate) fn judge(&self, pairs: &[(Carried, Carried)]) -> LiveJudged {
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
            reason: reason.filter(|_| verdict != LiveVerdict::Reproduced),
        }
    }
}

fn verdict(ours: &Ratio, paper: Option<f64>) -> LiveVerdict {
    let paper_wins = paper.is_none_or(|paper| paper > 1.0);
    let ours_wins = ours.lo > 1.0;
    match paper {
        _ if ours.allows(1.0) => LiveVerdict::Undecided,
        _ if ours_wins != paper_wins => LiveVerdict::NotReproduced,
        Some(paper) if !ours.allows(paper) => LiveVerdict::Deviates,
        _ => LiveVerdict::Reproduced,
    }
}

#[cfg(test)]
mod tests {
    use super::super::carried::Carried::At;
    use super::*;

    /// Ratios by round.
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
            (Some(1.5), [0.9, 1.1, 1.6], LiveVerdict::Undecided),
            (Some(1.5), [0.5, 0.52, 0.51], LiveVerdict::NotReproduced),
            (Some(1.5), [1.4, 1.5, 1.6], LiveVerdict::Reproduced),
            (Some(1.5), [3.0, 3.1, 3.05], LiveVerdict::Deviates),
            (Some(0.9), [0.88, 0.9, 0.92], LiveVerdict::Reproduced),
            (Some(0.9), [1.4, 1.5, 1.6], LiveVerdict::NotReproduced),
            (None, [1.4, 1.5, 1.6], LiveVerdict::Reproduced),
            (None, [0.5, 0.52, 0.51], LiveVerdict::NotReproduced),
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
