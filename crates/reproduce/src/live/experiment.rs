//! The file of a figure that is measured live.

use headway_policy::server::systems::ServerSpec;
use headway_policy::{MAX_WORKERS, Shape};
use headway_sim::SystemCores;
use serde::Deserialize;
use std::path::PathBuf;

use super::claim::LiveClaim;
use super::requests::RequestClass;
use super::tail::Tail;
use crate::measured::claim::check_names;
use crate::measured::experiment::{built_in_files, experiment_file};
use crate::measured::{BuiltInFile, ExperimentFields as _, LoadsExtent, MeasuredExperiment};

experiment_file! {
    /// A figure of a paper, measured on this machine: a real server under the load of a real client.
    pub struct LiveExperiment(LoadsExtent, LiveSystem, LiveClaim) {
        /// The server's programs.
        pub server: Programs,
        /// The classes of requests.
        pub class: Vec<RequestClass>,
        /// The slowdown over all requests that a carried rate keeps.
        pub slowdown: f64,
        /// The percentiles of the slowdown; the first is the papers'.
        pub tails: Vec<Tail>,
    }
}

/// The server's programs, relative to the working directory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// Compiled with probes.
    pub probes: PathBuf,
    /// Compiled without probes.
    pub plain: PathBuf,
    /// The command that builds the programs.
    pub build: String,
}

/// The program that a system runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compiled {
    /// With probes.
    Probes,
    /// Without probes.
    Plain,
}

/// A compared system.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveSystem {
    /// Name in the results.
    pub name: String,
    /// The policy and its parameters.
    pub policy: String,
    /// The program.
    pub program: Compiled,
    /// Whether requests are interrupted by signals instead of at probes.
    #[serde(default)]
    pub signal: bool,
    /// Whether threads interrupt themselves by the time-stamp counter, which must then run at a constant rate.
    #[serde(default)]
    pub tsc: bool,
    /// Whether the system has no dispatcher. It then has one more worker, on the core that the dispatcher leaves free.
    #[serde(default)]
    pub undispatched: bool,
}

impl LiveSystem {
    /// The cores of its server beside this number of workers.
    pub(crate) fn cores(&self, workers: usize) -> SystemCores {
        let workers = workers + usize::from(self.undispatched);
        let no_core_beside = SystemCores {
            workers,
            beside: 0,
            beside_serving: 0,
        };
        match self.policy.parse::<ServerSpec>() {
            Ok(policy) if !self.undispatched => SystemCores::of(&policy.into(), workers),
            _ => no_core_beside,
        }
    }
}

impl MeasuredExperiment for LiveExperiment {
    const BUILT_IN: &'static [BuiltInFile] = built_in_files![
        "live":
        "concord-fig9-live",
        "synergy-leveldb-live",
    ];
    const TABLE: &'static str = "class";

    fn check(&self) -> Result<(), String> {
        if let Some(claim) = self
            .claim
            .iter()
            .find(|claim| !self.tails.contains(&claim.tail))
        {
            return Err(format!(
                "a claim is about {:?}, which is none of `tails`",
                claim.tail
            ));
        }
        if self.system.is_empty() || self.class.len() > 255 {
            return Err("there must be a `[[system]]`, and at most 255 of `[[class]]`".into());
        }
        let sum: f64 = self.class.iter().map(|class| class.share).sum();
        if (sum - 1.0).abs() > 0.002 {
            return Err(format!(
                "the shares of all classes must sum to 1, but sum to {sum}"
            ));
        }
        let shape = Shape::new(MAX_WORKERS).class(1_000, 1.0);
        for system in &self.system {
            let spec = system.policy.parse::<ServerSpec>();
            let checked = spec.and_then(|spec| spec.check(&shape));
            checked.map_err(|error| error.to_string())?;
        }
        let named = self.claim.iter().flat_map(|claim| [&claim.of, &claim.over]);
        check_names("system", named.map(String::as_str), |name| {
            self.has_system(name)
        })
    }
}
