//! The paper's claims about the systems.

use serde::{Deserialize, Serialize};

use super::run::{PhasePart, RackedRun, RackedTail, p99_ms};
use crate::measured::Expectation;
use crate::measured::claim::{ClaimParts, ClaimedFigure, MeasuredClaim, SystemAtPlace};

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

/// The tail that a claim is about.
#[derive(Clone, Debug, Serialize)]
pub struct RackedFigure {
    /// Class, phase and part: `short, phase 2, settled`.
    pub tail: String,
}

impl ClaimedFigure for RackedFigure {
    const COLUMNS: &'static [&'static str] = &["p99"];

    fn cells(&self) -> Vec<String> {
        vec![self.tail.clone()]
    }
}

impl RackedClaim {
    fn p99_ms(&self, tails: &[RackedTail]) -> Option<f64> {
        let p99_ms = p99_ms(tails, self.phase, self.during, &self.class);
        p99_ms.is_finite().then_some(p99_ms)
    }
}

impl MeasuredClaim for RackedClaim {
    type Run = RackedRun;
    type Figure = RackedFigure;

    fn parts(&self) -> ClaimParts<'_> {
        ClaimParts {
            says: &self.says,
            of: SystemAtPlace::anywhere(&self.of),
            over: self.over.as_deref().map(SystemAtPlace::anywhere),
            expect: self.expect,
            reason: self.reason.as_deref(),
        }
    }

    fn figure(&self) -> RackedFigure {
        let (class, phase, part) = (&self.class, self.phase, self.during.words());
        RackedFigure {
            tail: format!("{class}, phase {phase}, {part}"),
        }
    }

    fn live(&self, run: &RackedRun) -> Option<f64> {
        self.p99_ms(&run.live)
    }

    fn simulated(&self, run: &RackedRun) -> Option<f64> {
        self.p99_ms(&run.simulated)
    }
}
