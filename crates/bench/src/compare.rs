//! Does the simulator say what the server does? The same arrivals, policy and workers through
//! both, the simulator with this machine's calibrated costs.

use crate::{Trial, TrialError};
use headway_report::Run;
use headway_sim::{Costs, Experiment};

/// The medians may differ by this part.
pub const P50_TOLERANCE: f64 = 0.15;
/// The means may differ by this part.
pub const MEAN_TOLERANCE: f64 = 0.20;
/// Above this load small errors in the costs grow without bound: no verdict.
pub const LOAD_MAX: f64 = 0.7;
/// A machine that lost more of its time than this cannot tell.
pub const LOST_MAX: f64 = 0.015;

/// A live run and the simulation of the same.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What the server did.
    pub live: Run,
    /// What the simulator says.
    pub simulated: Run,
}

/// Whether they agree.
#[derive(Clone, PartialEq, Debug)]
pub enum Agreement {
    /// Within the tolerances.
    Agrees,
    /// Not within them.
    Differs,
    /// The machine lost this part of its time to others: nothing can be said.
    TooNoisy(f64),
    /// The load is above [`LOAD_MAX`]: nothing can be said.
    TooLoaded(f64),
}

impl Comparison {
    /// Simulates what was run live.
    ///
    /// # Errors
    /// [`TrialError`] when the experiment is not valid.
    pub fn of(trial: &Trial, live: Run, costs: Costs) -> Result<Self, TrialError> {
        let experiment = Experiment {
            costs,
            ..trial.experiment.clone()
        };
        let simulated = experiment.run()?.run;
        Ok(Self { live, simulated })
    }

    /// Median and mean of all requests, live over simulated.
    #[must_use]
    pub fn ratios(&self) -> (f64, f64) {
        let (live, simulated) = (
            &self.live.overall.latency_us,
            &self.simulated.overall.latency_us,
        );
        (live.p50 / simulated.p50, live.mean / simulated.mean)
    }

    /// Whether they agree, on a machine quiet enough to tell.
    #[must_use]
    pub fn agreement(&self) -> Agreement {
        let lost = self
            .live
            .extras
            .noise
            .map_or(0.0, |noise| noise.lost_fraction);
        let (p50, mean) = self.ratios();
        let within = (p50 - 1.0).abs() <= P50_TOLERANCE && (mean - 1.0).abs() <= MEAN_TOLERANCE;
        match within {
            _ if self.live.meta.load > LOAD_MAX => Agreement::TooLoaded(self.live.meta.load),
            true => Agreement::Agrees,
            false if lost > LOST_MAX => Agreement::TooNoisy(lost),
            false => Agreement::Differs,
        }
    }
}
