//! The results of runs: histograms, slowdown, SLOs, confidence intervals, and their output as JSON, CSV, tables and HTML.
//!
//! A [`Recorder`] measures a run. A [`Run`] is its machine-readable result: an [`Slo`] is checked
//! against it, [`stats`] compares several, and [`Table`], [`csv`], [`html`] and [`hlog`] show it.
//!
//! The crate depends on no policy, workload or server: their names and parameters arrive as text.

pub mod csv;
pub mod format;
pub mod hlog;
pub mod html;
pub mod schedule;
pub mod slo;
mod slo_seeds;
pub mod stats;
pub mod table;
mod table_fit;

mod histogram;
mod null;
mod plan;
mod rack;
mod recorder;
mod run;

#[cfg(test)]
mod testing;

pub use histogram::{Histogram, nearest_rank};
pub use plan::{
    CompareMethod, CoresNeeded, Impossible, PlanComparison, PlanEntry, PlanReport, PlanRound,
    PlanVerdict, Sensitivity, ShownBy, TrialResult, Validation,
};
pub use rack::{RackFigures, ServerFigures};
pub use recorder::{ClassMeta, ClassRecord, Recorder};
pub use run::{
    BenchReport, Capacity, CapacityReport, ClassResult, Delivery, LOST_FRACTION_MAX, LoadRange,
    Noise, Overall, Reservation, Run, RunExtras, RunLevel, RunMeta, Summary,
};
pub use schedule::Schedule;
pub use slo::{Loss, Slo, SloError, Verdict, Violation};
pub use slo_seeds::SloSeeds;
pub use table::Table;
