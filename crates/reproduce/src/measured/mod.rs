//! What the figures that are measured on this machine share: files, claims and verdicts, and the rounds of their runs.

pub(crate) mod claim;
pub(crate) mod expectation;
pub(crate) mod experiment;
mod extent;
mod paper_figure;
pub(crate) mod rounds;
mod verdict;

pub use claim::{
    ClaimParts, ClaimedFigure, MeasuredClaim, MeasuredJudged, MeasuredRun, SystemAtPlace,
};
pub use expectation::Expectation;
pub use experiment::{BuiltInFile, ExperimentFields, MeasuredExperiment};
pub use extent::{LoadsExtent, MeasuredExtent, RoundsExtent};
pub use paper_figure::PaperFigure;
pub use rounds::Lag;
pub use verdict::MeasuredVerdict;
