//! A host in virtual time: applications that share its cores.
//!
//! Each application is a [server](crate::server) with a policy of its own, fed by its own workload at a rate that
//! may change in steps, or a batch application that uses every core it gets. One worker of the server is one
//! kthread, present while the [allocator](headway_policy::host) gives it a core. A serial daemon carries out the
//! allocator's decisions, and moving a core takes time ([`HostCosts`]).
//!
//! ```
//! use headway_sim::host::{App, HostExperiment};
//! use headway_workload::Workload;
//!
//! let spin = Workload::named("exponential-10us").expect("a workload of the literature");
//! let host = HostExperiment::new(14, "shenango".parse()?)
//!     .app(App::server("spin", spin, 400_000.0).guaranteed(14))
//!     .app(App::batch("swaptions"))
//!     .duration_ms(50);
//! let outcome = host.run()?;
//! let (spin, batch) = (&outcome.apps[0], &outcome.apps[1]);
//! assert!(spin.efficiency > 0.7, "it gives back what it does not use");
//! assert!(batch.useful_cores > 7.0, "and the batch application has that");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod application;
mod arrivals;
mod bound;
mod check;
mod costs;
mod engine;
mod experiment;
pub mod figures;
mod outcome;
mod windows;

pub use bound::{IntervalBound, least_cores_in_theory, mmc_p_wait, optimal_interval_bound};
pub use costs::HostCosts;
pub use experiment::{App, AppWork, HostExperiment, RateStep};
pub use outcome::{AppOutcome, HostOutcome};
pub use windows::Window;
