//! One server: which waiting request runs next, on which worker, for how long.
//!
//! Every system of the literature is three single-owner roles ([`role`]): an [`Ingress`](role::Ingress) that says which
//! waiting request goes to which worker, a [`Local`](role::Local) on each worker that says what to run next, and a
//! [`Monitor`](role::Monitor) that says whom to interrupt.
//!
//! | layer | modules |
//! |---|---|
//! | words | [`Job`], [`Shape`], [`Plan`], [`PreemptionCosts`] |
//! | the contract | [`role`] |
//! | rules that parts share | [`reservation`], [`stability`], [`lengths`], [`sayings`] |
//! | parts, one file each | [`disciplines`], [`placements`], [`controls`], [`locals`], [`monitors`] |
//! | a dispatcher of parts | [`Central`], [`Working`] |
//! | the systems, like a table of the literature | [`systems`], [`fluid`] |
//! | the queues of an engine in which one owner has them all | [`queue_lists`] |
//! | a change of rules while a server serves | [`change`] |
//! | what a pool takes in before its policy hears of it | [`admission_control`] |
//!
//! Imports point up in this table, never down: `tests/purity.rs` holds the list.

pub mod admission_control;
mod begun_limit;
mod bound;
mod central;
pub mod change;
pub mod controls;
pub mod disciplines;
pub mod fluid;
mod job;
pub mod lengths;
pub mod locals;
pub mod monitors;
pub mod placements;
mod plan;
mod preemption_costs;
pub mod queue_lists;
pub mod reservation;
pub mod role;
pub mod sayings;
mod shape;
pub mod stability;
pub mod systems;
mod working;

pub use begun_limit::BegunLimit;
pub use central::{Central, CentralParts};
pub use job::{Job, JobId, Jobs, WorkerId};
pub use plan::{Group, Order, Plan};
pub use preemption_costs::{Charge, PreemptionCosts};
pub use shape::{MAX_CLASSES, MAX_WORKERS, Resume, Shape};
pub use working::Working;
