//! The best trial so far of the control plane's candidates.

use crate::experiment::Experiment;
use headway_policy::rack::Objective;
use headway_report::{ClassRecord, Histogram};

/// The trial to beat: the lowest p99 of the trials before this one.
#[derive(Clone, Copy)]
pub(super) struct Rival {
    pub(super) objective: Objective,
    /// In ns of latency, or thousandths of slowdown.
    pub(super) p99: u64,
}

impl Rival {
    /// Number of times that a trial checks whether it has lost.
    const LOOKS: f64 = 64.0;

    pub(super) fn look_every_ns(&self, trial: &Experiment) -> u64 {
        let run_ns = trial.time_of_ns(trial.expected_requests());
        ((run_ns / Self::LOOKS) as u64).max(1)
    }

    /// The histogram whose p99 is compared.
    pub(super) fn objective_of<'a>(&self, record: &'a ClassRecord) -> &'a Histogram {
        objective_of(self.objective, record)
    }
}

/// The histogram of the objective's measure.
pub(super) fn objective_of(objective: Objective, record: &ClassRecord) -> &Histogram {
    match objective {
        Objective::Slowdown => record.slowdown_milli(),
        Objective::Latency => record.latency_ns(),
    }
}
