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
mod show;

pub use claim::{RackedClaim, RackedFigure};
pub use experiment::{RackedExperiment, RackedSetup, RackedSystem};
pub use measure::RackedError;
pub use result::{RackedDetails, RackedPoint};
pub use run::{PhasePart, RackedRun, RackedTail};

use std::ops::ControlFlow;

use crate::measured::{MeasuredKind, MeasuredReproduction, MeasuredSettings, RoundsExtent};

impl MeasuredKind for RackedExperiment {
    type Details = RackedDetails;
    type Point = RackedPoint;

    fn systems(&self) -> Vec<(String, String)> {
        let systems = self.system.iter();
        systems
            .map(|system| (system.name.clone(), system.simulated()))
            .collect()
    }

    /// Beside those of the switch, which all have alike.
    fn system_cores(&self) -> Vec<String> {
        let cores = format!("{} × {}", self.rack.servers, self.rack.workers);
        vec![cores; self.system.len()]
    }

    fn points(&self, _: &RoundsExtent, runs: &[RackedRun]) -> Vec<RackedPoint> {
        let systems = self.system.iter();
        systems
            .map(|system| RackedPoint::new(&system.name, runs))
            .collect()
    }
}

/// Runs the measurement. On the calling thread, `progress` gets the finished runs, all runs, and the next run's system, and says whether it goes on: if not, the
/// result is of the rounds that were complete, `None` without one.
///
/// # Errors
/// A process of the rack, the client or the simulation fails.
pub fn measure(
    experiment: &RackedExperiment,
    settings: &MeasuredSettings,
    progress: impl FnMut(usize, usize, &str) -> ControlFlow<()>,
) -> Result<Option<MeasuredReproduction<RackedExperiment>>, RackedError> {
    let session = measure::RackedSession::new(experiment, settings)?;
    let Some(measured) = session.measure(progress)? else {
        return Ok(None);
    };
    let details = RackedDetails {
        servers: [experiment.rack.servers, experiment.rack.workers],
        load: experiment.rack.load,
    };
    Ok(Some(MeasuredReproduction::new(
        experiment, settings, details, measured,
    )))
}
