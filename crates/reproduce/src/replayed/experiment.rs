//! The file of a figure that is measured on replayed arrivals.

use headway_policy::server::systems::ServerSpec;
use headway_runtime::Mechanism;
use headway_sim::{Flows, SystemCores};
use headway_workload::Workload;
use serde::Deserialize;

use super::claim::ReplayedClaim;
use crate::measured::experiment::{built_in_files, experiment_file};
use crate::measured::{
    BuiltInFile, ExperimentFields as _, LoadsExtent, MeasuredClaim as _, MeasuredExperiment,
};

experiment_file! {
    /// A figure of a paper, both measured on this machine without a network and simulated with this machine's costs.
    pub struct ReplayedExperiment(LoadsExtent, ReplayedSystem, ReplayedClaim) {
        /// The replayed workload and the number of workers.
        pub replay: ReplayedSetup,
    }
}

/// The parameters that all systems share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayedSetup {
    /// The workload, by name.
    pub workload: String,
    /// Number of workers of each system, one core each.
    pub workers: usize,
}

/// A compared system.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayedSystem {
    /// Name in the results.
    pub name: String,
    /// The policy and its parameters.
    pub policy: String,
    /// The flows of the requests, in the grammar of `bench --flows`; by default, each request is a flow.
    pub flows: Option<String>,
    /// The dispatcher's means of interruption: `flag`, the default, or `signal`.
    pub preempt: Option<String>,
    /// Whether the dispatcher has a thread and a core of its own. Otherwise workers take turns as the dispatcher, if the policy has one.
    #[serde(default)]
    pub dedicated: bool,
}

impl ReplayedSystem {
    /// The policy and the system's other parameters.
    pub(super) fn how(&self) -> String {
        let mut how = self.policy.clone();
        if let Some(flows) = &self.flows {
            how += &format!(", {flows} flows");
        }
        if let Some(mechanism) = &self.preempt {
            how += &format!(", by {mechanism}");
        }
        if self.dedicated {
            how += ", a dispatcher with a core of its own";
        }
        how
    }

    /// The cores of its server with this number of workers: without a dispatcher of its own there are none beside theirs.
    pub(super) fn cores(&self, workers: usize) -> SystemCores {
        let beside = self.spec().ok().filter(|_| self.dedicated);
        beside.map_or(
            SystemCores {
                workers,
                beside: 0,
                beside_serving: 0,
            },
            |policy| SystemCores::of(&policy.into(), workers),
        )
    }

    pub(super) fn spec(&self) -> Result<ServerSpec, String> {
        self.policy
            .parse()
            .map_err(|error| format!("system {:?}: {error}", self.name))
    }

    pub(super) fn flows(&self) -> Result<Option<Flows>, String> {
        self.flows.as_deref().map(str::parse).transpose()
    }

    pub(super) fn mechanism(&self) -> Result<Mechanism, String> {
        match self.preempt.as_deref() {
            None | Some("flag") => Ok(Mechanism::Flag),
            Some("signal") => Ok(Mechanism::Signal),
            Some(other) => Err(format!("`preempt` is flag or signal, not {other:?}")),
        }
    }
}

impl MeasuredExperiment for ReplayedExperiment {
    const BUILT_IN: &'static [BuiltInFile] = built_in_files![
        "replayed":
        "synergy-fig6-5-live",
        "synergy-fig6-6-live",
        "synergy-fig6-7-live",
        "synergy-fig6-8-live",
        "synergy-zippydb-live",
    ];
    const TABLE: &'static str = "replay";

    fn check(&self) -> Result<(), String> {
        Workload::resolve(&self.replay.workload).map_err(|error| error.to_string())?;
        if self.replay.workers == 0 {
            return Err("there must be `workers`".into());
        }
        for system in &self.system {
            system.spec()?;
            system.flows()?;
            let mechanism = system.mechanism()?;
            if mechanism == Mechanism::Signal && !system.dedicated {
                return Err(format!(
                    "system {:?}: signals come from a `dedicated` dispatcher",
                    system.name
                ));
            }
        }
        self.claim
            .iter()
            .try_for_each(|claim| self.check_claim(claim))
    }
}

impl ReplayedExperiment {
    /// Checks that the experiment has the claim's systems and load.
    fn check_claim(&self, claim: &ReplayedClaim) -> Result<(), String> {
        claim.parts().check(|name| self.has_system(name))?;
        if !self.full.loads.contains(&claim.load) {
            return Err(format!(
                "a claim is about the load {}, which is none of `loads`",
                claim.load
            ));
        }
        Ok(())
    }
}
