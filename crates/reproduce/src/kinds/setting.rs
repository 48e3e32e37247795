//! The setting of a measurement: its experiment, and its changes to the experiment's server.

use crate::{ComparedSystem, Datum, ExperimentServer, Observable, ReproduceError, RunLength};
use headway_report::Slo;
use headway_sim::{Classification, Costs, Experiment};
use headway_workload::{Workload, duration};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A measurement's changes to the experiment's server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerChanges {
    /// Another workload.
    pub workload: Option<String>,
    /// Another number of servers.
    pub servers: Option<usize>,
    /// Another number of workers.
    pub workers: Option<usize>,
    /// Another number of arrivals of a run.
    pub requests: Option<u64>,
    /// Another network time to add to every latency: `0us`.
    pub network: Option<String>,
    /// The fraction of the arrivals that is discarded, instead of a tenth.
    pub warm_up: Option<f64>,
    /// Only these systems.
    pub systems: Option<Vec<String>>,
}

/// A measurement in its experiment.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    /// The experiment's name.
    pub(crate) experiment: &'a str,
    pub(crate) server: &'a ExperimentServer,
    /// The experiment's own workloads.
    pub(crate) workloads: &'a BTreeMap<String, toml::Table>,
    pub(crate) systems: &'a [ComparedSystem],
    /// The measurement's id, which prefixes the systems in its figures; may be empty.
    pub(crate) id: &'a str,
    pub(crate) extent: RunLength,
    /// The [cutoff](Experiment::cutoff) of every run.
    pub(crate) cutoff: Option<&'a Arc<AtomicBool>>,
}

/// A system, ready to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedSystem {
    /// Name in the results.
    pub(crate) system: String,
    /// The simulation, still without its offered load.
    pub(crate) simulation: Experiment,
    /// The flags that repeat the simulation, if flags can express it.
    flags: Option<String>,
}

impl<'a> Setting<'a> {
    /// Length of the runs.
    #[must_use]
    pub fn extent(&self) -> RunLength {
        self.extent
    }

