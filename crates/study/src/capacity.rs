//! The highest load that meets an SLO, as a report has it.

use crate::Mistake;
use headway_report::Capacity;
use headway_report::slo::FewSamples;
use headway_sim::{CapacitySearch, Experiment, Found};

/// A search that knows the load within `tolerance`.
///
/// # Errors
/// The tolerance is out of range.
pub fn search(tolerance: f64) -> Result<CapacitySearch, Mistake> {
    if !(1e-4..=0.5).contains(&tolerance) {
        return Err(Mistake::at("tolerance", "must be 0.0001 to 0.5"));
    }
    Ok(CapacitySearch {
        tolerance,
        ..CapacitySearch::default()
    })
}

/// The capacity of a system, of what the search found.
#[derive(Clone, Debug)]
pub struct SystemCapacity {
    /// As a report has it; 0 where the runs were too short to show the SLO.
    pub capacity: Capacity,
    /// Why the runs were too short to show it, where they were.
    pub unshown: Option<FewSamples>,
    /// Whether the search was cut off.
    pub cut_off: bool,
}

impl SystemCapacity {
    /// Of the experiment that was searched.
    #[must_use]
    pub fn of(experiment: &Experiment, mut found: Found) -> Self {
        if found.unshown.is_some() {
            (found.load, found.rate_rps, found.outcome) = (0.0, 0.0, None);
        }
        let run = found.outcome.map(|outcome| Box::new(outcome.run));
        let cores = experiment.server_cores();
        let params = run.as_ref().map(|run| run.meta.params.clone());
        Self {
            capacity: Capacity {
                cores: experiment.servers * cores.all(),
                serving_cores: experiment.servers * cores.serving(),
                policy: experiment.policy.name().into(),
                spec: experiment.policy.to_string(),
                params: params.unwrap_or_default(),
                load: found.load,
                rps: found.rate_rps,
                other_seeds: found.other_seeds,
                run,
            },
            unshown: found.unshown,
            cut_off: found.cut_off,
        }
    }
}
