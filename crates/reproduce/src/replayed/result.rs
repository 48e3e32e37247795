//! The results of replayed arrivals: their workload, and the figures of each system at each load.

use serde::Serialize;

use super::figure::RunFigure;
use super::run::ReplayedRun;
use crate::measured::SystemAtPlace;
use crate::measured::claim::counted;
use crate::measured::rounds::median;

/// The replayed workload.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayedDetails {
    /// The workload.
    pub workload: String,
    /// Number of workers of each system.
    pub workers: usize,
    /// Time that requests arrived in a run, ms.
    pub run_ms: u64,
}

/// A system at a load: medians over the rounds that count.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayedPoint {
    /// The system's name.
    pub system: String,
    /// Offered load of the workers.
    pub load: f64,
    /// Number of rounds that count.
    pub rounds: usize,
    /// The fraction of the requests that the machine left undisturbed.
    pub untouched_fraction: f64,
    /// The figures, in the order of [`RunFigure::SHOWN`]: live and simulated.
    pub figures: Vec<(RunFigure, f64, f64)>,
}

impl ReplayedPoint {
    pub(super) fn new(system: &str, load: f64, runs: &[ReplayedRun]) -> Self {
        let counted: Vec<&ReplayedRun> = counted(runs, SystemAtPlace::anywhere(system))
            .filter(|run| run.load == load)
            .collect();
        let figures = RunFigure::SHOWN.map(|figure: RunFigure| {
            let live = median(counted.iter().map(|run| figure.live(run)));
            let simulated = median(counted.iter().map(|run| figure.simulated(run)));
            (figure, live, simulated)
        });
        Self {
            system: system.into(),
            load,
            rounds: counted.len(),
            untouched_fraction: median(counted.iter().map(|run| run.untouched_fraction)),
            figures: figures.to_vec(),
        }
    }
}
