//! The file of a figure that is measured live.

use headway_policy::systems::ServerSpec;
use headway_policy::{MAX_WORKERS, Shape};
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

use super::asked::AskedClass;
use super::claim::LiveClaim;
use super::tail::Tail;
use crate::ReproduceError;

/// The names of the built-in ones.
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
    /// What it is called: the file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Whose it is.
    pub paper: String,
    /// Which it is in the paper.
    pub figure: String,
    /// What the paper's testbed had that a machine here has not, and what is compared therefore.
    pub testbed: String,
    /// The programs of the server.
    pub server: Programs,
    /// What is asked of it.
    pub class: Vec<AskedClass>,
    /// The slowdown over all requests up to which a rate is carried.
    pub slowdown: f64,
    /// By which percentiles of it; the first is the papers'.
    pub tails: Vec<Tail>,
    /// How long all of it takes.
    pub full: LiveExtent,
    /// The same for a first impression.
    pub fast: LiveExtent,
    /// Who is compared. The first is the reference: it says what a request takes and what load 1 is.
    pub system: Vec<LiveSystem>,
    /// What the paper says of it.
    pub claim: Vec<LiveClaim>,
}

/// The server's programs, relative to the working directory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// Compiled with probes.
    pub probes: PathBuf,
    /// Compiled without.
    pub plain: PathBuf,
    /// What builds them.
    pub build: String,
}

/// Which of the two a system runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compiled {
    /// With probes.
    Probes,
    /// Without.
    Plain,
}

/// A system that is compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveSystem {
    /// What the results call it.
    pub name: String,
    /// The policy and its parameters.
    pub policy: String,
    /// Which program.
    pub program: Compiled,
    /// Whether requests are interrupted by signals instead of at probes.
    #[serde(default)]
    pub signal: bool,
    /// Whether threads interrupt themselves by the time-stamp counter, which must run at a constant rate then.
    #[serde(default)]
    pub tsc: bool,
    /// Whether it has no dispatcher: a worker more than the others then, on the core that the dispatcher leaves free.
    #[serde(default)]
    pub undispatched: bool,
}

/// How much is run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveExtent {
    /// Offered rates, as shares of what the reference answers with requests always waiting; ascending.
    pub loads: Vec<f64>,
    /// How often each system runs at each of them.
    pub rounds: usize,
    /// How long requests are sent in a run, ms.
    pub run_ms: u64,
}

impl LiveExtent {
    /// How long requests are sent in a run.
    pub(crate) fn run(&self) -> Duration {
        Duration::from_millis(self.run_ms)
    }
}

impl LiveExperiment {
    /// The built-in one of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match Self::read(name, text(name)?) {
            Ok(experiment) => Some(experiment),
            Err(error) => panic!("a built-in experiment must be readable: {error}"),
        }
    }

    /// Every built-in one.
    #[must_use]
    pub fn all() -> Vec<Self> {
        LIVE_NAMES
            .iter()
            .filter_map(|name| Self::named(name))
            .collect()
    }

    /// Reads the text of a file and checks what can be checked without running it.
    ///
    /// # Errors
    /// What is wrong, and where.
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

    /// Whether the text of a file is one of these.
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
        let mut names = self.claim.iter().flat_map(|claim| [&claim.of, &claim.over]);
        match names.find(|name| self.system.iter().all(|system| system.name != **name)) {
            Some(name) => Err(format!("a claim is about {name:?}, which is no system")),
            None => Ok(()),
        }
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
