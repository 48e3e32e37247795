//! The file of an experiment.

use crate::{
    Claim, ComparedSystem, ExperimentKind, ExperimentServer, Measurement, NAMES, ReproduceError,
    RunLength, Setting, catalogue,
};
use serde::Deserialize;
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
    pub server: ExperimentServer,
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
    pub fn read(name: &str, text: &str) -> Result<Self, ReproduceError> {
        let parsed: Result<Self, _> = toml::from_str(text);
        let mut experiment =
            parsed.map_err(|error| ReproduceError::file(name, error.to_string().trim()))?;
        experiment.name = name.into();
        for claim in &experiment.claim {
            claim
                .check()
                .map_err(|problem| ReproduceError::file(name, problem))?;
        }
        Ok(experiment)
    }

    /// The setting of one of its measurements, in runs of this length.
    #[must_use]
    pub fn setting<'a>(&'a self, measure: &'a Measurement, extent: RunLength) -> Setting<'a> {
        Setting {
            experiment: &self.name,
            server: &self.server,
            workloads: &self.workload,
            systems: &self.system,
            id: measure.id(),
            extent,
        }
    }
}
