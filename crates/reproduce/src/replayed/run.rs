//! One run of one system: the figures of live server and simulator.

use headway_report::Overall;
use serde::Serialize;

use crate::measured::claim::{MeasuredRun, SystemAtPlace};

/// One system at one load in one round.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayedRun {
    /// Number of the round, from 0.
    pub round: usize,
    /// Offered load of the workers.
    pub load: f64,
    /// The system's name.
    pub system: String,
    /// Whether the machine left enough of the run undisturbed for it to count.
    pub counts: bool,
    /// The fraction of the requests that the machine left undisturbed.
    pub untouched_fraction: f64,
    /// The fraction of the time that the machine took.
    pub lost_fraction: f64,
    /// Number of interruptions of requests.
    pub preemptions: u64,
    /// Number of quanta that ended without an interruption of their request.
    pub renewals: u64,
    /// The live figures of the undisturbed requests; interruptions are those of all requests.
    pub live: ReplayedFigures,
    /// The simulated figures of the same requests.
    pub simulated: ReplayedFigures,
    /// The live figures of all requests.
    pub all: Overall,
}

/// The live or the simulated figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayedFigures {
    /// Latencies and slowdowns.
    pub overall: Overall,
    /// Interruptions per request.
    pub preemptions_each: f64,
}

impl MeasuredRun for ReplayedRun {
    fn round(&self) -> usize {
        self.round
    }

    fn at(&self) -> SystemAtPlace<'_> {
        SystemAtPlace::anywhere(&self.system)
    }

    fn counts(&self) -> bool {
        self.counts
    }
}
