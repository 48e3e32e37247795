//! A figure of a paper about racks, measured on this machine: a real client loads real servers behind the real switch, each system in turn.
//! Beside it stands the simulation of the same rack.
//!
//! It is a file of `experiments/racked/` and no part of `all`, since the result depends on the machine. The servers sleep for their requests'
//! service times, so that a rack fits on few cores; packets, queues, switch, control plane and agents are real. All times are a hundred times
//! those of the papers, since a sleep ends a tenth of a millisecond late.

mod claim;
mod experiment;
mod measure;
mod processes;
mod result;
mod run;
pub mod show;

pub use claim::{RackedClaim, RackedFigure};
pub use experiment::{RackedExperiment, RackedSetup, RackedSystem};
pub use measure::{RackedError, RackedSettings};
pub use result::{RackedPoint, RackedReproduction};
pub use run::{PhasePart, RackedRun, RackedTail};

/// Runs the measurement. On the calling thread, `progress` gets the finished runs, all runs, and the next run's system.
///
/// # Errors
/// A process of the rack, the client or the simulation fails.
pub fn measure(
    experiment: &RackedExperiment,
    settings: &RackedSettings,
    progress: impl FnMut(usize, usize, &str),
) -> Result<RackedReproduction, RackedError> {
    let runs = measure::RackedSession::new(experiment, settings)?.measure(progress)?;
    Ok(RackedReproduction::new(experiment, settings, runs))
}
