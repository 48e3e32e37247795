//! Scheduling policies as pure state machines: events and the time go in, decisions come out.
//!
//! A policy has no clock, thread, socket, lock, log or allocation after construction. An
//! *engine* (the simulator, the live server) owns all of those and decides nothing, so that the
//! same compiled policy runs in virtual time and on real cores: what was simulated is what runs.
//!
//! Every server-level system of the literature is three single-owner roles ([`role`]):
//! an [`Ingress`](role::Ingress) that says which waiting request goes to which worker, a
//! [`Local`](role::Local) on each worker that says what to run next, and a
//! [`Monitor`](role::Monitor) that says whom to interrupt. Roles are assembled from small parts,
//! one file each: [`disciplines`], [`placements`], [`controls`] and [`locals`]. [`systems`] reads like a table of
//! the literature. Which of several applications has which core is decided one level up, by [`host`].
//!
//! ```
//! use headway_policy::{role::{Dispatch, Ingress}, systems, ClassId, Job, JobId, Shape};
//!
//! let shape = Shape::new(14).class(5_700, 0.44).class(100_000, 0.56);
//! let mut darc = systems::darc(&shape, systems::DarcParams::default()).ingress;
//! let request = Job::new(JobId(0), ClassId(0), 0);
//! darc.arrived(0, request).expect("the queue has room");
//! let Some(Dispatch { worker, job }) = darc.poll(0) else { panic!("all workers are free") };
//! assert_eq!(job, JobId(0));
//! darc.finished(6_000, worker, job, 5_700);
//! ```
#![no_std]
#![forbid(unsafe_code)]
#![deny(
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc,
    clippy::alloc_instead_of_core
)]

extern crate alloc;

mod bound;
mod central;
pub mod change;
pub mod controls;
pub mod disciplines;
pub mod fluid;
pub mod host;
mod job;
pub mod lengths;
pub mod locals;
pub mod monitors;
pub mod placements;
mod plan;
mod preemption_costs;
pub mod rack;
mod registry;
pub mod reservation;
mod rng;
pub mod role;
mod set;
mod shape;
pub mod spec;
pub mod stability;
pub mod systems;
mod working;

pub use central::{Central, CentralParts};
pub use job::{ClassId, Job, JobId, Jobs, WorkerId};
pub use plan::{Group, Order, Plan};
pub use preemption_costs::{Charge, PreemptionCosts};
pub use registry::{Level, Policy, PolicySpec};
pub use rng::Rng;
pub use set::BitSet;
pub use shape::{ClassHint, MAX_CLASSES, MAX_WORKERS, Resume, Shape};
pub use working::Working;
