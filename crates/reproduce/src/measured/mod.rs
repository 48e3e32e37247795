//! What the figures that are measured on this machine share: claims and verdicts, and the rounds of their runs.

pub(crate) mod claim;
pub(crate) mod expectation;
pub(crate) mod rounds;
mod verdict;

pub use claim::{
    ClaimParts, ClaimedFigure, MeasuredClaim, MeasuredJudged, MeasuredRun, SystemAtPlace,
};
pub use expectation::Expectation;
pub use rounds::Lag;
pub use verdict::MeasuredVerdict;
