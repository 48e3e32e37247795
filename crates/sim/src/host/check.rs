//! Checks of a host's experiment.

use super::experiment::{App, AppWork, HostExperiment, RateStep};
use crate::error::{SimError, in_range};
use headway_policy::host::systems;
use headway_workload::{Arrivals, Workload};
use std::collections::HashSet;

impl HostExperiment {
    /// Checks the experiment without running it.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn check(&self) -> Result<(), SimError> {
        in_range("the warm-up", self.warm_up, 0.0, 0.99)?;
        in_range("the duration in ns", self.duration_ns as f64, 1.0, 1e15)?;
        self.shape().check()?;
        self.check_names()?;
        for app in &self.apps {
            let AppWork::Server {
                workload,
                steps,
                policy,
            } = &app.work
            else {
                continue;
            };
            workload.check()?;
            check_offered(&app.name, workload, steps)?;
            in_range("an application's steps", steps.len() as f64, 1.0, 1e6)?;
            for step in steps {
                in_range("an application's rate", step.rate_rps, 0.0, 1e12)?;
            }
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

    /// Refuses two applications of one name, by which results tell them apart.
    fn check_names(&self) -> Result<(), SimError> {
        let mut names = HashSet::new();
        match self.apps.iter().find(|app| !names.insert(&app.name)) {
            Some(App { name, .. }) => Err(SimError::SameApp { app: name.clone() }),
            None => Ok(()),
        }
    }
}

/// Refuses what a host would offer otherwise than the workload says: it draws arrivals at the rates of the steps.
fn check_offered(app: &str, workload: &Workload, steps: &[RateStep]) -> Result<(), SimError> {
    if matches!(workload.arrivals, Arrivals::Trace(_)) {
        return Err(SimError::TraceOnHost { app: app.into() });
    }
    let refused = |offers| {
        Err(SimError::PhasesOnHost {
            app: app.into(),
            offers,
        })
    };
    if workload.phases.len() > 1 && steps.len() > 1 {
        return refused("at one rate, not at one that changes in steps too");
    }
    let first_ns = workload.mean_service_ns();
    let differs = |mean_ns: f64| (mean_ns / first_ns - 1.0).abs() > 1e-6;
    // A load was made a rate by the first phase's mean.
    if workload
        .phases
        .iter()
        .any(|phase| differs(phase.mean_service_ns()))
    {
        return refused(
            "of one mean service time only: its rate does not follow the phases' means",
        );
    }
    Ok(())
}
