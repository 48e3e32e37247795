//! Claims about figures that are measured and simulated, and the rounds that judge them.
//!
//! A claim is judged by the rounds in which all of its runs count: its [expectation](super::expectation) is held against the interval over
//! these rounds of the measured figure, or of its ratio to another system's. The simulated interval stands beside it and decides nothing.

use std::fmt;

use headway_report::stats::ConfidenceInterval;
use serde::Serialize;

use super::expectation::{Expectation, Pair, interval};
use super::verdict::MeasuredVerdict;
use crate::text::on_one_line;

/// A system, at a place if its experiment has places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemAtPlace<'a> {
    /// The system's name.
    pub system: &'a str,
    /// The place's name.
    pub place: Option<&'a str>,
}

impl<'a> SystemAtPlace<'a> {
    /// A system of an experiment without places.
    pub(crate) fn anywhere(system: &'a str) -> Self {
        Self {
            system,
            place: None,
        }
    }
}

impl fmt::Display for SystemAtPlace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            None => f.write_str(self.system),
            Some(place) => write!(f, "{}, {place}", self.system),
        }
    }
}

/// One run of one system, measured and simulated.
pub trait MeasuredRun: Clone + fmt::Debug + Serialize {
    /// Number of the round, from 0.
    fn round(&self) -> usize;

    /// The system and its place.
    fn at(&self) -> SystemAtPlace<'_>;

    /// Whether claims and medians take the run into account.
    fn counts(&self) -> bool;
}

/// The runs of a system that count, by round.
pub(crate) fn counted<'a, R: MeasuredRun>(
    runs: &'a [R],
    at: SystemAtPlace<'a>,
) -> impl Iterator<Item = &'a R> {
    runs.iter()
        .filter(move |run| run.counts() && run.at() == at)
}

/// The parts that claims of all kinds have.
#[derive(Clone, Copy, Debug)]
pub struct ClaimParts<'a> {
    /// The claim in words.
    pub says: &'a str,
    /// The system whose figure the claim is about.
    pub of: SystemAtPlace<'a>,
    /// The system whose figure is the divisor; without it, the claim is about the figure itself.
    pub over: Option<SystemAtPlace<'a>>,
    /// The expected value or bound.
    pub expect: Expectation,
    /// Why the result differs here, found after the measurement; it changes no verdict.
    pub reason: Option<&'a str>,
}

impl ClaimParts<'_> {
    /// Checks that the expectation fits the claim, and that the experiment has the claim's systems.
    pub(crate) fn check(&self, has_system: impl Fn(&str) -> bool) -> Result<(), String> {
        let checked = self.expect.check(self.over.is_some());
        checked.map_err(|problem| format!("the claim {:?}: {problem}", self.says))?;
        let named = [Some(self.of), self.over].into_iter().flatten();
        check_names("system", named.map(|at| at.system), has_system)
    }
}

/// Checks that an experiment has everything that a claim names.
pub(crate) fn check_names<'a>(
    what: &str,
    mut named: impl Iterator<Item = &'a str>,
    has: impl Fn(&str) -> bool,
) -> Result<(), String> {
    match named.find(|name| !has(name)) {
        Some(name) => Err(format!("a claim is about {name:?}, which is no {what}")),
        None => Ok(()),
    }
}

/// The claimed figure, as results show it.
pub trait ClaimedFigure: Clone + fmt::Debug + Serialize {
    /// Its columns in the table of claims.
    const COLUMNS: &'static [&'static str];

    /// Its cells in these columns.
    fn cells(&self) -> Vec<String>;
}

/// A claim of the paper about a figure of measured and simulated runs.
pub trait MeasuredClaim {
    /// The runs.
    type Run: MeasuredRun;
    /// The figure.
    type Figure: ClaimedFigure;

    /// The parts that claims of all kinds have.
    fn parts(&self) -> ClaimParts<'_>;

    /// The claimed figure.
    fn figure(&self) -> Self::Figure;

    /// The measured figure of a run; none if the run lacks it.
    fn live(&self, run: &Self::Run) -> Option<f64>;

    /// The simulated figure of a run; none if the run lacks it.
    fn simulated(&self, run: &Self::Run) -> Option<f64>;
}

/// A claim beside the measured and simulated figures.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredJudged<F> {
    /// The claim in words.
    pub says: String,
    /// The compared systems: `Pallas ÷ racksched`, or with their places `Arachne, low ÷ Shenango, low`.
    pub of: String,
    /// The claimed figure.
    #[serde(flatten)]
    pub figure: F,
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

