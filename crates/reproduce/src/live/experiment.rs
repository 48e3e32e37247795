//! The file of a figure that is measured live.

use headway_policy::systems::ServerSpec;
use headway_policy::{MAX_WORKERS, Shape};
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

use super::claim::LiveClaim;
use super::requests::RequestClass;
use super::tail::Tail;
use crate::ReproduceError;
use crate::measured::claim::check_names;

/// Names of the built-in experiments.
pub const LIVE_NAMES: &[&str] = &["concord-fig9-live", "synergy-leveldb-live"];

fn text(name: &str) -> Option<&'static str> {
    match name {
        "concord-fig9-live" => Some(include_str!(
            "../../../../experiments/live/concord-fig9-live.toml"
        )),
        "synergy-leveldb-live" => Some(include_str!(
            "../../../../experiments/live/synergy-leveldb-live.toml"
        )),
        _ => None,
    }
}

/// A figure of a paper, measured on this machine: a real server under the load of a real client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveExperiment {
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
    /// The server's programs.
    pub server: Programs,
    /// The classes of requests.
    pub class: Vec<RequestClass>,
    /// The slowdown over all requests that a carried rate keeps.
    pub slowdown: f64,
    /// The percentiles of the slowdown; the first is the papers'.
    pub tails: Vec<Tail>,
    /// Loads, rounds and run lengths of the full measurement.
    pub full: LiveExtent,
    /// The same for the short version.
    pub fast: LiveExtent,
    /// The compared systems. The first is the reference: it determines the service times and load 1.
    pub system: Vec<LiveSystem>,
    /// The paper's claims.
    pub claim: Vec<LiveClaim>,
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

/// Loads, rounds and run lengths of a measurement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveExtent {
    /// Offered rates as fractions of the reference's capacity, ascending.
    pub loads: Vec<f64>,
    /// Runs of each system at each load.
    pub rounds: usize,
    /// Time that the client sends requests in a run, ms.
    pub run_ms: u64,
}

impl LiveExtent {
    /// Time that the client sends requests in a run.
    pub(crate) fn run(&self) -> Duration {
        Duration::from_millis(self.run_ms)
    }
}

impl LiveExperiment {
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
        LIVE_NAMES
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
        table.is_some_and(|table| table.contains_key("class"))
    }

    fn check(&self) -> Result<(), String> {
        for extent in [&self.full, &self.fast] {
            let ascending = extent.loads.windows(2).all(|pair| pair[0] < pair[1]);
            if extent.loads.first().is_none_or(|&first| first <= 0.0) || !ascending {
                return Err("`loads` must be above 0 and ascend".into());
            }
            if extent.rounds < 2 || extent.run_ms == 0 {
                return Err("an interval needs two `rounds`, and `run_ms` above 0".into());
            }
        }
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
            self.system.iter().any(|system| system.name == name)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_built_in_and_can_be_read() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/live");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .map(|file| file.strip_suffix(".toml").unwrap().to_owned())
            .collect();
        files.sort();
        assert_eq!(files, LIVE_NAMES);
        assert_eq!(LiveExperiment::all().len(), LIVE_NAMES.len());
    }

    #[test]
    fn mistakes_are_told() {
        let good = text("concord-fig9-live").unwrap();
        for (from, to, word) in [
            ("rounds = ", "rounds = 0 #", "two `rounds`"),
            ("share = 0.5", "share = 0.7", "sum to 1.2"),
            ("of = \"", "of = \"no ", "which is no system"),
            ("policy = \"c-fcfs\"", "policy = \"c-fcsf\"", "c-fcsf"),
            ("loads = [", "loads = [9.9, ", "ascend"),
        ] {
            let error = LiveExperiment::read("one", &good.replacen(from, to, 1)).unwrap_err();
            assert!(error.to_string().contains(word), "{error}");
        }
        assert!(LiveExperiment::is_one(good));
    }
}
