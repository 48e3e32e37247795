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
mod show;

pub use batch::BatchError;
pub use claim::{HostedClaim, HostedClaimFigure};
pub use experiment::{HostedExperiment, HostedPlace, HostedSetup, HostedStep, HostedSystem};
pub use measure::HostedError;
pub use result::{HostedDetails, HostedPoint};
pub use run::{HostedFigure, HostedFigures, HostedRun};

use std::ops::ControlFlow;

use crate::measured::{
    MeasuredExperiment as _, MeasuredKind, MeasuredReproduction, MeasuredSettings, RoundsExtent,
};

impl MeasuredKind for HostedExperiment {
    type Details = HostedDetails;
    type Point = HostedPoint;

    fn systems(&self) -> Vec<(String, String)> {
        let systems = self.system.iter();
        systems
            .map(|system| (system.name.clone(), system.policy.clone()))
            .collect()
    }

    /// All applications share them.
    fn system_cores(&self) -> Vec<String> {
        vec![self.host.cores.to_string(); self.system.len()]
    }

    fn points(&self, _: &RoundsExtent, runs: &[HostedRun]) -> Vec<HostedPoint> {
        let places = self.place.iter();
        let pairs = places.flat_map(|place| self.system.iter().map(move |it| (place, it)));
        pairs
            .map(|(place, system)| HostedPoint::new(&system.name, &place.name, runs))
            .collect()
    }
}

/// Runs the measurement. On the calling thread, `progress` gets the finished runs, all runs, and the next run's system, and says whether it goes on: if not, the
/// result is of the rounds that were complete, `None` without one.
///
/// # Errors
/// A process, the client or a simulation fails.
pub fn measure(
    experiment: &HostedExperiment,
    settings: &MeasuredSettings,
    progress: impl FnMut(usize, usize, &str) -> ControlFlow<()>,
) -> Result<Option<MeasuredReproduction<HostedExperiment>>, HostedError> {
    let session = measure::HostedSession::new(experiment, settings)?;
    let Some(measured) = session.measure(progress)? else {
        return Ok(None);
    };
    let is_whole = measured.rounds == experiment.extent(settings.fast).rounds;
    let papers = is_whole.then(|| session.simulate_papers_host());
    let papers = papers.transpose()?.flatten();
    let details = HostedDetails {
        processors: std::thread::available_parallelism().map_or(1, usize::from),
        cores: experiment.host.cores,
        papers,
    };
    Ok(Some(MeasuredReproduction::new(
        experiment, settings, details, measured,
    )))
}
