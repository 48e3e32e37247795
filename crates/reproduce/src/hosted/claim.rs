//! The paper's claims about the systems.

use serde::{Deserialize, Serialize};

use super::run::{HostedFigure, HostedFigures, HostedRun};
use crate::measured::Expectation;
use crate::measured::claim::{ClaimParts, ClaimedFigure, MeasuredClaim, SystemAtPlace};

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

/// The figure that a claim is about.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HostedClaimFigure {
    /// The kind of figure.
    pub figure: HostedFigure,
}

impl ClaimedFigure for HostedClaimFigure {
    const COLUMNS: &'static [&'static str] = &["figure"];

    fn cells(&self) -> Vec<String> {
        vec![self.figure.words().into()]
    }
}

impl HostedClaim {
    fn value(&self, figures: &HostedFigures) -> Option<f64> {
        let value = figures.get(self.figure);
        value.is_finite().then_some(value)
    }
}

impl MeasuredClaim for HostedClaim {
    type Run = HostedRun;
    type Figure = HostedClaimFigure;

    fn parts(&self) -> ClaimParts<'_> {
        let at = |system, place| SystemAtPlace {
            system,
            place: Some(place),
        };
        let (over, over_at) = (self.over.as_deref(), self.over_at.as_deref());
        let is_ratio = over.is_some() || over_at.is_some();
        let divisor = at(over.unwrap_or(&self.of), over_at.unwrap_or(&self.at));
        ClaimParts {
            says: &self.says,
            of: at(&self.of, &self.at),
            over: is_ratio.then_some(divisor),
            expect: self.expect,
            reason: self.reason.as_deref(),
        }
    }

    fn figure(&self) -> HostedClaimFigure {
        HostedClaimFigure {
            figure: self.figure,
        }
    }

    fn live(&self, run: &HostedRun) -> Option<f64> {
        self.value(&run.live)
    }

    fn simulated(&self, run: &HostedRun) -> Option<f64> {
        self.value(&run.simulated)
    }
}
