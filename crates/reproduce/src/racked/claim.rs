//! The paper's claims about the systems.

use headway_report::stats::ConfidenceInterval;
use serde::{Deserialize, Serialize};

use super::run::{PhasePart, RackedRun, RackedTail, p99_ms};
use crate::measured::MeasuredVerdict;
use crate::measured::expectation::{Expectation, Pair, interval};
use crate::text::on_one_line;

/// A claim of the paper, about the p99 of a class in a part of a phase.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RackedClaim {
    /// The claim in words.
    pub says: String,
    /// Name of the system whose figure the claim is about.
    pub of: String,
    /// Name of the system whose figure is the divisor; without it, the claim is about the figure itself, ms.
    pub over: Option<String>,
    /// The class.
    pub class: String,
    /// Number of the phase, from 1.
    pub phase: usize,
    /// The part of the phase.
    pub during: PhasePart,
    /// The expected value or bound.
    pub expect: Expectation,
    /// Why the result differs here, found after the measurement; it changes no verdict.
    pub reason: Option<String>,
}

/// A claim beside the measured figures.
#[derive(Clone, Debug, Serialize)]
pub struct RackedJudged {
    /// The claim in words.
    pub says: String,
    /// The compared systems: `Pallas ÷ racksched`.
    pub of: String,
    /// The compared tail: `short, phase 2, settled`.
    pub tail: String,
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

impl RackedClaim {
    /// Judges the claim by the rounds in which all of its systems have runs that count.
    pub(super) fn judge(&self, runs: &[RackedRun]) -> RackedJudged {
        let live = self.pairs(runs, |run| &run.live);
        let simulated = self.pairs(runs, |run| &run.simulated);
        let ours = interval(&live);
        let verdict = self.expect.judge(ours.as_ref());
        let reason = self.reason.as_deref().map(on_one_line);
        RackedJudged {
            says: self.says.clone(),
            of: match &self.over {
                Some(over) => format!("{} ÷ {over}", self.of),
                None => self.of.clone(),
            },
            tail: format!(
                "{}, phase {}, {}",
                self.class,
                self.phase,
                self.during.words()
            ),
            expect: self.expect,
            live: ours,
            simulated: interval(&simulated),
            rounds: live.len(),
            verdict,
            reason: reason.filter(|_| verdict != MeasuredVerdict::Reproduced),
        }
    }

    fn pairs(&self, runs: &[RackedRun], side: fn(&RackedRun) -> &[RackedTail]) -> Vec<Pair> {
        let counted = |system: &str, round: usize| {
            let mut runs = runs.iter();
            runs.find(|run| run.counts() && run.system == system && run.round == round)
        };
        let figure = |run: &RackedRun| p99_ms(side(run), self.phase, self.during, &self.class);
        let rounds = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
        let pair = |round: usize| {
            let of = figure(counted(&self.of, round)?);
            let over = match &self.over {
                Some(over) => Some(figure(counted(over, round)?)),
                None => None,
            };
            let is_number = of.is_finite() && over.is_none_or(f64::is_finite);
            is_number.then_some(Pair { of, over })
        };
        (0..rounds).filter_map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Lag;

    fn run(system: &str, round: usize, p99_ms: f64, late_fraction: f64) -> RackedRun {
        let tail = RackedTail {
            phase: 2,
            during: PhasePart::Settled,
            class: "short".into(),
            p99_ms,
        };
        RackedRun {
            round,
            system: system.into(),
            lag: Lag {
                p50_us: 1.0,
                p99_us: 1.0,
                max_us: 1.0,
                late_fraction,
            },
            sent: 1,
            lost: 0,
            shed: 0,
            live: vec![tail.clone()],
            simulated: vec![tail],
        }
    }

    #[test]
    fn a_ratio_is_of_the_rounds_in_which_both_sent_in_time() {
        let mut runs = Vec::new();
        for round in 0..4 {
            runs.push(run("mine", round, 2.0, 0.0));
            let is_late = round == 3;
            let p99_ms = if is_late {
                0.1
            } else {
                4.0 + round as f64 / 10.0
            };
            runs.push(run("other", round, p99_ms, f64::from(is_late)));
        }
        let mut claim = RackedClaim {
            says: "so it is".into(),
            of: "mine".into(),
            over: Some("other".into()),
            class: "short".into(),
            phase: 2,
            during: PhasePart::Settled,
            expect: Expectation::Less,
            reason: Some("never told".into()),
        };
        let told = claim.judge(&runs);
        assert_eq!(
            (told.rounds, told.verdict),
            (3, MeasuredVerdict::Reproduced)
        );
        assert_eq!((told.reason, told.of.as_str()), (None, "mine ÷ other"));
        claim.during = PhasePart::Change;
        assert_eq!(claim.judge(&runs).verdict, MeasuredVerdict::Undecided);
    }
}
