//! What was asked, read.

use crate::errors::{mistaken, mistaken_at, refused};
use crate::workload::NativeWorkload;
use headway_policy::PolicySpec;
use headway_report::Run;
use headway_sim::{Experiment, Offered, Precision};
use headway_study::{SystemSetup, figures, parse, traffic};
use headway_workload::Workload;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The load of a run where none is given.
pub(crate) const DEFAULT_LOAD: f64 = 0.8;

/// Names and texts: the command's flags and their values.
pub(crate) type SettingTexts = Vec<(String, String)>;

/// The simulated system that the settings describe.
pub(crate) fn setup(settings: &SettingTexts) -> PyResult<SystemSetup> {
    let mut setup = SystemSetup::default();
    for (name, text) in settings {
        setup.set(name, text).map_err(|error| mistaken(&error))?;
    }
    Ok(setup)
}

/// A load and a rate as texts, one of them or neither.
#[derive(FromPyObject)]
pub(crate) struct LoadTexts {
    load: Option<String>,
    rate: Option<String>,
}

impl LoadTexts {
    pub(crate) fn load(&self) -> PyResult<Option<f64>> {
        read("load", self.load.as_deref(), parse::load)
    }

    pub(crate) fn rate_rps(&self) -> PyResult<Option<f64>> {
        read("rate", self.rate.as_deref(), parse::rate_rps)
    }

    /// What is offered to so many workers.
    pub(crate) fn offered(&self, workload: &Workload, workers: usize) -> PyResult<Offered> {
        let (load, rate_rps) = (self.load()?, self.rate_rps()?);
        traffic::offered(workload, load, rate_rps, workers, DEFAULT_LOAD)
            .map_err(|error| mistaken(&error))
    }
}

/// Reads an argument's text, if it is given.
pub(crate) fn read<T>(
    place: &str,
    text: Option<&str>,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> PyResult<Option<T>> {
    let read = text.map(parse).transpose();
    read.map_err(|error| mistaken_at(place, error))
}

/// A system under a load, as it was asked for.
#[derive(FromPyObject)]
pub(crate) struct Asked {
    workload: Py<NativeWorkload>,
    policy: String,
    at: LoadTexts,
    settings: SettingTexts,
}

impl Asked {
    /// The experiment, checked, of as many requests as the command's where none are given; and what is to be noted of its costs.
    pub(crate) fn experiment(
        &self,
        default_requests: u64,
        cutoff: &Arc<AtomicBool>,
    ) -> PyResult<(Experiment, Option<String>)> {
        let setup = setup(&self.settings)?;
        let workload = &self.workload.get().0;
        let policy = headway_study::policy_of_servers(&self.policy)
            .map_err(|error| mistaken_at("policy", error))?;
        let offered = self.at.offered(workload, setup.load_cores())?;
        let experiment = setup.experiment(workload.clone(), policy, offered, default_requests);
        let mut experiment = experiment.map_err(refused)?;
        let note = setup.costs_left(&experiment);
        experiment.cutoff = Some(Arc::clone(cutoff));
        Ok((experiment, note))
    }

    /// Its allocator and applications, where the policy is a host's.
    pub(crate) fn policy(&self) -> PyResult<PolicySpec> {
        headway_study::any_policy(&self.policy).map_err(|error| mistaken_at("policy", error))
    }

    pub(crate) fn workload(&self) -> &Workload {
        &self.workload.get().0
    }

    pub(crate) fn setup(&self) -> PyResult<SystemSetup> {
        setup(&self.settings)
    }

    /// What is offered to so many workers.
    pub(crate) fn offered(&self, workers: usize) -> PyResult<Offered> {
        self.at.offered(self.workload(), workers)
    }
}

/// How often a point of a sweep is run.
#[derive(FromPyObject)]
pub(crate) struct Replications {
    replications: Option<u64>,
    until_ci: Option<String>,
    ci_of: String,
}

/// A number of runs, or a precision that they are to reach.
pub(crate) enum Wanted {
    Fixed(u64),
    Until(Precision),
}

impl Replications {
    pub(crate) fn wanted(&self, classes: &[&str]) -> PyResult<Wanted> {
        const MOST: u64 = 1000;
        if self.replications.is_some_and(|it| it == 0 || it > MOST) {
            return Err(mistaken_at("replications", format!("must be 1 to {MOST}")));
        }
        let until = read("until_ci", self.until_ci.as_deref(), parse::percent)?;
        let Some(relative) = until else {
            return Ok(Wanted::Fixed(self.replications.unwrap_or(1)));
        };
        let precision = figures::precision(relative, &self.ci_of, self.replications, classes);
        Ok(Wanted::Until(precision.map_err(|error| mistaken(&error))?))
    }
}

impl Wanted {
    /// The number of runs in all, of those made.
    pub(crate) fn of(&self, runs: &[Run]) -> u64 {
        match self {
            Self::Fixed(runs) => *runs,
            Self::Until(precision) => precision.wanted(runs),
        }
    }
}
