//! The file of a figure that is measured on a host of applications.

use headway_policy::PolicySpec;
use headway_workload::{Workload, duration};
use serde::Deserialize;

use super::claim::HostedClaim;
use crate::measured::MeasuredClaim;
use crate::measured::claim::check_names;
use crate::{ExperimentFile, ReproduceError};

/// Names of the built-in experiments.
pub const HOSTED_NAMES: &[&str] = &[
    "shenango-fig1-live",
    "shenango-fig4-live",
    "shenango-fig5-live",
];

fn text(name: &str) -> Option<&'static str> {
    macro_rules! file {
        ($name:literal) => {
            include_str!(concat!("../../../../experiments/hosted/", $name, ".toml"))
        };
    }
    Some(match name {
        "shenango-fig1-live" => file!("shenango-fig1-live"),
        "shenango-fig4-live" => file!("shenango-fig4-live"),
        "shenango-fig5-live" => file!("shenango-fig5-live"),
        _ => return None,
    })
}

/// A figure of a paper, both measured on applications that share cores of this machine and simulated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostedExperiment {
    /// The experiment's name: the file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// Title of the figure.
    pub title: String,
    /// The paper.
    pub paper: String,
    /// Number of the figure or table in the paper.
    pub figure: String,
    /// The differences between the paper's testbed and this machine, and the comparison that remains valid.
    pub testbed: String,
    /// The experiment that simulates the paper's own host, if there is one.
    pub papers: Option<String>,
    /// The host and its server's workload.
    pub host: HostedSetup,
    /// Rounds of the full measurement.
    pub full: HostedExtent,
    /// Rounds of the short version.
    pub fast: HostedExtent,
    /// The loads.
    pub place: Vec<HostedPlace>,
    /// The compared systems.
    pub system: Vec<HostedSystem>,
    /// The paper's claims.
    pub claim: Vec<HostedClaim>,
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

/// Rounds of a measurement.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostedExtent {
    /// Runs of each system at each place, at least 2.
    pub rounds: usize,
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

impl HostedExperiment {
    /// The built-in experiment called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match Self::read(name, text(name)?) {
            Ok(experiment) => Some(experiment),
            Err(error) => panic!("a built-in experiment must be readable: {error}"),
        }
    }

    /// Every built-in experiment.
    #[must_use]
    pub fn all() -> Vec<Self> {
        HOSTED_NAMES
            .iter()
            .filter_map(|name| Self::named(name))
            .collect()
    }

    /// Reads the text of a file and makes all checks that need no run.
    ///
    /// # Errors
    /// The problem and its position.
    pub fn read(name: &str, text: &str) -> Result<Self, ReproduceError> {
        let parsed: Result<Self, _> = toml::from_str(text);
        let mut experiment =
            parsed.map_err(|error| ReproduceError::file(name, error.to_string().trim()))?;
        experiment.name = name.into();
        experiment
            .check()
            .map_err(|problem| ReproduceError::file(name, problem))?;
        Ok(experiment)
    }

    /// Whether the text of a file is an experiment of this kind.
    #[must_use]
    pub fn is_one(text: &str) -> bool {
        let table: Option<toml::Table> = toml::from_str(text).ok();
        table.is_some_and(|table| table.contains_key("host"))
    }

    /// The full or the short extent.
    pub(super) fn extent(&self, fast: bool) -> HostedExtent {
        if fast { self.fast } else { self.full }
    }

    fn check(&self) -> Result<(), String> {
        let workload = self.host.workload(&self.name)?;
        if self.host.cores == 0 || !workload.phases.is_empty() {
            return Err("there must be `cores`, and a workload without phases".into());
        }
        if self.full.rounds < 2 || self.fast.rounds < 2 {
            return Err("an interval needs two `rounds`".into());
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

    /// Checks that the experiment has the claim's systems and places.
    fn check_claim(&self, claim: &HostedClaim) -> Result<(), String> {
        let parts = claim.parts();
        let systems = &self.system;
        parts.check(|name| systems.iter().any(|system| system.name == name))?;
        let named = [Some(parts.of), parts.over].into_iter().flatten();
        let places = named.filter_map(|at| at.place);
        check_names("place", places, |name| {
            self.place.iter().any(|place| place.name == name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_built_in_and_can_be_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/hosted");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .map(|file| file.strip_suffix(".toml").unwrap().to_owned())
            .collect();
        files.sort();
        assert_eq!(files, HOSTED_NAMES);
        assert_eq!(HostedExperiment::all().len(), HOSTED_NAMES.len());
    }

    #[test]
    fn mistakes_are_told() {
        let good = text("shenango-fig4-live").unwrap();
        for (from, to, word) in [
            ("rounds = ", "rounds = 0 #", "two `rounds`"),
            ("of = \"", "of = \"no ", "which is no system"),
            ("policy = \"shenango", "policy = \"shenangoo", "shenangoo"),
            ("policy = \"shenango", "policy = \"darc", "no allocator"),
            ("at = \"", "at = \"no ", "which is no place"),
            ("papers = \"", "papers = \"no", "no experiment"),
            ("rate = ", "rate = -", "above 0"),
            ("guaranteed = ", "guaranteed = 9", "more than all"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = HostedExperiment::read("one", &good.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
        assert!(HostedExperiment::is_one(good));
    }
}