/// Judges a claim by the rounds in which all of its runs count.
pub(crate) fn judge<C: MeasuredClaim>(claim: &C, runs: &[C::Run]) -> MeasuredJudged<C::Figure> {
    let parts = claim.parts();
    let pairs_live = pairs(&parts, runs, |run| claim.live(run));
    let pairs_simulated = pairs(&parts, runs, |run| claim.simulated(run));
    let live = interval(&pairs_live);
    let verdict = parts.expect.judge(live.as_ref());
    let reason = parts.reason.map(on_one_line);
    MeasuredJudged {
        says: parts.says.into(),
        of: match parts.over {
            Some(over) => format!("{} ÷ {over}", parts.of),
            None => parts.of.to_string(),
        },
        figure: claim.figure(),
        expect: parts.expect,
        live,
        simulated: interval(&pairs_simulated),
        rounds: pairs_live.len(),
        verdict,
        reason: reason.filter(|_| verdict != MeasuredVerdict::Reproduced),
    }
}

/// The figures of each round in which all of a claim's runs count and have one.
fn pairs<R: MeasuredRun>(
    parts: &ClaimParts<'_>,
    runs: &[R],
    figure: impl Fn(&R) -> Option<f64>,
) -> Vec<Pair> {
    let in_round = |at: SystemAtPlace<'_>, round: usize| {
        let mut runs = counted(runs, at).filter(|run| run.round() == round);
        runs.find_map(&figure)
    };
    let rounds = runs.iter().map(|run| run.round() + 1).max().unwrap_or(0);
    let pair = |round: usize| {
        let of = in_round(parts.of, round)?;
        let over = match parts.over {
            Some(over) => Some(in_round(over, round)?),
            None => None,
        };
        Some(Pair { of, over })
    };
    (0..rounds).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosted::{HostedClaim, HostedFigure, HostedFigures, HostedRun};
    use crate::measured::{ClientCounts, Lag};

    fn run(system: &str, round: usize, p999_us: f64) -> HostedRun {
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
            client: ClientCounts {
                lag: Lag {
                    p50_us: 1.0,
                    p99_us: 1.0,
                    max_us: 1.0,
                    late_fraction: 0.0,
                },
                sent: 1,
                lost: 0,
                shed: 0,
            },
            live: figures,
            simulated: figures,
        }
    }

    fn claim(over: Option<&str>, expect: Expectation) -> HostedClaim {
        HostedClaim {
            says: "so it is".into(),
            of: "slow".into(),
            over: over.map(str::to_owned),
            figure: HostedFigure::P999Us,
            at: "low".into(),
            over_at: None,
            expect,
            reason: Some("by its\n nature".into()),
        }
    }

    #[test]
    fn a_ratio_is_of_the_rounds_in_which_both_count() {
        let mut runs = Vec::new();
        for round in 0..5 {
            let is_late = round == 3;
            let is_missing = round == 4;
            runs.push(run("fast", round, if is_missing { f64::NAN } else { 2.0 }));
            // The only better round does not count.
            let mut slow = run("slow", round, 4.0 + round as f64 / 10.0);
            if is_late {
                slow = run("slow", round, 0.1);
                slow.client.lag.late_fraction = 1.0;
            }
            runs.push(slow);
        }
        let mut claim = claim(Some("fast"), Expectation::More);
        let judged = judge(&claim, &runs);
        let decided = (3, MeasuredVerdict::Reproduced);
        assert_eq!((judged.rounds, judged.verdict), decided);
        assert_eq!(
            (judged.reason, judged.of.as_str()),
            (None, "slow, low ÷ fast, low")
        );
        claim.figure = HostedFigure::WorstP999Us;
        let judged = judge(&claim, &runs);
        assert_eq!(
            (judged.rounds, judged.verdict),
            (0, MeasuredVerdict::Undecided)
        );
        assert_eq!(judged.reason.as_deref(), Some("by its nature"));
    }

    #[test]
    fn a_single_figure_is_of_the_rounds_that_count() {
        let mut runs: Vec<HostedRun> = [9.0, 2.0, 3.0, 4.0]
            .iter()
            .enumerate()
            .map(|(round, &p999_us)| run("slow", round, p999_us))
            .collect();
        runs[0].client.lag.late_fraction = 1.0;
        let judged = judge(&claim(None, Expectation::AtMost(1.0)), &runs);
        assert_eq!((judged.rounds, judged.of.as_str()), (3, "slow, low"));
        assert!((judged.live.unwrap().estimate - 3.0).abs() < 1e-9);
    }
}
