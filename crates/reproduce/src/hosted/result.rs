//! The results of a host: its size, and the figures of each system at each place.

use serde::Serialize;

use super::run::{HostedFigures, HostedRun};
use crate::Reproduction;
use crate::measured::SystemAtPlace;
use crate::measured::claim::counted;
use crate::measured::rounds::median;

/// The size of the measured host, and the simulation of the paper's.
#[derive(Clone, Debug, Serialize)]
pub struct HostedDetails {
    /// Processors of this machine.
    pub processors: usize,
    /// Cores that the allocator assigns.
    pub cores: usize,
    /// The simulation of the paper's own host.
    pub papers: Option<Reproduction>,
}

/// A system's figures at a place: medians over the rounds that count.
#[derive(Clone, Debug, Serialize)]
pub struct HostedPoint {
    /// The system's name.
    pub system: String,
    /// The place's name.
    pub place: String,
    /// Number of rounds that count.
    pub rounds: usize,
    /// The measured figures.
    pub live: HostedFigures,
    /// The simulated figures.
    pub simulated: HostedFigures,
}

impl HostedPoint {
    pub(super) fn new(system: &str, place: &str, runs: &[HostedRun]) -> Self {
        let at = SystemAtPlace {
            system,
            place: Some(place),
        };
        let counted: Vec<&HostedRun> = counted(runs, at).collect();
        let medians = |side: fn(&HostedRun) -> &HostedFigures| {
            let of = |figure: fn(&HostedFigures) -> f64| {
                median(counted.iter().map(|run| figure(side(run))))
            };
            HostedFigures {
                p999_us: of(|it| it.p999_us),
                worst_p999_us: of(|it| it.worst_p999_us),
                batch_cores: of(|it| it.batch_cores),
                efficiency: of(|it| it.efficiency),
                reallocations_per_s: of(|it| it.reallocations_per_s),
            }
        };
        Self {
            system: system.into(),
            place: place.into(),
            rounds: counted.len(),
            live: medians(|run| &run.live),
            simulated: medians(|run| &run.simulated),
        }
    }
}
