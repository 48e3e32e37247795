//! The file of a figure that is measured on a host of applications.

use headway_policy::PolicySpec;
use headway_workload::{Workload, duration};
use serde::Deserialize;

use super::claim::HostedClaim;
use crate::ExperimentFile;
use crate::measured::claim::check_names;
use crate::measured::experiment::{built_in_files, experiment_file};
use crate::measured::{
    BuiltInFile, ExperimentFields as _, MeasuredClaim as _, MeasuredExperiment, RoundsExtent,
};

experiment_file! {
    /// A figure of a paper, both measured on applications that share cores of this machine and simulated.
    pub struct HostedExperiment(RoundsExtent, HostedSystem, HostedClaim) {
        /// The experiment that simulates the paper's own host, if there is one.
        pub papers: Option<String>,
        /// The host and its server's workload.
        pub host: HostedSetup,
        /// The loads.
        pub place: Vec<HostedPlace>,
    }
}

/// The parameters that all systems share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostedSetup {
    /// Cores that the allocator assigns, at least 1.
    pub cores: usize,
    /// The server's workload, in the format of a workload file.
    pub workload: toml::Table,
}

/// A load on the server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostedPlace {
    /// Name in the results.
    pub name: String,
    /// The rates, one after the other.
    pub steps: Vec<HostedStep>,
}

/// A rate and its duration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostedStep {
    /// Requests per second, above 0.
    pub rate: f64,
    /// Duration: `500ms`.
    pub lasts: String,
}

/// A compared system.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostedSystem {
    /// Name in the results.
    pub name: String,
    /// The allocator and its parameters.
    pub policy: String,
    /// Cores guaranteed to the server.
    pub guaranteed: usize,
    /// Whether a batch program runs beside the server.
    pub batch: bool,
}

impl HostedStep {
    pub(super) fn lasts_ns(&self) -> Result<u64, String> {
        let lasts_ns = duration::parse(&self.lasts).map_err(|error| format!("`lasts`: {error}"))?;
        if lasts_ns == 0 || self.rate <= 0.0 {
            return Err("a step has a `rate` above 0 and `lasts` for a while".into());
        }
        Ok(lasts_ns)
    }
}

impl HostedSetup {
    pub(super) fn workload(&self, name: &str) -> Result<Workload, String> {
        let text = toml::to_string(&self.workload).map_err(|error| error.to_string())?;
        Workload::from_toml_str(&text, name).map_err(|error| error.to_string())
    }
}

impl MeasuredExperiment for HostedExperiment {
    const BUILT_IN: &'static [BuiltInFile] = built_in_files![
        "hosted":
        "shenango-fig1-live",
        "shenango-fig4-live",
        "shenango-fig5-live",
    ];
    const TABLE: &'static str = "host";

    fn check(&self) -> Result<(), String> {
        let workload = self.host.workload(&self.name)?;
        if self.host.cores == 0 || !workload.phases.is_empty() {
            return Err("there must be `cores`, and a workload without phases".into());
        }
        for place in &self.place {
            let steps = place.steps.iter();
            let lengths: Result<Vec<u64>, String> = steps.map(HostedStep::lasts_ns).collect();
            if lengths
                .map_err(|problem| format!("place {:?}: {problem}", place.name))?
                .is_empty()
            {
                return Err(format!("place {:?} has no steps", place.name));
            }
        }
        for system in &self.system {
            match system.policy.parse() {
                Ok(PolicySpec::Host { .. }) => {}
                Ok(_) => {
                    let why = "is no allocator of a host";
                    return Err(format!("system {:?}: {} {why}", system.name, system.policy));
                }
                Err(error) => return Err(format!("system {:?}: {error}", system.name)),
            }
            if system.guaranteed > self.host.cores {
                return Err(format!(
                    "system {:?} is guaranteed more than all cores",
                    system.name
                ));
            }
        }
        if let Some(papers) = &self.papers
            && ExperimentFile::named(papers).is_none()
        {
            return Err(format!("`papers`: no experiment is called {papers:?}"));
        }
        self.claim
            .iter()
            .try_for_each(|claim| self.check_claim(claim))
    }
}

impl HostedExperiment {
    /// Checks that the experiment has the claim's systems and places.
    fn check_claim(&self, claim: &HostedClaim) -> Result<(), String> {
        let parts = claim.parts();
        parts.check(|name| self.has_system(name))?;
        let named = [Some(parts.of), parts.over].into_iter().flatten();
        let places = named.filter_map(|at| at.place);
        check_names("place", places, |name| {
            self.place.iter().any(|place| place.name == name)
        })
    }
}
