#![doc = include_str!("../../../README.md")]
//! # The modules
//!
//! Each is a crate of its own, under its own name; a program that needs one of them alone can depend on
//! `headway-policy`, `headway-sim` and so on.

/// Scheduling policies as pure state machines: no I/O, clock, thread or allocation.
pub use headway_policy as policy;

/// Request classes, service times, arrivals, traces, and the workloads of the papers by name.
pub use headway_workload as workload;

/// Histograms, slowdown, SLOs, confidence intervals; JSON, CSV, tables and HTML.
pub use headway_report as report;

/// Virtual time: the engine that drives the policies against a cost model.
pub use headway_sim as sim;

/// The live server: rings, dispatcher, workers.
pub use headway_runtime as runtime;

/// Fibers, what makes them yield, and sections in which they do not.
pub use headway_fiber as fiber;

/// Datapaths behind one trait, the wire header, the request classifiers.
pub use headway_net as net;

/// The open-loop load generator.
pub use headway_load as load;

/// This machine: its clock, its cores, its noise.
pub use headway_machine as machine;

/// A probe placed by hand, and one that looks in every so many rounds of a loop.
pub use headway_fiber::{CheckpointEvery, checkpoint};

/// Probes in a function's loops, where no compiler pass can be loaded.
pub use headway_macros::preemptible;

/// What a program that serves, loads or simulates names most.
pub mod prelude {
    pub use headway_fiber::{NoPreempt, checkpoint};
    pub use headway_load::{Extent, Load, LoadReport};
    pub use headway_macros::preemptible;
    pub use headway_net::classify::{AnyClassifier, Classifier};
    pub use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
    pub use headway_report::{Run, Slo};
    pub use headway_runtime::{Call, Idle, Layout, Server, Service, Spin, Stats, Stopper};
    pub use headway_sim::{CapacitySearch, Costs, Experiment, Outcome};
    pub use headway_workload::{Offered, Workload};
}
