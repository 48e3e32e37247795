//! Request classes, service-time and arrival distributions, traces, and the workloads of the
//! literature by name.
//!
//! A [`Workload`] describes the requests: classes with their shares and service times, and the
//! arrival process. A [`Generator`] turns it into a sequence of [`Arrival`]s at a given rate or
//! load. The same seed gives the same sequence, bit for bit, on every machine: all transcendental
//! functions come from `libm`, never from the system's mathematics library.
//!
//! ```
//! use headway_workload::{Generator, Offered, Workload};
//!
//! let workload = Workload::resolve("extreme-bimodal")?;
//! assert_eq!(workload.mean_service_ns(), 2997.5); // 0.995 · 0.5 µs + 0.005 · 500 µs
//!
//! let offered = Offered::Load { load: 0.8, workers: 14 };
//! let mut arrivals = Generator::new(&workload, offered, 1);
//! let first = arrivals.next().unwrap();
//! assert_eq!(workload.class_names()[usize::from(first.class)], "short");
//! assert_eq!(first.service_ns, 500);
//! # Ok::<(), headway_workload::Error>(())
//! ```
//!
//! # Common random numbers
//!
//! Arrival times, classes, service times and flows are drawn from four independent streams. So
//! policies compared under one seed see the same requests, and a change of one part of the workload
//! (say, the arrival process) leaves the other parts unchanged.
//!
//! # Workload files
//!
//! [`Workload::from_toml_file`] reads, and [`Workload::to_toml`] writes:
//!
//! ```toml
//! name = "extreme-bimodal"
//! arrivals = { process = "poisson" }   # deterministic | gamma {cv} | trace {file}
//! [[class]]
//! name = "short"
//! share = 0.995
//! service = { dist = "constant", mean = "0.5us" }
//! [[class]]
//! name = "long"
//! share = 0.005
//! service = { dist = "exponential", mean = "500us" }
//! long = true                          # optional
//! slo = "latency.p99<=2ms"             # optional
//! ```
//!
//! | `dist` | keys |
//! |---|---|
//! | `constant`, `exponential` | `mean` |
//! | `lognormal` | `mean`, `cv` (standard deviation ÷ mean) |
//! | `uniform` | `min`, `max` |
//! | `pareto` | `min`, `max`, `alpha` (bounded; the mean is derived) |
//! | `empirical` | `file`, or `samples` and optionally `weights` |
//!
//! Durations carry a unit (see [`duration`]). Shares sum to 1 ± 0.002. `name` defaults to the file's
//! stem, `arrivals` to Poisson. A mix that changes over time is a list of `[[phase]]`, each with a
//! `duration` and `[[phase.class]]` tables; the last phase continues for ever. A class of a phase
//! takes missing keys from the top-level `[[class]]` of that name, and a phase without classes uses
//! the top-level ones.
//!
//! # Traces and sample files
//!
//! A trace is a CSV file with a header row that contains `time`, `class` and `service`, in any
//! order; see [`Trace`]. An empirical distribution is a file with one service time, or
//! `value,weight`, per line; see [`Empirical`]. In both a number without a unit is microseconds,
//! and relative paths start at the workload file's folder. A trace decides arrival times, classes,
//! shares and service times, so `[[class]]` tables beside it are optional: they fix the order of the
//! classes and add `long` and `slo`.
//!
//! [`log`] reads traces of memcached clusters and of Redis instead, and [`Trace::fit`] fits a
//! synthetic workload to a trace.

mod alias;
mod cdf;
mod check;
mod class_name;
mod csv_rows;
pub mod duration;
mod empirical;
mod error;
pub mod file;
pub mod fit;
mod generator;
pub mod log;
mod named;
mod names;
mod random;
pub mod rate;
mod replay;
mod resolve;
mod sampler;
mod section;
mod service;
mod superposed;
mod timestamp;
mod toml_read;
mod toml_write;
mod trace;
mod trace_options;
mod trace_writer;
mod workload;
mod ycsb;
mod ziggurat;

pub use empirical::Empirical;
pub use error::{Error, Located, Problem, UnknownWorkload};
pub use fit::Fitted;
pub use generator::{Arrival, Generator, Offered};
pub use names::NAMES;
pub use service::ServiceDistribution;
pub use trace::{Trace, TraceRecord};
pub use trace_options::TraceOptions;
pub use trace_writer::TraceWriter;
pub use workload::{Arrivals, Class, Phase, Workload};
