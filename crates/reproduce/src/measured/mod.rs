//! What the figures that are measured on this machine share: files, rounds, claims, verdicts, results and reports.
//!
//! A kind of figure that is measured and simulated adds what is its own:
//!
//! | part | by |
//! |---|---|
//! | the fields of its files, and their checks | `experiment_file!`, [`MeasuredExperiment`] |
//! | its runs | [`MeasuredRun`] |
//! | its claims, and the figures that they are about | [`MeasuredClaim`], [`ClaimedFigure`] |
//! | the details and the medians of its results | [`MeasuredKind`] |
//! | the tables and notes of its reports | [`ReportedKind`] |
//!
//! [`live`](crate::live) figures have no simulation, and claims about rates that may be bounds. They share files and reports, and judge claims by
//! a rule of their own.

pub(crate) mod claim;
pub(crate) mod client;
pub(crate) mod expectation;
pub(crate) mod experiment;
mod extent;
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
pub use report::{FigureReport, MeasuredResult, ReportTable, listing};
pub use result::{FigureOf, MeasuredKind, MeasuredReproduction, MeasuredSettings, RunOf};
pub use rounds::Lag;
pub use show::ReportedKind;
pub use verdict::MeasuredVerdict;
