//! What the figures that are measured on this machine share: files, rounds, claims, verdicts, results and reports.

pub(crate) mod claim;
pub(crate) mod client;
pub(crate) mod expectation;
pub(crate) mod experiment;
mod extent;
mod paper_figure;
pub(crate) mod report;
pub(crate) mod result;
pub(crate) mod rounds;
pub(crate) mod show;
mod verdict;

pub use claim::{
    ClaimParts, ClaimedFigure, MeasuredClaim, MeasuredJudged, MeasuredRun, SystemAtPlace,
};
pub use client::ClientCounts;
pub use expectation::Expectation;
pub use experiment::{BuiltInFile, ExperimentFields, MeasuredExperiment};
pub use extent::{LoadsExtent, MeasuredExtent, RoundsExtent};
pub use paper_figure::PaperFigure;
pub use report::{FigureReport, MeasuredResult, ReportTable, listing};
pub use result::{FigureOf, MeasuredKind, MeasuredReproduction, MeasuredSettings, RunOf};
pub use rounds::Lag;
pub use show::ReportedKind;
pub use verdict::MeasuredVerdict;
