//! The paper's claims about the systems.
//!
//! A claim is judged as those of all figures that are measured and simulated ([`judge`](crate::measured::claim)), by the rounds whose runs
//! the machine left undisturbed.

use headway_report::format;
use serde::{Deserialize, Serialize};

use super::figure::RunFigure;
use super::run::ReplayedRun;
use crate::measured::Expectation;
use crate::measured::claim::{ClaimParts, ClaimedFigure, MeasuredClaim, SystemAtPlace};

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

/// The figure that a claim is about.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ReplayedFigure {
    /// The kind of figure.
    pub figure: RunFigure,
    /// The offered load.
    pub load: f64,
}

impl ClaimedFigure for ReplayedFigure {
    const COLUMNS: &'static [&'static str] = &["figure", "load"];

    fn cells(&self) -> Vec<String> {
        let load = format::significant(self.load, 2);
        vec![self.figure.words().into(), load]
    }
}

impl MeasuredClaim for ReplayedClaim {
    type Run = ReplayedRun;
    type Figure = ReplayedFigure;

    fn parts(&self) -> ClaimParts<'_> {
        ClaimParts {
            says: &self.says,
            of: SystemAtPlace::anywhere(&self.of),
            over: self.over.as_deref().map(SystemAtPlace::anywhere),
            expect: self.expect,
            reason: self.reason.as_deref(),
        }
    }

    fn figure(&self) -> ReplayedFigure {
        ReplayedFigure {
            figure: self.figure,
            load: self.load,
        }
    }

    fn live(&self, run: &ReplayedRun) -> Option<f64> {
        (run.load == self.load).then(|| self.figure.live(run))
    }

    fn simulated(&self, run: &ReplayedRun) -> Option<f64> {
        (run.load == self.load).then(|| self.figure.simulated(run))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::MeasuredVerdict;
    use crate::measured::claim::judge;
    use crate::replayed::ReplayedFigures;
    use headway_report::{ClassMeta, Overall, Recorder};

    fn run(round: usize, load: f64, renewals: u64) -> ReplayedRun {
        let recorder = Recorder::new(&[ClassMeta::new("short", 1_000.0)]);
        let overall = Overall::of(&recorder.overall());
        let figures = ReplayedFigures {
            overall,
            preemptions_each: 0.5,
        };
        ReplayedRun {
            round,
            load,
            system: "mine".into(),
            counts: round > 0,
            untouched_fraction: 0.9,
            lost_fraction: 0.01,
            preemptions: 5,
            renewals,
            live: figures.clone(),
            simulated: figures,
            all: overall,
        }
    }

    #[test]
    fn a_claim_is_about_the_runs_at_its_load() {
        let claim = ReplayedClaim {
            says: "so it is".into(),
            of: "mine".into(),
            over: None,
            figure: RunFigure::Avoided,
            load: 0.7,
            expect: Expectation::AtLeast(0.9),
            reason: None,
        };
        let runs: Vec<ReplayedRun> = (0..3)
            .flat_map(|round| [run(round, 0.5, 5), run(round, 0.7, 95)])
            .collect();
        let judged = judge(&claim, &runs);
        let decided = (2, MeasuredVerdict::Reproduced);
        assert_eq!((judged.rounds, judged.verdict), decided);
        assert!((judged.live.unwrap().estimate - 0.95).abs() < 1e-9);
        // The simulator has no count of avoided interruptions.
        assert!(judged.simulated.is_none());
    }
}
