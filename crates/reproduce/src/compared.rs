//! The parts that all measurements of an experiment share: the simulated server and the compared systems.

use headway_workload::rate;
use serde::{Deserialize, Deserializer};

/// The simulated server that all measurements of an experiment share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExperimentServer {
    /// Name of a known workload, or of one in the file.
    pub workload: String,
    /// Number of such servers behind a switch; more than one needs a rack's policies.
    pub servers: usize,
    /// Workers of each server.
    pub workers: usize,
    /// Arrivals of a run, including the discarded tenth.
    #[serde(deserialize_with = "count")]
    pub requests: u64,
    /// Seed of all random choices.
    pub seed: u64,
    /// Network time to add to every latency: `10us`.
    pub network: Option<String>,
}

impl Default for ExperimentServer {
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
    /// Name in the results.
    pub name: String,
    /// The policy and its parameters.
    pub policy: String,
    /// The dispatcher's serial work per request: `143ns`.
    pub dispatch_cost: Option<String>,
    /// The dispatcher's serial work per request that comes back unfinished: `222ns`.
    pub requeue_cost: Option<String>,
    /// A worker's work per request in addition to the service: `100ns`.
    pub overhead: Option<String>,
    /// Additional time of instrumented code, ‰ of the service time.
    pub instrumentation_permille: Option<u64>,
    /// Additional service time of a request on a dispatcher that also works, %.
    #[serde(default)]
    pub dispatcher_slowdown_percent: u64,
    /// Whether the server assigns each request to a random class.
    #[serde(default)]
    pub random_classifier: bool,
    /// Number of workers, if it differs from the server's.
    pub workers: Option<usize>,
}

/// A whole number, or a text with the suffix k or M.
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
