//! The figures and tables of the papers, run again and judged against what was printed.
//!
//! Each is a file in `experiments/`. The file has the differences of testbed and model, the systems, the
//! workload, the [measurements](kinds) and the [claims](Claim). A claim is a paper's figure with the rule that
//! computes its verdict. Claims and tolerances are written down before the first run; nothing here tunes a
//! model.
//!
//! ```
//! use headway_reproduce::{ExperimentFile, RunLength, run};
//!
//! let experiment = ExperimentFile::named("persephone-fig1").expect("it is built in");
//! let results = run(&[experiment], RunLength::Fast, 2, None, |_, _| {})?;
//! for judged in &results[0].claims {
//!     println!("{}: {}", judged.says, judged.verdict);
//! }
//! # Ok::<(), headway_reproduce::ReproduceError>(())
//! ```
//!
//! Four more folders have the experiments that are measured on this machine: in `experiments/live/`, a client loads a real server
//! ([`live`]); in `experiments/replayed/`, a server gets replayed arrivals without a network ([`replayed`]); in `experiments/racked/`, a
//! switch spreads requests over servers ([`racked`]); in `experiments/hosted/`, a server and a batch program share cores ([`hosted`]).
//! [`measured`] has what they share. The feature `live`, on by default, has all of these; without it nothing of the live engines is built.
//!
//! A new kind of measurement is one file in [`kinds`]: a struct that is read from the file's
//! `[[measure]]` table, and [`ExperimentKind::tasks`], which cuts the work into independent tasks.

mod catalogue;
mod claim;
mod compared;
mod error;
mod experiment;
mod figures;
#[cfg(feature = "live")]
pub mod hosted;
mod judge;
pub mod kinds;
mod length;
#[cfg(feature = "live")]
pub mod live;
#[cfg(feature = "live")]
pub mod measured;
mod named;
mod observable;
mod paper_figure;
#[cfg(feature = "live")]
mod process;
#[cfg(feature = "live")]
pub mod racked;
#[cfg(feature = "live")]
pub mod replayed;
mod result;
mod run;
pub mod show;
mod text;

pub use catalogue::NAMES;
pub use claim::{Aggregate, Claim, ClaimVerdict, Expected, Judged, Sign};
pub use compared::{ComparedSystem, ExperimentServer};
pub use error::ReproduceError;
pub use experiment::ExperimentFile;
pub use figures::{Datum, Figures};
pub use kinds::{ExperimentKind, Measurement, Setting, Task};
pub use length::RunLength;
pub use named::{MEASURED_NAMES, is_experiment_file, unknown_experiment};
pub use observable::Observable;
pub use paper_figure::PaperFigure;
#[cfg(feature = "live")]
pub use process::ProcessError;
pub use result::{Reproduction, SystemOnCores};
pub use run::run;
