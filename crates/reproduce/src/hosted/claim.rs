//! What the paper says of the systems.

use headway_report::stats::ConfidenceInterval;
use serde::{Deserialize, Serialize};

use super::run::{HostedFigure, HostedFigures, HostedRun};
use crate::expectation::{Expectation, Pair, interval};
use crate::live::LiveVerdict;
use crate::text::on_one_line;

/// A claim of the paper, about a figure of a system at a place.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostedClaim {
    /// In words.
    pub says: String,
    /// The system's name.
    pub of: String,
    /// That of the one it is divided by.
    pub over: Option<String>,
    /// Which figure.
    pub figure: HostedFigure,
    /// The place.
    pub at: String,
    /// That of what it is divided by; the same place unless said. Without `over` the system is divided by itself there.
    pub over_at: Option<String>,
    /// What it is expected to be.
    pub expect: Expectation,
    /// Why it comes out otherwise here, found after the measurement; it changes no verdict.
    pub reason: Option<String>,
}

/// A claim beside what was measured.
#[derive(Clone, Debug, Serialize)]
pub struct HostedJudged {
    /// In words.
    pub says: String,
    /// What is compared: `Arachne, low ÷ Shenango, low`.
    pub of: String,
    /// Which figure.
    pub figure: HostedFigure,
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

impl HostedClaim {
    /// Whether it is about a ratio.
    #[must_use]
    pub fn is_ratio(&self) -> bool {
        self.over.is_some() || self.over_at.is_some()
    }

    /// The system and the place that it is divided by.
    fn divisor(&self) -> Option<(&str, &str)> {
        let system = self.over.as_ref().unwrap_or(&self.of);
        let place = self.over_at.as_ref().unwrap_or(&self.at);
        self.is_ratio().then_some((system.as_str(), place.as_str()))
    }

    /// By the rounds in which all runs that it is about count.
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
            reason: reason.filter(|_| verdict != LiveVerdict::Reproduced),
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
    use crate::live::Lag;

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
        assert_eq!((told.rounds, told.verdict), (3, LiveVerdict::Reproduced));
        assert_eq!(told.reason, None);
        assert_eq!(told.of, "slow, low ÷ fast, low");
        claim.figure = HostedFigure::WorstP999Us;
        assert_eq!(claim.judge(&runs).verdict, LiveVerdict::Undecided);
    }
}
