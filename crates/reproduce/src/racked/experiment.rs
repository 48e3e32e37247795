//! The file of a figure that is measured behind a switch.

use headway_policy::PolicySpec;
use headway_workload::{Workload, duration};
use serde::Deserialize;

use super::claim::RackedClaim;
use crate::measured::experiment::{built_in_files, experiment_file};
use crate::measured::{
    BuiltInFile, ExperimentFields as _, MeasuredClaim as _, MeasuredExperiment, RoundsExtent,
};

experiment_file! {
    /// A figure of a paper, both measured behind a switch on this machine and simulated.
    pub struct RackedExperiment(RoundsExtent, RackedSystem, RackedClaim) {
        /// The rack and its workload.
        pub rack: RackedSetup,
    }
}

/// The parameters that all systems share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RackedSetup {
    /// Servers, at least 1.
    pub servers: usize,
    /// Workers of each, at least 1.
    pub workers: usize,
    /// Offered load of all workers in every phase, above 0.
    pub load: f64,
    /// Length of a phase's first part, in which the rack adapts: `2s`.
    pub change: String,
    /// A workload with phases, in the format of a workload file.
    pub workload: toml::Table,
}

/// A compared system.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RackedSystem {
    /// Name in the results.
    pub name: String,
    /// The switch's policy and its parameters.
    pub policy: String,
    /// The servers' policy, unless the control plane sets it.
    pub servers: Option<String>,
}

impl RackedSystem {
    /// The policy in the simulator's grammar.
    pub(super) fn simulated(&self) -> String {
        match &self.servers {
            Some(servers) => format!("{},inner={servers}", self.policy),
            None => self.policy.clone(),
        }
    }
}

impl RackedSetup {
    pub(super) fn workload(&self, name: &str) -> Result<Workload, String> {
        let text = toml::to_string(&self.workload).map_err(|error| error.to_string())?;
        Workload::from_toml_str(&text, name).map_err(|error| error.to_string())
    }

    pub(super) fn change_ns(&self) -> Result<u64, String> {
        duration::parse(&self.change).map_err(|error| format!("`change`: {error}"))
    }
}

impl MeasuredExperiment for RackedExperiment {
    const BUILT_IN: &'static [BuiltInFile] = built_in_files![
        "racked":
        "pallas-fig10-live",
        "pallas-fig13a-live",
        "pallas-fig13b-live",
    ];
    const TABLE: &'static str = "rack";

    fn check(&self) -> Result<(), String> {
        let RackedSetup {
            servers,
            workers,
            load,
            ..
        } = self.rack;
        if servers == 0 || workers == 0 || load <= 0.0 {
            return Err("there must be `servers`, `workers`, and a `load` above 0".into());
        }
        let workload = self.rack.workload(&self.name)?;
        let change_ns = self.rack.change_ns()?;
        let mut phases = workload.phases.iter();
        if workload.phases.is_empty() || phases.any(|phase| phase.duration_ns <= change_ns) {
            return Err("the workload must have phases, each longer than `change`".into());
        }
        for system in &self.system {
            let spec: Result<PolicySpec, _> = system.simulated().parse();
            spec.map_err(|error| format!("system {:?}: {error}", system.name))?;
        }
        let classes = workload.class_names();
        self.claim
            .iter()
            .try_for_each(|claim| self.check_claim(claim, &classes, workload.phases.len()))
    }
}

impl RackedExperiment {
    /// Checks that the experiment has the claim's systems, class and phase.
    fn check_claim(
        &self,
        claim: &RackedClaim,
        classes: &[&str],
        phases: usize,
    ) -> Result<(), String> {
        claim.parts().check(|name| self.has_system(name))?;
        if !classes.contains(&claim.class.as_str()) {
            return Err(format!(
                "a claim is about the class {:?}, which is none",
                claim.class
            ));
        }
        if claim.phase == 0 || claim.phase > phases {
            return Err(format!(
                "a claim is about phase {} of {phases}",
                claim.phase
            ));
        }
        Ok(())
    }
}
