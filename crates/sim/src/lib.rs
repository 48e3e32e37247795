//! Virtual time: the engine that drives the policies against a cost model.
//!
//! The policies are those of [`headway_policy`], compiled once and run here as they run in the
//! live server; this crate owns the time, the queues and the costs, and decides nothing.
//! A run depends on its [`Experiment`] alone: the same experiment gives the same figures to the
//! bit, on every machine and however many threads share a sweep.
//!
//! ```
//! use headway_sim::{Experiment, Offered};
//! use headway_workload::Workload;
//!
//! let workload = Workload::named("high-bimodal").expect("a workload of the literature");
//! let experiment = Experiment::new(workload, "darc,profile=known".parse()?)
//!     .workers(14)
//!     .offered(Offered::Load { load: 0.8, workers: 14 })
//!     .requests(20_000);
//! let outcome = experiment.run()?;
//! let short = outcome.run.class("short").expect("the workload has it");
//! assert!(short.slowdown.p50 < 2.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod admission;
mod arrivals;
mod backlog;
mod capacity;
mod check;
mod costs;
mod engine;
mod error;
mod experiment;
mod flows;
mod fluid;
pub mod host;
mod machine_costs;
mod measures;
mod offered;
mod outcome;
mod parallel;
mod precision;
pub mod rack;
mod replicated;
mod run;
mod seeds;
pub mod server;
mod span;
mod standings;
mod tape;
mod timeline;

pub use capacity::{CapacityError, CapacitySearch, Found};
pub use check::check_slos;
pub use costs::Costs;
pub use error::SimError;
pub use experiment::{
    Classification, CoreChange, Experiment, Length, MAX_SERVERS, SystemCores, class_hints,
};
pub use flows::{DrawnFlows, Flows};
pub use headway_workload::Offered;
pub use machine_costs::{MachineCosts, ThreadLayout};
pub use outcome::{Outcome, PlanChange, expected_waste_of, reservation_of, value_json};
pub use parallel::{available_threads, in_parallel};
pub use precision::{CONFIDENCE, Figure, Precision};
pub use timeline::TimelineInterval;
