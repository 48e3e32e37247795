//! A figure of a paper about hosts whose applications trade cores, measured on this machine. A real client loads each system in turn: the
//! daemon, a server of kthreads and an unmodified batch program. Beside it stand two simulations: a host with as many cores as this one, and
//! the paper's host.
//!
//! It is a file of `experiments/hosted/` and no part of `all`, since the result depends on the machine. Requests take ten times as long as in
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
pub use claim::{HostedClaim, HostedClaimFigure};
pub use experiment::{HostedExperiment, HostedPlace, HostedSetup, HostedStep, HostedSystem};
pub use measure::{HostedError, HostedSettings};
pub use result::{HostedPoint, HostedReproduction};
pub use run::{HostedFigure, HostedFigures, HostedRun};

/// Runs the measurement. On the calling thread, `progress` gets the finished runs, all runs, and the next run's system.
///
/// # Errors
/// A process, the client or a simulation fails.
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
