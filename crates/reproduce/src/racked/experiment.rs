//! The file of a figure that is measured behind a switch.

use headway_policy::PolicySpec;
use headway_workload::{Workload, duration};
use serde::Deserialize;

use super::claim::RackedClaim;
use crate::ReproduceError;
use crate::measured::MeasuredClaim;

/// Names of the built-in experiments.
pub const RACKED_NAMES: &[&str] = &[
    "pallas-fig10-live",
    "pallas-fig13a-live",
    "pallas-fig13b-live",
];

fn text(name: &str) -> Option<&'static str> {
    macro_rules! file {
        ($name:literal) => {
            include_str!(concat!("../../../../experiments/racked/", $name, ".toml"))
        };
    }
    Some(match name {
        "pallas-fig10-live" => file!("pallas-fig10-live"),
        "pallas-fig13a-live" => file!("pallas-fig13a-live"),
        "pallas-fig13b-live" => file!("pallas-fig13b-live"),
        _ => return None,
    })
}

/// A figure of a paper, both measured behind a switch on this machine and simulated.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RackedExperiment {
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
    /// The rack and its workload.
    pub rack: RackedSetup,
    /// Rounds of the full measurement.
    pub full: RackedExtent,
    /// Rounds of the short version.
    pub fast: RackedExtent,
    /// The compared systems.
    pub system: Vec<RackedSystem>,
    /// The paper's claims.
    pub claim: Vec<RackedClaim>,
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

/// Rounds of a measurement.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RackedExtent {
    /// Runs of each system, at least 2.
    pub rounds: usize,
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

impl RackedExperiment {
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
        RACKED_NAMES
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
        table.is_some_and(|table| table.contains_key("rack"))
    }

    /// The full or the short extent.
    pub(super) fn extent(&self, fast: bool) -> RackedExtent {
        if fast { self.fast } else { self.full }
    }

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
        if self.full.rounds < 2 || self.fast.rounds < 2 {
            return Err("an interval needs two `rounds`".into());
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

    /// Checks that the experiment has the claim's systems, class and phase.
    fn check_claim(
        &self,
        claim: &RackedClaim,
        classes: &[&str],
        phases: usize,
    ) -> Result<(), String> {
        let systems = &self.system;
        claim
            .parts()
            .check(|name| systems.iter().any(|system| system.name == name))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_built_in_and_can_be_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/racked");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .map(|file| file.strip_suffix(".toml").unwrap().to_owned())
            .collect();
        files.sort();
        assert_eq!(files, RACKED_NAMES);
        assert_eq!(RackedExperiment::all().len(), RACKED_NAMES.len());
    }

    #[test]
    fn mistakes_are_told() {
        let good = text("pallas-fig10-live").unwrap();
        for (from, to, word) in [
            ("rounds = ", "rounds = 0 #", "two `rounds`"),
            ("of = \"", "of = \"no ", "which is no system"),
            ("policy = \"pallas", "policy = \"palas", "palas"),
            ("class = \"short\"", "class = \"tiny\"", "which is none"),
            ("phase = 2", "phase = 9", "phase 9 of"),
            ("change = \"", "change = \"9", "longer than"),
            ("load = 0.", "load = -0.", "above 0"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = RackedExperiment::read("one", &good.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
        assert!(RackedExperiment::is_one(good));
    }
}