    /// The server that the experiment's measurements simulate.
    #[must_use]
    pub fn server(&self) -> &'a ExperimentServer {
        self.server
    }

    /// A workload of the file, or of the literature.
    ///
    /// # Errors
    /// No workload has this name, or the workload is invalid.
    pub fn workload(&self, name: &str) -> Result<Workload, ReproduceError> {
        let Some(own) = self.workloads.get(name) else {
            return Ok(Workload::resolve(name)?);
        };
        let text =
            toml::to_string(own).map_err(|error| ReproduceError::file(self.experiment, error))?;
        let place = format!("{}.toml", name);
        Ok(Workload::from_toml_str(&text, place)?)
    }

    /// The system's name in the results: behind `ID/` if the measurement has an id.
    #[must_use]
    pub fn label(&self, system: &str) -> String {
        match self.id {
            "" => system.into(),
            id => format!("{id}/{system}"),
        }
    }

    /// A mistake in the file.
    pub fn fault(&self, problem: impl std::fmt::Display) -> ReproduceError {
        ReproduceError::file(self.experiment, problem)
    }

    /// Parses an SLO and checks that the workload has its classes.
    pub(crate) fn slo(&self, text: &str, workload: &Workload) -> Result<Slo, ReproduceError> {
        let slo: Slo = text.parse()?;
        slo.check_classes(workload.class_names())?;
        Ok(slo)
    }

    /// Parses names of figures.
    pub(crate) fn parsed<T: FromStr<Err = String>>(
        &self,
        names: &[String],
    ) -> Result<Vec<T>, ReproduceError> {
        names
            .iter()
            .map(|name: &String| name.parse().map_err(|problem| self.fault(problem)))
            .collect()
    }

    /// Parses names of a run's figures and checks that the workload has their classes.
    pub(crate) fn observables(
        &self,
        names: &[String],
        workload: &Workload,
    ) -> Result<Vec<Observable>, ReproduceError> {
        let observables: Vec<Observable> = self.parsed(names)?;
        let classes = workload.class_names();
        let unknown = observables
            .iter()
            .filter_map(Observable::class)
            .find(|name| !classes.contains(name));
        match unknown {
            Some(class) => Err(self.fault(format!("the workload has no class `{class}`"))),
            None => Ok(observables),
        }
    }

    /// The systems of a measurement.
    pub(crate) fn systems(
        &self,
        on: &ServerChanges,
    ) -> Result<Vec<&'a ComparedSystem>, ReproduceError> {
        let all = self.systems;
        let Some(names) = &on.systems else {
            return Ok(all.iter().collect());
        };
        names
            .iter()
            .map(|name: &String| {
                let found = all.iter().find(|system| system.name == *name);
                found.ok_or_else(|| self.fault(format!("no system is called `{name}`")))
            })
            .collect()
    }

    /// Prepares a system's simulation; `inserted` replaces `{}` in its policy.
    pub(crate) fn subject(
        &self,
        system: &ComparedSystem,
        on: &ServerChanges,
        inserted: &str,
    ) -> Result<SimulatedSystem, ReproduceError> {
        let server = self.server;
        let name = on.workload.as_ref().unwrap_or(&server.workload);
        let workload = self.workload(name)?;
        let policy = system.policy.replace("{}", inserted);
        let mut simulation = Experiment::new(workload, policy.parse()?)
            .servers(on.servers.unwrap_or(server.servers))
            .workers(on.workers.or(system.workers).unwrap_or(server.workers))
            .requests(self.extent.requests(on.requests.unwrap_or(server.requests)))
            .seed(server.seed);
        let time = |text: &Option<String>| match text {
            None => Ok(0),
            Some(text) => duration::parse(text).map_err(|problem| self.fault(problem)),
        };
        simulation.costs.dispatch_ns = time(&system.dispatch_cost)?;
        simulation.costs.requeue_ns = time(&system.requeue_cost)?;
        simulation.costs.overhead_ns = time(&system.overhead)?;
        simulation.costs.proc_permille = system.instrumentation_permille;
        simulation.costs.dispatcher_slowdown_percent = system.dispatcher_slowdown_percent;
        let network = on.network.as_ref().or(server.network.as_ref());
        simulation.network_ns = time(&network.cloned())?;
        simulation.cutoff = self.cutoff.cloned();
        simulation.warm_up = on.warm_up.unwrap_or(simulation.warm_up);
        if system.random_classifier {
            simulation.classifier = Classification::Random;
        }
        simulation.check()?;
        let flags = self.flags(name, &simulation);
        Ok(SimulatedSystem {
            system: self.label(&system.name),
            simulation,
            flags,
        })
    }

    /// The flags that repeat a simulation, if flags can express all of it.
    fn flags(&self, workload: &str, of: &Experiment) -> Option<String> {
        let plain = Experiment::new(of.workload.clone(), of.policy.clone());
        let dispatch_only = Costs {
            dispatch_ns: of.costs.dispatch_ns,
            ..Costs::default()
        };
        let is_own = self.workloads.contains_key(workload);
        let is_sayable = of.costs == dispatch_only
            && of.classifier == plain.classifier
            && of.warm_up == plain.warm_up;
        if is_own || !is_sayable {
            return None;
        }
        let mut flags = format!(
            "--policy {} --workload {workload} --workers {} --requests {} --seed {}",
            of.policy,
            of.workers,
            of.expected_requests() as u64,
            of.seed,
        );
        if of.servers > 1 {
            flags += &format!(" --servers {}", of.servers);
        }
        let times = [
            ("--dispatch-cost", of.costs.dispatch_ns),
            ("--network", of.network_ns),
        ];
        for (flag, ns) in times.into_iter().filter(|(_, ns)| *ns > 0) {
            flags += &format!(" {flag} {ns}ns");
        }
        Some(flags)
    }
}

impl SimulatedSystem {
    /// The command that repeats a task: `headway VERB FLAGS REST`.
    pub(crate) fn command(&self, verb: &str, rest: &str) -> Option<String> {
        let flags = self.flags.as_ref()?;
        Some(format!("headway {verb} {flags} {rest}"))
    }

    /// One figure of the system.
    pub(crate) fn datum(
        &self,
        what: &(impl ToString + ?Sized),
        x: Option<f64>,
        value: f64,
    ) -> Datum {
        Datum {
            system: self.system.clone(),
            what: what.to_string(),
            axis: String::new(),
            x,
            value,
            rests_on: None,
        }
    }
}
