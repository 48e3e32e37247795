//! The file of a figure that is measured on replayed arrivals.

use headway_policy::systems::ServerSpec;
use headway_runtime::Mechanism;
use headway_sim::Flows;
use headway_workload::Workload;
use serde::Deserialize;

use super::claim::ReplayedClaim;
use crate::ReproduceError;
use crate::measured::MeasuredClaim;

/// Names of the built-in experiments.
pub const REPLAYED_NAMES: &[&str] = &[
    "synergy-fig6-5-live",
    "synergy-fig6-6-live",
    "synergy-fig6-7-live",
    "synergy-fig6-8-live",
    "synergy-zippydb-live",
];

fn text(name: &str) -> Option<&'static str> {
    macro_rules! file {
        ($name:literal) => {
            include_str!(concat!("../../../../experiments/replayed/", $name, ".toml"))
        };
    }
    Some(match name {
        "synergy-fig6-5-live" => file!("synergy-fig6-5-live"),
        "synergy-fig6-6-live" => file!("synergy-fig6-6-live"),
        "synergy-fig6-7-live" => file!("synergy-fig6-7-live"),
        "synergy-fig6-8-live" => file!("synergy-fig6-8-live"),
        "synergy-zippydb-live" => file!("synergy-zippydb-live"),
        _ => return None,
    })
}

/// A figure of a paper, both measured on this machine without a network and simulated with this machine's costs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayedExperiment {
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
    /// The replayed workload and the number of workers.
    pub replay: ReplayedSetup,
    /// Loads, rounds and run lengths of the full measurement.
    pub full: ReplayedExtent,
    /// The same for the short version.
    pub fast: ReplayedExtent,
    /// The compared systems.
    pub system: Vec<ReplayedSystem>,
    /// The paper's claims.
    pub claim: Vec<ReplayedClaim>,
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

/// Loads, rounds and run lengths of a measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayedExtent {
    /// Offered loads of the workers, ascending, above 0.
    pub loads: Vec<f64>,
    /// Runs of each system at each load, at least 2.
    pub rounds: usize,
    /// Time that requests arrive in a run, ms.
    pub run_ms: u64,
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

impl ReplayedExperiment {
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
        REPLAYED_NAMES
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
        table.is_some_and(|table| table.contains_key("replay"))
    }

    fn check(&self) -> Result<(), String> {
        Workload::resolve(&self.replay.workload).map_err(|error| error.to_string())?;
        if self.replay.workers == 0 {
            return Err("there must be `workers`".into());
        }
        for extent in [&self.full, &self.fast] {
            let ascending = extent.loads.windows(2).all(|pair| pair[0] < pair[1]);
            if extent.loads.first().is_none_or(|&first| first <= 0.0) || !ascending {
                return Err("`loads` must be above 0 and ascend".into());
            }
            if extent.rounds < 2 || extent.run_ms == 0 {
                return Err("an interval needs two `rounds`, and `run_ms` above 0".into());
            }
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

    /// Checks that the experiment has the claim's systems and load.
    fn check_claim(&self, claim: &ReplayedClaim) -> Result<(), String> {
        let systems = &self.system;
        claim
            .parts()
            .check(|name| systems.iter().any(|system| system.name == name))?;
        if !self.full.loads.contains(&claim.load) {
            return Err(format!(
                "a claim is about the load {}, which is none of `loads`",
                claim.load
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
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/replayed");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .map(|file| file.strip_suffix(".toml").unwrap().to_owned())
            .collect();
        files.sort();
        assert_eq!(files, REPLAYED_NAMES);
        assert_eq!(ReplayedExperiment::all().len(), REPLAYED_NAMES.len());
    }

    /// The short version judges every claim too.
    #[test]
    fn claims_are_about_loads_of_both_extents() {
        for experiment in ReplayedExperiment::all() {
            for claim in &experiment.claim {
                assert!(
                    experiment.fast.loads.contains(&claim.load),
                    "{}",
                    claim.says
                );
            }
        }
    }

    #[test]
    fn mistakes_are_told() {
        let good = text("synergy-fig6-5-live").unwrap();
        for (from, to, word) in [
            ("rounds = ", "rounds = 0 #", "two `rounds`"),
            ("workload = \"zippydb\"", "workload = \"zipydb\"", "zippydb"),
            ("of = \"", "of = \"no ", "which is no system"),
            ("policy = \"synergy", "policy = \"sinergy", "sinergy"),
            ("loads = [", "loads = [9.9, ", "ascend"),
            ("load = 0.", "load = 0.0", "none of `loads`"),
            (
                "figure = \"slowdown.p99",
                "figure = \"slowness.p99",
                "slowness",
            ),
            (
                "\n[[claim]]",
                "\npreempt = \"signal\"\n[[claim]]",
                "dedicated",
            ),
            ("\n[[claim]]", "\nflows = \"few\"\n[[claim]]", "such as 8"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = ReplayedExperiment::read("one", &good.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
        assert!(ReplayedExperiment::is_one(good));
    }
}
