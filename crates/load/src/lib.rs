//! Open-loop load generator.
//!
//! A [`Load`] sends the requests of a workload to a UDP server that speaks the [wire
//! header](headway_net::header). It sends them at the workload's times, whether or not earlier ones were
//! answered. Latency counts from the *intended* send time, so a server that stalls the client cannot hide
//! requests ("coordinated omission", Tene 2013; also Perséphone §5.1, which sends open loop). The latency
//! from the actual send is recorded too: the difference is the client's own delay.
//!
//! The client measures itself, too. Every request sent is either answered or lost; late requests,
//! duplicate replies and unmatched replies are counted. A report lists the flaws of a run that measured
//! the client rather than the server ([`LoadReport::flaws`]).
//!
//! Replies are timed by the kernel as they arrive (`SO_TIMESTAMPNS`) where it can, so a client that
//! shares its cores with the server does not add the time it waited for one.
//!
//! ```no_run
//! use std::ops::ControlFlow;
//! use headway_load::{Extent, Load};
//! use headway_workload::{Offered, Workload};
//!
//! let workload = Workload::resolve("high-bimodal")?;
//! let target = "127.0.0.1:4000".parse()?;
//! let load = Load::new(target, workload, Offered::Rate(5_000.0), Extent::Duration { ns: 2_000_000_000 });
//! let report = load.run(|_| ControlFlow::Continue(()))?;
//! println!("p99 {} µs", report.run.overall.latency_us.p99);
//! for flaw in &report.flaws {
//!     println!("not valid: {flaw}");
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backlog;
mod client;
mod error;
mod flaw;
mod ledger;
mod load;
mod moment;
mod plan;
mod port;
mod receiver;
mod report;
mod run;
mod sender;
mod socket;
#[cfg(test)]
mod world;

pub use error::LoadError;
pub use flaw::Flaw;
pub use load::{Body, Extent, Load, ReplySource, ServiceTime, Threads};
pub use report::{Answered, LoadReport, ReceiveClock, Statuses};
pub use run::Progress;
pub use sender::MAX_BODY_BYTES;
