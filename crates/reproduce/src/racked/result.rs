//! The results of a rack: its size, and the tails of each system.

use serde::Serialize;

use super::run::{RackedRun, RackedTail, p99_ms};
use crate::measured::SystemAtPlace;
use crate::measured::claim::counted;
use crate::measured::rounds::median;

/// The size of the measured rack, and its load.
#[derive(Clone, Debug, Serialize)]
pub struct RackedDetails {
    /// Numbers of servers, and of workers of each.
    pub servers: [usize; 2],
    /// Offered load of all workers.
    pub load: f64,
}

/// A system's tails: medians over the rounds that count.
#[derive(Clone, Debug, Serialize)]
pub struct RackedPoint {
    /// The system's name.
    pub system: String,
    /// Number of rounds that count.
    pub rounds: usize,
    /// Measured tails, in the order of the phases.
    pub live: Vec<RackedTail>,
    /// Simulated tails, in the same order.
    pub simulated: Vec<RackedTail>,
}

impl RackedPoint {
    pub(super) fn new(system: &str, runs: &[RackedRun]) -> Self {
        let counted: Vec<&RackedRun> = counted(runs, SystemAtPlace::anywhere(system)).collect();
        let medians = |side: fn(&RackedRun) -> &[RackedTail]| {
            let of_first = counted.first().map_or(&[][..], |run| side(run));
            let of_all = |tail: &RackedTail| RackedTail {
                p99_ms: median(
                    counted
                        .iter()
                        .map(|run| p99_ms(side(run), tail.phase, tail.during, &tail.class)),
                ),
                ..tail.clone()
            };
            of_first.iter().map(of_all).collect()
        };
        Self {
            system: system.into(),
            rounds: counted.len(),
            live: medians(|run| &run.live),
            simulated: medians(|run| &run.simulated),
        }
    }
}
