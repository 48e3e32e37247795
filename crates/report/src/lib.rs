//! Histograms, slowdown, SLOs, confidence intervals, and the JSON, CSV, table and HTML they are shown in.
//!
//! A run is measured by a [`Recorder`] and becomes a [`Run`], the machine-readable result that
//! everything else here reads: [`Slo`]s are checked against it, [`stats`] compares several, and
//! [`Table`], [`csv`], [`html`] and [`hlog`] show it.
//!
//! Nothing here knows of policies, workloads or servers: names and parameters arrive as text.

pub mod csv;
pub mod format;
pub mod hlog;
pub mod html;
pub mod schedule;
pub mod slo;
pub mod stats;
pub mod table;

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
    BenchReport, Capacity, CapacityReport, ClassResult, Delivery, LOST_FRACTION_MAX, Noise,
    Overall, Reservation, Run, RunExtras, RunLevel, RunMeta, Summary,
};
pub use schedule::Schedule;
pub use slo::{Loss, Slo, SloError, Verdict, Violation};
pub use table::Table;
