//! The figures and tables of the papers, run again and judged against what was printed.
//!
//! Each is a file in `experiments/`: what the testbed had that the model has not, the systems, the
//! workload, what is [measured](kinds), and the paper's figures as [claims](Claim), each with the
//! rule that its verdict is computed by. Claims and tolerances are written down before anything
//! is run; nothing here tunes a model.
//!
//! ```
//! use headway_reproduce::{ExperimentFile, RunLength, run};
//!
//! let experiment = ExperimentFile::named("persephone-fig1").expect("it is built in");
//! let results = run(&[experiment], RunLength::Fast, 2, |_, _| {})?;
//! for judged in &results[0].claims {
//!     println!("{}: {}", judged.says, judged.verdict);
//! }
//! # Ok::<(), headway_reproduce::ReproduceError>(())
//! ```
//!
//! Figures that are measured on this machine are files of `experiments/live/`, where a server of its own runs under the load of a client
//! ([`live`]), of `experiments/replayed/`, where arrivals are replayed without a network ([`replayed`]), of
//! `experiments/racked/`, where a switch spreads them over servers ([`racked`]), and of `experiments/hosted/`, where a server and a batch
//! program share cores ([`hosted`]).
//!
//! A new way to measure is one file in [`kinds`]: a struct read from the file's `[[measure]]`
//! table, and [`ExperimentKind::tasks`] that cuts the work into pieces.

mod catalogue;
mod claim;
mod compared;
mod error;
mod expectation;
mod experiment;
mod figures;
pub mod hosted;
mod judge;
pub mod kinds;
mod length;
pub mod live;
mod observable;
pub mod racked;
pub mod replayed;
mod result;
mod run;
pub mod show;
mod text;
mod told;

pub use catalogue::NAMES;
pub use claim::{Aggregate, Claim, ClaimVerdict, Expected, Judged, Sign};
pub use compared::{ComparedSystem, ExperimentServer};
pub use error::ReproduceError;
pub use expectation::Expectation;
pub use experiment::ExperimentFile;
pub use figures::{Datum, Figures};
pub use kinds::{ExperimentKind, Measurement, Setting, Task};
pub use length::RunLength;
pub use observable::Observable;
pub use result::Reproduction;
pub use run::run;
pub use told::ProcessError;
