//! Runs of other seeds, which a verdict is held to.

use crate::Experiment;
use crate::host::HostExperiment;
use headway_workload::Arrivals;

/// The seeds that are asked after the first.
const OTHER_SEEDS: u64 = 3;

impl Experiment {
    /// The same experiment under three other seeds. They record no schedule and no timeline.
    #[must_use]
    pub fn other_seeds(&self) -> Vec<Self> {
        let plain = Self {
            trace_window: None,
            timeline_ns: None,
            ..self.clone()
        };
        (1..=OTHER_SEEDS)
            .map(|step| plain.clone().seed(self.seed.wrapping_add(step)))
            .collect()
    }

    /// Whether its requests arrive as in a recording, which another seed does not change.
    #[must_use]
    pub fn is_recording(&self) -> bool {
        matches!(self.workload.arrivals, Arrivals::Trace(_))
    }
}

impl HostExperiment {
    /// The same experiment under three other seeds.
    #[must_use]
    pub fn other_seeds(&self) -> Vec<Self> {
        (1..=OTHER_SEEDS)
            .map(|step| self.clone().seed(self.seed.wrapping_add(step)))
            .collect()
    }
}
