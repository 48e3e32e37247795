//! A figure of a paper measured on this machine without a network: the real server gets replayed arrivals, each system in turn. Beside it
//! stands the simulation of the same arrivals.
//!
//! It is a file of `experiments/replayed/` and no part of `all`, since the result depends on the machine. Systems, loads, rounds and claims
//! are fixed before the measurement. Live and simulated figures cover the same requests: those that the machine left undisturbed
//! ([`Comparison`](headway_bench::compare::Comparison)), selected without their latencies.

mod claim;
mod experiment;
mod figure;
mod measure;
mod result;
mod run;
pub mod show;

pub use claim::{ReplayedClaim, ReplayedFigure};
pub use experiment::{ReplayedExperiment, ReplayedSetup, ReplayedSystem};
pub use figure::RunFigure;
pub use measure::{ReplayedError, ReplayedSettings};
pub use result::{ReplayedPoint, ReplayedReproduction};
pub use run::{ReplayedFigures, ReplayedRun};

/// Runs the measurement. On the calling thread, `progress` gets the finished steps, all steps, and the next step's name.
///
/// # Errors
/// A system fails, or the machine has too few cores.
pub fn measure(
    experiment: &ReplayedExperiment,
    settings: &ReplayedSettings,
    progress: impl FnMut(usize, usize, &str),
) -> Result<ReplayedReproduction, ReplayedError> {
    let runs = measure::ReplayedSession::new(experiment, settings)?.measure(progress)?;
    Ok(ReplayedReproduction::new(experiment, settings, runs))
}
