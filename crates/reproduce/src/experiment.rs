//! The file of an experiment.

use crate::text::on_one_line;
use crate::{
    Claim, ComparedSystem, ExperimentKind, ExperimentServer, Measurement, NAMES, PaperFigure,
    ReproduceError, RunLength, Setting, Task, catalogue,
};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A figure or table of a paper: the systems, the measurements and the claims.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentFile {
    /// The experiment's name: the file's name without `.toml`.
    #[serde(skip)]
    pub name: String,
    /// Title of the figure.
    pub title: String,
    /// The paper.
    pub paper: String,
    /// Number of the figure or table in the paper.
    pub figure: String,
    /// The parts of the paper's figure that the model lacks, and the comparison that remains valid.
    pub testbed: String,
    /// The server that measurements simulate.
    #[serde(default)]
    pub server: ExperimentServer,
    /// The experiment's own workloads, in the format of a workload file.
    #[serde(default)]
    pub workload: BTreeMap<String, toml::Table>,
    /// The compared systems.
    #[serde(default)]
    pub system: Vec<ComparedSystem>,
    /// The measurements.
    pub measure: Vec<Measurement>,
    /// The paper's claims.
    pub claim: Vec<Claim>,
}

impl ExperimentFile {
    /// The built-in experiment called `name`.
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

    /// Reads the text of a file and makes all checks that need no run.
    ///
    /// # Errors
    /// The problem and its position.
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

    /// The paper's figure.
    #[must_use]
    pub fn paper_figure(&self) -> PaperFigure {
        PaperFigure {
            name: self.name.clone(),
            title: self.title.clone(),
            paper: self.paper.clone(),
            figure: self.figure.clone(),
            testbed: on_one_line(&self.testbed),
        }
    }

    /// The tasks of all measurements, in order. Any process may run any of them, and [`Reproduction::of`](crate::Reproduction::of) judges what they give.
    /// Once `cutoff` is true they end early: what they give then is of no use.
    ///
    /// # Errors
    /// The first mistake in the file.
    pub fn tasks(
        &self,
        length: RunLength,
        cutoff: Option<&Arc<AtomicBool>>,
    ) -> Result<Vec<Task>, ReproduceError> {
        let mut tasks = Vec::new();
        for measure in &self.measure {
            let setting = Setting {
                cutoff,
                ..self.setting(measure, length)
            };
            let own = measure.tasks(&setting)?.into_iter();
            tasks.extend(own.map(|task| task.on_axis(measure.axis())));
        }
        Ok(tasks)
    }

    /// The setting of one measurement, with runs of this length.
    #[must_use]
    pub fn setting<'a>(&'a self, measure: &'a Measurement, extent: RunLength) -> Setting<'a> {
        Setting {
            experiment: &self.name,
            server: &self.server,
            workloads: &self.workload,
            systems: &self.system,
            id: measure.id(),
            extent,
            cutoff: None,
        }
    }
}
