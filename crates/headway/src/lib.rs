//! Headway keeps microsecond requests from waiting behind millisecond ones: a server library, the scheduling policies of the literature as pure state
//! machines, a simulator that runs the same policy code in virtual time, and a load generator.
//!
//! # A server
//!
//! A service answers requests of several classes; the policy decides which request runs where and when.
//!
//! ```
//! use headway::prelude::*;
//! use std::time::Duration;
//!
//! let server = Server::builder()
//!     .policy("darc")
//!     .class("ping", Duration::from_micros(1)) // type 0 of the wire header
//!     .class("scan", Duration::from_micros(100)) // type 1
//!     .workers(2)
//!     .handler(|call| match call.payload() {
//!         b"ping" => call.reply(b"pong"),
//!         b"scan" => call.reply(&[1; 1000]),
//!         _ => call.bad_request(),
//!     })
//!     .listen_udp("127.0.0.1:0".parse()?)
//!     .start()?;
//! println!("listening on {:?}", server.local_addr());
//! server.shutdown(Duration::from_secs(1))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`Builder`](prelude::Builder) chooses policy, classes, workers, buffers, cores; [`FromConfig`](prelude::FromConfig) reads them from
//!   the file that `headway plan --config-out` writes.
//! - [`Service`](prelude::Service) is what a program implements; [`Call`](prelude::Call) is one request and the place for its reply.
//! - A policy that interrupts long requests (`concord`, `shinjuku-sq`, `tiny-quanta`) does so where their code has a probe:
//!   [`checkpoint()`](checkpoint) by hand, the attribute [`preemptible`](macro@preemptible), or a build by `cargo headway build`.
//!   [`NoPreempt`](prelude::NoPreempt) opens a section without interruptions. The server names the class of a handler that meets no probe.
//!
//! # The same policy, simulated
//!
#![cfg_attr(feature = "simulator", doc = "```")]
#![cfg_attr(not(feature = "simulator"), doc = "```ignore")]
//! use headway::prelude::*;
//!
//! let experiment = Experiment::new(Workload::resolve("tpcc")?, "darc".parse()?)
//!     .workers(14)
//!     .load(0.7)
//!     .requests(200_000);
//! let outcome = experiment.run()?;
//! assert!(outcome.run.class("Payment").expect("TPC-C has payments").slowdown.p999 < 10.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The modules
//!
//! | module | what it has | begin with |
//! |---|---|---|
//! | [`runtime`] | the live server | [`runtime::Server`], [`runtime::Service`] |
//! | [`config`] | the settings file of a server | [`config::FromConfig`] |
//! | [`fiber`] | fibers, probes, sections without interruptions | [`fiber::NoPreempt`], [`fiber::FiberMutex`] |
//! | [`net`] | datapaths, the wire header, classifiers | [`net::header::Header`], [`net::classify::AnyClassifier`] |
//! | [`policy`] | the policies | [`policy::server::systems`] |
//! | [`workload`] | what arrives | [`workload::Workload`] |
//! | [`sim`] | virtual time | [`sim::Experiment`] |
//! | [`load`] | the open-loop client | [`load::Load`] |
//! | [`report`] | results | [`report::Run`], [`report::Slo`] |
//! | [`machine`] | clock, cores, noise | [`machine::Clock`] |
//!
//! Each but `config` is a crate of its own, under its own name; a program that needs one of them alone can depend on `headway-policy`,
//! `headway-sim` and so on.
//!
//! # Features
//!
//! All are on by default. A program that only serves, and chooses everything by the builder, builds faster with `default-features = false`.
//!
//! | feature | what it adds |
//! |---|---|
//! | `ops` | what `headway ctl`, `headway top` and Prometheus ask of a running server: `Builder::control`, `Builder::metrics`, `Server::collector`; and `Server::run`, which heeds signals |
//! | `settings` | `config`, and `Builder::from_config` |
//! | `simulator` | `sim`, `load`, `report`, and their names in the prelude |

/// Scheduling policies as pure state machines: no I/O, clock, thread or allocation.
#[doc(inline)]
pub use headway_policy as policy;

/// Request classes, service times, arrivals, traces, and the workloads of the papers by name.
#[cfg(any(feature = "settings", feature = "simulator"))]
#[doc(inline)]
pub use headway_workload as workload;

/// Histograms, slowdown, SLOs, confidence intervals; JSON, CSV, tables and HTML.
#[cfg(feature = "simulator")]
#[doc(inline)]
pub use headway_report as report;

/// Virtual time: the engine that drives the policies against a cost model.
#[cfg(feature = "simulator")]
#[doc(inline)]
pub use headway_sim as sim;

/// The live server: rings, dispatcher, workers.
#[doc(inline)]
pub use headway_runtime as runtime;

/// Fibers, what makes them yield, and sections in which they do not.
#[doc(inline)]
pub use headway_fiber as fiber;

/// Datapaths behind one trait, the wire header, the request classifiers.
#[doc(inline)]
pub use headway_net as net;

/// The open-loop load generator.
#[cfg(feature = "simulator")]
#[doc(inline)]
pub use headway_load as load;

/// This machine: its clock, its cores, its noise.
#[doc(inline)]
pub use headway_machine as machine;

#[cfg(feature = "settings")]
pub mod config;

/// A probe placed by hand, and one that looks in every so many rounds of a loop.
#[doc(inline)]
pub use headway_fiber::{CheckpointEvery, checkpoint, on_own_thread};

/// Probes in a function's loops, where no compiler pass can be loaded.
#[doc(inline)]
pub use headway_macros::preemptible;

/// Handlers that are long as a whole:
///
/// ```
/// use headway::prelude::*;
///
/// fn get(call: &mut Call<'_>) {
///     call.reply(b"value");
/// }
///
/// #[long]
/// fn scan(call: &mut Call<'_>) {
///     let mut sum = 0_u64;
///     for entry in 0..100_000_u64 {
///         checkpoint();
///         sum += entry;
///     }
///     call.reply(&sum.to_be_bytes());
/// }
///
/// # let _ = headway::runtime::Server::builder().by_feedback(true);
/// # fn runs(_: impl headway::runtime::Service) {}
/// # runs(
/// |call: &mut Call<'_>| if call.class().0 == 0 { get(call) } else { scan(call) }
/// # )
/// # ;
/// ```
#[doc(inline)]
pub use headway_macros::long;

/// What a program that serves, loads or simulates names most.
pub mod prelude {
    #[cfg(feature = "settings")]
    pub use crate::config::{ConfigError, FromConfig};
    pub use headway_fiber::{NoPreempt, checkpoint};
    #[cfg(feature = "simulator")]
    pub use headway_load::{Extent, Load, LoadReport};
    pub use headway_macros::{long, preemptible};
    pub use headway_net::classify::{AnyClassifier, Classifier};
    pub use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
    #[cfg(feature = "simulator")]
    pub use headway_report::{Run, Slo};
    pub use headway_runtime::{
        Builder, Call, DeclaredClass, Idle, Layout, Pin, Pull, PullService, Request, Requests,
        Server, Service, ShutdownError, Spin, StartError, Stats, Stopper, Tuner,
    };
    #[cfg(feature = "simulator")]
    pub use headway_sim::{CapacitySearch, Costs, Experiment, Outcome};
    #[cfg(feature = "simulator")]
    pub use headway_workload::{Offered, Workload};
}

/// The README's examples, which are compiled and run.
#[cfg(all(doctest, feature = "settings", feature = "simulator"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
