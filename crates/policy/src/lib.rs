//! Scheduling policies as pure state machines: events and the time go in, decisions come out.
//!
//! A policy has no clock, thread, socket, lock, log or allocation after construction. An
//! *engine* (the simulator, the live server) owns all of those and decides nothing, so that the
//! same compiled policy runs in virtual time and on real cores: what was simulated is what runs.
//!
//! Policies decide on three levels, each a module that does not see the others:
//!
//! - [`server`]: which waiting request of one server runs next, on which worker, for how long;
//! - [`rack`]: which server of a rack gets a request;
//! - [`host`]: which of several applications of a host has which core.
//!
//! A [`PolicySpec`] names a policy of whichever level, and [`spec`] reads its parameters.
//!
//! ```
//! use headway_policy::server::{role::{Dispatch, Ingress}, systems};
//! use headway_policy::{ClassId, Job, JobId, Shape};
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

mod class;
pub mod host;
pub mod rack;
mod registry;
mod rng;
pub mod server;
mod set;
pub mod spec;

pub use class::{ClassHint, ClassId};
pub use registry::{Level, Policy, PolicySpec};
pub use rng::Rng;
pub use server::{
    Central, CentralParts, Charge, Group, Job, JobId, Jobs, MAX_CLASSES, MAX_WORKERS, Order, Plan,
    PreemptionCosts, Resume, Shape, WorkerId, Working,
};
pub use set::BitSet;
