//! The file of an experiment.

use crate::{Claim, Error, Measurement, NAMES, catalogue};
use headway_workload::{Workload, rate};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// A figure or table of a paper: what is run, and what must come of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFile {
    /// What it is called: the file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Whose it is.
    pub paper: String,
    /// Which it is in the paper.
    pub figure: String,
    /// What the paper's figure includes that the model does not, and what is compared therefore.
    pub testbed: String,
    /// The server that measurements simulate, where they do.
    #[serde(default)]
    pub server: SimulatedServer,
    /// Workloads that have no name of their own, written as in a workload file.
    #[serde(default)]
    pub workload: BTreeMap<String, toml::Table>,
    /// Who is compared.
    #[serde(default)]
    pub system: Vec<ComparedSystem>,
    /// What is measured.
    pub measure: Vec<Measurement>,
    /// What the paper says of it.
    pub claim: Vec<Claim>,
}

/// A simulated server: what all measurements of an experiment have in common.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SimulatedServer {
    /// By name, or one of the file's own.
    pub workload: String,
    /// How many of its kind, behind a switch: more than one takes a rack's policies.
    pub servers: usize,
    /// How many workers each.
    pub workers: usize,
    /// Arrivals of a run, the discarded tenth included.
    #[serde(deserialize_with = "count")]
    pub requests: u64,
    /// Of everything random.
    pub seed: u64,
    /// Added to every latency: `10us`.
    pub network: Option<String>,
}

impl Default for SimulatedServer {
    fn default() -> Self {
        Self {
            workload: "high-bimodal".into(),
            servers: 1,
            workers: 14,
            requests: 1_000_000,
            seed: 1,
            network: None,
        }
    }
}

/// One of the systems compared.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ComparedSystem {
    /// What the results call it.
    pub name: String,
    /// The policy and its parameters.
    pub policy: String,
    /// The dispatcher's serial work per request: `143ns`.
    pub dispatch_cost: Option<String>,
    /// The dispatcher's serial work per request that comes back unfinished: `222ns`.
    pub requeue_cost: Option<String>,
    /// A worker's work per request beside the service: `100ns`.
    pub overhead: Option<String>,
    /// How much longer instrumented code takes, ‰ of the service time.
    pub instrumentation_permille: Option<u64>,
    /// How much longer a request takes on a dispatcher that works, %.
    #[serde(default)]
    pub dispatcher_slowdown_percent: u64,
    /// Takes requests for any class, at random.
    #[serde(default)]
    pub random_classifier: bool,
    /// Workers, where it has others than the rest.
    pub workers: Option<usize>,
}

impl ExperimentFile {
    /// The built-in experiment of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let text = catalogue::text(name)?;
        match Self::read(name, text) {
            Ok(experiment) => Some(experiment),
            Err(error) => panic!("a built-in experiment must be readable: {error}"),
        }
    }

    /// Every built-in experiment.
    #[must_use]
    pub fn all() -> Vec<Self> {
        NAMES.iter().filter_map(|name| Self::named(name)).collect()
    }

    /// Reads the text of a file and checks what can be checked without running it.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn read(name: &str, text: &str) -> Result<Self, Error> {
        let parsed: Result<Self, _> = toml::from_str(text);
        let mut experiment = parsed.map_err(|error| Error::file(name, error.to_string().trim()))?;
        experiment.name = name.into();
        for claim in &experiment.claim {
            claim
                .check()
                .map_err(|problem| Error::file(name, problem))?;
        }
        Ok(experiment)
    }

    /// A workload of the file, or of the literature.
    ///
    /// # Errors
    /// When there is none of that name, or it is not valid.
    pub fn workload(&self, name: &str) -> Result<Workload, Error> {
        let Some(own) = self.workload.get(name) else {
            return Ok(Workload::resolve(name)?);
        };
        let text = toml::to_string(own).map_err(|error| Error::file(&self.name, error))?;
        let place = format!("{}.toml", name);
        Ok(Workload::from_toml_str(&text, place)?)
    }
}

/// A whole number, or one with k or M as text.
pub(crate) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Number(u64),
        Text(String),
    }
    match Written::deserialize(deserializer)? {
        Written::Number(number) => Ok(number),
        Written::Text(text) => match rate::parse(&text) {
            Ok(number) => Ok(number as u64),
            Err(error) => Err(serde::de::Error::custom(error)),
        },
    }
}
