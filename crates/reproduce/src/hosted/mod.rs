//! A figure of a paper about hosts whose applications trade cores, measured on this machine: the daemon, a server of kthreads and an unmodified
//! batch program, each system in turn, under the load of a real client. Beside it stand the simulation of a host of as many cores, and that of
//! the paper's host.
//!
//! It is a file of `experiments/hosted/` and no part of `all`: what comes of it depends on the machine. Requests take ten times as long as in
//! the papers, since the kernel's network stack carries them.

mod batch;
mod claim;
mod experiment;
mod measure;
mod processes;
mod result;
mod run;
pub mod show;

pub use batch::BatchError;
pub use claim::{HostedClaim, HostedJudged};
pub use experiment::{
    HOSTED_NAMES, HostedExperiment, HostedExtent, HostedPlace, HostedSetup, HostedStep,
    HostedSystem,
};
pub use measure::{HostedError, HostedSettings};
pub use result::{HostedPoint, HostedReproduction};
pub use run::{HostedFigure, HostedFigures, HostedRun};

/// Measures it. `progress` hears, on the calling thread, how many runs are done of how many, and of whom the next one is.
///
/// # Errors
/// A process cannot be run, the client cannot, or a simulation.
pub fn measure(
    experiment: &HostedExperiment,
    settings: &HostedSettings,
    progress: impl FnMut(usize, usize, &str),
) -> Result<HostedReproduction, HostedError> {
    let session = measure::HostedSession::new(experiment, settings)?;
    let runs = session.measure(progress)?;
    let papers = session.simulate_papers_host()?;
    Ok(HostedReproduction::new(experiment, settings, runs, papers))
}
