//! The paper's claims about the systems.

use headway_report::stats::ConfidenceInterval;
use serde::{Deserialize, Serialize};

use super::run::{HostedFigure, HostedFigures, HostedRun};
use crate::measured::MeasuredVerdict;
use crate::measured::expectation::{Expectation, Pair, interval};
use crate::text::on_one_line;

/// A claim of the paper, about a figure of a system at a place.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostedClaim {
    /// The claim in words.
    pub says: String,
    /// Name of the system whose figure the claim is about.
    pub of: String,
    /// Name of the system whose figure is the divisor.
    pub over: Option<String>,
    /// The kind of figure.
    pub figure: HostedFigure,
    /// The place of the figure.
    pub at: String,
    /// The divisor's place; `at` by default. Without `over`, the divisor is the same system at this place.
    pub over_at: Option<String>,
    /// The expected value or bound.
    pub expect: Expectation,
    /// Why the result differs here, found after the measurement; it changes no verdict.
    pub reason: Option<String>,
}

/// A claim beside the measured figures.
#[derive(Clone, Debug, Serialize)]
pub struct HostedJudged {
    /// The claim in words.
    pub says: String,
    /// The compared systems and places: `Arachne, low ÷ Shenango, low`.
    pub of: String,
    /// The kind of figure.
    pub figure: HostedFigure,
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

impl HostedClaim {
    /// Whether the claim is about a ratio.
    #[must_use]
    pub fn is_ratio(&self) -> bool {
        self.over.is_some() || self.over_at.is_some()
    }

    /// The divisor's system and place.
    fn divisor(&self) -> Option<(&str, &str)> {
        let system = self.over.as_ref().unwrap_or(&self.of);
        let place = self.over_at.as_ref().unwrap_or(&self.at);
        self.is_ratio().then_some((system.as_str(), place.as_str()))
    }

    /// Judges the claim by the rounds in which all of its runs count.
    pub(super) fn judge(&self, runs: &[HostedRun]) -> HostedJudged {
        let live = self.pairs(runs, |run| &run.live);
        let simulated = self.pairs(runs, |run| &run.simulated);
        let ours = interval(&live);
        let verdict = self.expect.judge(ours.as_ref());
        let reason = self.reason.as_deref().map(on_one_line);
        HostedJudged {
            says: self.says.clone(),
            of: match self.divisor() {
                Some((system, place)) => format!("{}, {} ÷ {system}, {place}", self.of, self.at),
                None => format!("{}, {}", self.of, self.at),
            },
            figure: self.figure,
            expect: self.expect,
            live: ours,
            simulated: interval(&simulated),
            rounds: live.len(),
            verdict,
            reason: reason.filter(|_| verdict != MeasuredVerdict::Reproduced),
        }
    }

    fn pairs(&self, runs: &[HostedRun], side: fn(&HostedRun) -> &HostedFigures) -> Vec<Pair> {
        let figure = |system: &str, place: &str, round: usize| {
            let mut runs = runs.iter().filter(|run| run.counts() && run.round == round);
            let run = runs.find(|run| run.system == system && run.place == place)?;
            let value = side(run).get(self.figure);
            value.is_finite().then_some(value)
        };
        let rounds = runs.iter().map(|run| run.round + 1).max().unwrap_or(0);
        let pair = |round: usize| {
            let of = figure(&self.of, &self.at, round)?;
            let over = match self.divisor() {
                Some((system, place)) => Some(figure(system, place, round)?),
                None => None,
            };
            Some(Pair { of, over })
        };
        (0..rounds).filter_map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Lag;

    fn run(system: &str, round: usize, p999_us: f64, late_fraction: f64) -> HostedRun {
        let figures = HostedFigures {
            p999_us,
            worst_p999_us: f64::NAN,
            batch_cores: 1.0,
            efficiency: 0.5,
            reallocations_per_s: 1.0,
        };
        HostedRun {
            round,
            system: system.into(),
            place: "low".into(),
            lag: Lag {
                p50_us: 1.0,
                p99_us: 1.0,
                max_us: 1.0,
                late_fraction,
            },
            sent: 1,
            lost: 0,
            shed: 0,
            live: figures,
            simulated: figures,
        }
    }

    #[test]
    fn a_ratio_is_of_the_rounds_in_which_both_sent_in_time() {
        let mut runs = Vec::new();
        for round in 0..4 {
            let is_late = round == 3;
            runs.push(run("fast", round, 2.0, 0.0));
            let slow_us = if is_late {
                0.1
            } else {
                4.0 + round as f64 / 10.0
            };
            runs.push(run("slow", round, slow_us, f64::from(is_late)));
        }
        let mut claim = HostedClaim {
            says: "so it is".into(),
            of: "slow".into(),
            over: Some("fast".into()),
            figure: HostedFigure::P999Us,
            at: "low".into(),
            over_at: None,
            expect: Expectation::More,
            reason: Some("never told".into()),
        };
        let told = claim.judge(&runs);
        assert_eq!(
            (told.rounds, told.verdict),
            (3, MeasuredVerdict::Reproduced)
        );
        assert_eq!(told.reason, None);
        assert_eq!(told.of, "slow, low ÷ fast, low");
        claim.figure = HostedFigure::WorstP999Us;
        assert_eq!(claim.judge(&runs).verdict, MeasuredVerdict::Undecided);
    }
}
