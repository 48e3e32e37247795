//! Does the simulator say what the server does? The same arrivals, policy and workers through
//! both, the simulator with this machine's calibrated costs.

use crate::{Disturbance, Observed, Trial, TrialError};
use headway_report::Run;
use headway_sim::{Costs, Experiment};

/// The medians may differ by this part.
pub const P50_TOLERANCE: f64 = 0.15;
/// The means may differ by this part.
pub const MEAN_TOLERANCE: f64 = 0.20;
/// Above this load small errors in the costs grow without bound: no verdict.
pub const LOAD_MAX: f64 = 0.7;
/// A machine that took more of the handlers' time than this cannot tell.
pub const LOST_MAX: f64 = 0.015;
/// Nor can one whose gaps alone may add more than this part of the simulated mean to the mean:
/// half of what the means may differ by.
pub const ADDED_MAX: f64 = MEAN_TOLERANCE / 2.0;

/// A live run and the simulation of the same.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What the server did.
    pub live: Run,
    /// What the simulator says.
    pub simulated: Run,
    /// What disturbed the server.
    pub disturbance: Disturbance,
}

/// Whether they agree.
#[derive(Clone, PartialEq, Debug)]
pub enum Agreement {
    /// Within the tolerances.
    Agrees,
    /// Not within them.
    Differs,
    /// The machine took this part of the time, or stopped the server for long enough to move its
    /// mean: nothing can be said.
    TooNoisy(f64),
    /// The load is above [`LOAD_MAX`]: nothing can be said.
    TooLoaded(f64),
}

impl Comparison {
    /// Simulates what was run live.
    ///
    /// # Errors
    /// [`TrialError`] when the experiment is not valid.
    pub fn of(trial: &Trial, observed: Observed, costs: Costs) -> Result<Self, TrialError> {
        let experiment = Experiment {
            costs,
            ..trial.experiment.clone()
        };
        let simulated = experiment.run()?.run;
        let Observed {
            run: live,
            disturbance,
        } = observed;
        Ok(Self {
            live,
            simulated,
            disturbance,
        })
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
        let load = self.live.meta.load;
        let (p50, mean) = self.ratios();
        let within = (p50 - 1.0).abs() <= P50_TOLERANCE && (mean - 1.0).abs() <= MEAN_TOLERANCE;
        match within {
            _ if load > LOAD_MAX => Agreement::TooLoaded(load),
            _ if self.too_noisy() => Agreement::TooNoisy(self.disturbance.lost_fraction()),
            true => Agreement::Agrees,
            false => Agreement::Differs,
        }
    }

    /// Whether what was taken from the handlers could explain a difference.
    fn too_noisy(&self) -> bool {
        let added_us = self.disturbance.added_mean_us(self.live.meta.load);
        self.disturbance.lost_fraction() > LOST_MAX
            || added_us > ADDED_MAX * self.simulated.overall.latency_us.mean
    }
}
