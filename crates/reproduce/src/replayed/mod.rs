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
mod show;

pub use claim::{ReplayedClaim, ReplayedFigure};
pub use experiment::{ReplayedExperiment, ReplayedSetup, ReplayedSystem};
pub use figure::RunFigure;
pub use measure::ReplayedError;
pub use result::{ReplayedDetails, ReplayedPoint};
pub use run::{ReplayedFigures, ReplayedRun};

use std::ops::ControlFlow;

use headway_report::format;
use headway_sim::MachineCosts;

use crate::measured::{
    LoadsExtent, MeasuredExperiment as _, MeasuredKind, MeasuredReproduction, MeasuredSettings,
};

impl MeasuredKind for ReplayedExperiment {
    type Details = ReplayedDetails;
    type Point = ReplayedPoint;

    fn systems(&self) -> Vec<(String, String)> {
        let systems = self.system.iter();
        systems
            .map(|system| (system.name.clone(), system.how()))
            .collect()
    }

    fn system_cores(&self) -> Vec<String> {
        let workers = self.replay.workers;
        let cores = self.system.iter().map(|system| system.cores(workers));
        cores
            .map(|cores| format::cores(cores.workers, cores.all(), cores.serving()))
            .collect()
    }

    fn points(&self, extent: &LoadsExtent, runs: &[ReplayedRun]) -> Vec<ReplayedPoint> {
        let systems = self.system.iter();
        let pairs = systems.flat_map(|system| extent.loads.iter().map(move |load| (system, load)));
        pairs
            .map(|(system, &load)| ReplayedPoint::new(&system.name, load, runs))
            .collect()
    }
}

/// Runs the measurement. The simulation has these costs of this machine, or measures them first. On the calling thread, `progress` gets the finished steps, all steps, and the next step's name, and says whether it goes on: if not, the
/// result is of the rounds that were complete, `None` without one.
///
/// # Errors
/// A system fails, the machine has too few cores, or the costs lack a system's layout.
pub fn measure(
    experiment: &ReplayedExperiment,
    settings: &MeasuredSettings,
    costs: Option<&MachineCosts>,
    progress: impl FnMut(usize, usize, &str) -> ControlFlow<()>,
) -> Result<Option<MeasuredReproduction<ReplayedExperiment>>, ReplayedError> {
    let session = measure::ReplayedSession::new(experiment, settings, costs)?;
    let Some(measured) = session.measure(progress)? else {
        return Ok(None);
    };
    let details = ReplayedDetails {
        workload: experiment.replay.workload.clone(),
        workers: experiment.replay.workers,
        run_ms: experiment.extent(settings.fast).run_ms,
    };
    Ok(Some(MeasuredReproduction::new(
        experiment, settings, details, measured,
    )))
}
