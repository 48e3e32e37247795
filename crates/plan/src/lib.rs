//! The planner: it finds the policy, parameters and number of workers that meet an SLO.
//!
//! Candidates come from the policies and their [grids](headway_policy::server::systems::Grid) of parameters. They are compared by
//! simulation under common random numbers: one seed gives all of them the same arrivals, classes and service times, so
//! all differences are the policies' own. Successive halving (Jamieson & Talwalkar, AISTATS 2016) spends most of the work
//! on the few candidates that may be best. The last round uses new seeds, independent of the choice of its candidates.
//! Its paired replications give confidence intervals that hold simultaneously. Candidates whose intervals include
//! equality are reported as tied.
//!
//! Where no candidate meets the SLO, [bounds](impossible) that hold for every policy tell whether any policy could.
//!
//! ```
//! use headway_plan::{Question, plan};
//! use headway_report::PlanVerdict;
//! use headway_sim::Offered;
//! use headway_workload::Workload;
//!
//! let workload = Workload::named("high-bimodal").expect("a workload of the literature");
//! let slo = "class.short.slowdown.p99<=20".parse()?;
//! let question = Question {
//!     requests: 20_000,
//!     replications: 2,
//!     ..Question::new(workload, slo, 4, Offered::Load { load: 0.5, workers: 4 })
//! };
//! let report = plan(&question, |_| {})?;
//! assert_eq!(report.verdict, PlanVerdict::Met);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod arrangement;
mod bounds;
mod candidates;
mod compare;
mod late;
mod pooled;
mod pooling;
mod question;
mod ranked;
mod search;
mod servers;
mod situations;
mod trial;

pub use answer::plan;
pub use arrangement::PlannedServer;
pub use bounds::impossible;
pub use candidates::{Candidate, candidates, candidates_of};
pub use headway_sim::rack::{RackSlo, score_candidates};
pub use late::{Due, least_late};
pub use pooled::{fcfs_max_ns, srpt_mean_ns};
pub use question::{PlanError, PlanProgress, Question};
