//! Checks of a host's experiment.

use super::experiment::{AppWork, HostExperiment};
use crate::error::{SimError, in_range};
use headway_policy::host::systems;

impl HostExperiment {
    /// Checks the experiment without running it.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn check(&self) -> Result<(), SimError> {
        in_range("the warm-up", self.warm_up, 0.0, 0.99)?;
        in_range("the duration in ns", self.duration_ns as f64, 1.0, 1e15)?;
        self.shape().check()?;
        for app in &self.apps {
            let AppWork::Server {
                workload,
                steps,
                policy,
            } = &app.work
            else {
                continue;
            };
            in_range("an application's steps", steps.len() as f64, 1.0, 1e6)?;
            for step in steps {
                in_range("an application's rate", step.rate_rps, 0.0, 1e12)?;
            }
            workload.check()?;
            let shape = self.server_shape(app, workload);
            policy.check(&shape)?;
            if !policy.facts().may_lose_workers() {
                return Err(SimError::OutOfRange {
                    what: "the policy of an application that trades cores",
                    expected: "one with a central queue, or whose workers steal".into(),
                    given: policy.spec().name.clone(),
                });
            }
        }
        systems::check(&self.policy)?;
        Ok(())
    }
}
