//! A figure of a paper about racks, measured on this machine: real servers behind the real switch, each system in turn, under the load of a
//! real client, and the simulation of the same rack beside it.
//!
//! It is a file of `experiments/racked/` and no part of `all`: what comes of it depends on the machine. The servers sleep for their requests'
//! service times, so that a rack fits on few cores; packets, queues, switch, control plane and agents are real. Everything takes a hundred
//! times as long as in the papers, since a sleep is a tenth of a millisecond late.

mod claim;
mod experiment;
mod measure;
mod processes;
mod result;
mod run;
pub mod show;

pub use claim::{RackedClaim, RackedJudged};
pub use experiment::{RACKED_NAMES, RackedExperiment, RackedExtent, RackedSetup, RackedSystem};
pub use measure::{RackedError, RackedSettings};
pub use result::{RackedPoint, RackedReproduction};
pub use run::{During, RackedRun, RackedTail};

/// Measures it. `progress` hears, on the calling thread, how many runs are done of how many, and of whom the next one is.
///
/// # Errors
/// A process of the rack cannot be run, or the client cannot.
pub fn measure(
    experiment: &RackedExperiment,
    settings: &RackedSettings,
    progress: impl FnMut(usize, usize, &str),
) -> Result<RackedReproduction, RackedError> {
    let runs = measure::RackedSession::new(experiment, settings)?.measure(progress)?;
    Ok(RackedReproduction::new(experiment, settings, runs))
}
