//! What the measurements of an experiment have in common: the simulated server, and the systems compared.

use headway_workload::rate;
use serde::{Deserialize, Deserializer};

/// A simulated server: what all measurements of an experiment have in common.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExperimentServer {
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
