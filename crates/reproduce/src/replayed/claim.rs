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
