//! Questions to the simulator and the planner in words: what the command and the Python package ask alike.
//!
//! A [`SystemSetup`] says everything about a simulated system but its workload, policy and load. It is set by names and texts,
//! `("queue-limit", "5k")`, which are the command's flags and the package's arguments, so both have the same defaults, the same
//! figures and the same sentences for a mistake.
//!
//! ```
//! use headway_study::{SystemSetup, policy_of_servers, traffic};
//! use headway_workload::Workload;
//!
//! let mut setup = SystemSetup::default();
//! setup.set("requests", "20k")?;
//! let workload = Workload::named("high-bimodal").expect("a workload of the literature");
//! let offered = traffic::offered(&workload, Some(0.5), None, setup.load_cores(), 0.8)?;
//! let policy = policy_of_servers("darc,delta=3")?;
//! let outcome = setup.experiment(workload, policy, offered, 2_000_000)?.run()?;
//! assert_eq!(outcome.run.meta.requests, 20_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apps;
pub mod capacity;
mod costs_file;
pub mod figures;
pub mod host;
mod mistake;
pub mod parse;
pub mod planned;
mod policy;
pub mod registry;
mod setup_texts;
pub mod sweep;
mod system_setup;
pub mod traffic;

pub use apps::app;
pub use costs_file::{MeasuredCosts, read_costs};
pub use mistake::{Mistake, StudyError};
pub use policy::{any_policy, explain, explain_any_level, policy_of_servers, server_policy};
pub use system_setup::{SystemSetup, shown_window, workers_of};
