//! The result of a host's simulation.

use super::application::{AppState, Application};
use super::experiment::{AppWork, HostExperiment};
use super::windows::{Window, Windows};
use crate::outcome::value_json;
use headway_policy::spec::Params;
use headway_report::{Overall, Recorder, Run, RunExtras, RunLevel, RunMeta, Summary};
use serde::Serialize;

/// Sums over the host.
#[derive(Clone, Copy, Default)]
pub(super) struct HostTotals {
    /// Measured time the daemon was busy.
    pub(super) daemon_ns: u64,
    /// Whether the run ended before its time.
    pub(super) cut_off: bool,
}

/// The result of one application. Cores are averages over the measured time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AppOutcome {
    /// Its name.
    pub name: String,
    /// Whether it is a batch application: then it has no latency.
    pub batch: bool,
    /// Its own scheduler; none for a batch application.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Mean rate of arrivals offered while it was measured, requests per second.
    pub offered_rps: f64,
    /// Cores it held, each from the kthread's wake-up until the kthread has left.
    pub allocated_cores: f64,
    /// Cores' worth of service to requests, or of batch work.
    pub useful_cores: f64,
    /// Useful ÷ allocated: the CPU efficiency of the Shenango paper (§ 2).
    pub efficiency: f64,
    /// Cores given to it, per second.
    pub grants_per_s: f64,
    /// Cores taken from it, per second.
    pub preemptions_per_s: f64,
    /// Cores per second whose kthread had to be moved away because it did not leave in time.
    pub evictions_per_s: f64,
    /// Latency over all its classes, µs; not a number where nothing was served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<Summary>,
    /// Requests that never finished.
    pub unfinished: u64,
    /// Whether its backlog grew without bound.
    pub overloaded: bool,
    /// The tail over time, where the experiment asks for it.
    #[serde(skip)]
    pub windows: Vec<Window>,
}

/// The host's part of a report.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct HostFigures {
    /// Cores that no application held.
    pub idle_cores: f64,
    /// Cores given to applications, per second.
    pub reallocations_per_s: f64,
    /// Fraction of the daemon's time that it was busy.
    pub daemon_utilization: f64,
}

/// The result of an experiment. As JSON it is a [`Run`] of level `host`, whose classes are called
/// `application.class` where several applications serve, with `apps` and `host` beside.
#[derive(Clone, Debug, Serialize)]
pub struct HostOutcome {
    /// All applications that answer requests, together.
    #[serde(flatten)]
    pub run: Run,
    /// Each application, in the experiment's order.
    pub apps: Vec<AppOutcome>,
    /// The host itself.
    pub host: HostFigures,
    /// The histograms behind the report.
    #[serde(skip)]
    pub recorder: Recorder,
}

impl HostOutcome {
    pub(super) fn new(
        experiment: &HostExperiment,
        policy: &str,
        params: &Params,
        apps: Vec<Application>,
        totals: HostTotals,
    ) -> Self {
        let cores = experiment.topology.cores();
        let span_ns = apps.first().map_or(1, |app| app.measured.length_ns()) as f64;
        let recorder = all_classes(experiment, &apps);
        let apps: Vec<AppOutcome> = apps
            .into_iter()
            .zip(&experiment.apps)
            .map(|(app, spec)| AppOutcome::new(app, spec, experiment))
            .collect();
        let sum = |of: fn(&AppOutcome) -> f64| apps.iter().map(of).sum::<f64>();
        let host = HostFigures {
            idle_cores: cores as f64 - sum(|app| app.allocated_cores),
            reallocations_per_s: sum(|app| app.grants_per_s),
            daemon_utilization: totals.daemon_ns as f64 / span_ns,
        };
        let served: u64 = recorder.classes().iter().map(|class| class.count()).sum();
        let meta = RunMeta {
            policy: policy.into(),
            params: params
                .iter()
                .map(|(key, value)| ((*key).into(), value_json(value)))
                .collect(),
            level: RunLevel::Host,
            workload: names_of(experiment),
            workers: cores,
            seed: experiment.seed,
            requests: served + apps.iter().map(|app| app.unfinished).sum::<u64>(),
            offered_rps: sum(|app| app.offered_rps),
            achieved_rps: served as f64 * 1e9 / span_ns,
            load: load_of(experiment),
            utilization: sum(|app| app.useful_cores) / cores as f64,
            dropped: recorder.classes().iter().map(|class| class.dropped()).sum(),
            preemptions: (sum(|app| app.preemptions_per_s) * span_ns / 1e9).round() as u64,
            overloaded: apps.iter().any(|app| app.overloaded),
        };
        let overloaded = apps.iter().filter(|app| app.overloaded);
        let extras = RunExtras {
            cores: Some(cores),
            serving_cores: Some(cores),
            starved: overloaded.map(|app| app.name.clone()).collect(),
            costs: costs_json(experiment),
            cut_off: totals.cut_off,
            ..RunExtras::default()
        };
        Self {
            run: Run::new(meta, &recorder, extras),
            apps,
            host,
            recorder,
        }
    }

    /// The application called `name`.
    #[must_use]
    pub fn app(&self, name: &str) -> Option<&AppOutcome> {
        self.apps.iter().find(|app| app.name == name)
    }
}

impl AppOutcome {
    fn new(app: Application, spec: &super::App, experiment: &HostExperiment) -> Self {
        let (sums, span_ns) = (app.sums, app.measured.length_ns() as f64);
        let unfinished = app.in_flight() as u64;
        let cores = |ns: u64| ns as f64 / span_ns;
        let per_s = |count: u64| count as f64 * 1e9 / span_ns;
        let (mut latency_us, mut overloaded, mut windows) = (None, unfinished > 0, Vec::new());
        let batch = app.is_batch();
        if let AppState::Server(serving) = app.body {
            let most = spec.most.unwrap_or(experiment.topology.cores());
            overloaded |= !serving.backlog.starved(most).is_empty();
            latency_us = Some(Overall::of(&serving.recorder.overall()).latency_us);
            windows = serving.windows.map(Windows::close).unwrap_or_default();
        }
        Self {
            name: spec.name.clone(),
            batch,
            policy: match &spec.work {
                AppWork::Server { policy, .. } => Some(policy.to_string()),
                AppWork::Batch => None,
            },
            offered_rps: per_s(sums.arrivals),
            allocated_cores: cores(sums.allocated_ns),
            useful_cores: cores(sums.useful_ns),
            efficiency: sums.useful_ns as f64 / sums.allocated_ns as f64,
            grants_per_s: per_s(sums.grants),
            preemptions_per_s: per_s(sums.preempted),
            evictions_per_s: per_s(sums.evicted),
            latency_us,
            unfinished,
            overloaded,
            windows,
        }
    }
}

/// One recorder for all applications; where several serve, a class is called `application.class`.
fn all_classes(experiment: &HostExperiment, apps: &[Application]) -> Recorder {
    let serving = |app: &Application| match &app.body {
        AppState::Server(serving) => Some(serving.recorder.clone()),
        AppState::Batch => None,
    };
    let mut own = apps.iter().filter_map(serving);
    if let (Some(only), None) = (own.next(), own.next()) {
        return only;
    }
    let mut all = Recorder::new(&[]);
    for (app, spec) in apps.iter().zip(&experiment.apps) {
        if let AppState::Server(serving) = &app.body {
            all.append(&spec.name, &serving.recorder);
        }
    }
    all
}

fn names_of(experiment: &HostExperiment) -> String {
    let names: Vec<String> = experiment
        .apps
        .iter()
        .filter_map(|app: &super::App| match &app.work {
            AppWork::Server { workload, .. } => Some(workload.name.clone()),
            AppWork::Batch => None,
        })
        .collect();
    names.join("+")
}

/// Offered work of all applications together over all cores.
fn load_of(experiment: &HostExperiment) -> f64 {
    let cores = experiment.topology.cores();
    experiment
        .apps
        .iter()
        .map(|app: &super::App| match &app.work {
            AppWork::Server { workload, .. } => {
                workload.load_for_rate(app.mean_rate_rps(experiment.duration_ns), cores)
            }
            AppWork::Batch => 0.0,
        })
        .sum()
}

fn costs_json(experiment: &HostExperiment) -> Option<serde_json::Map<String, serde_json::Value>> {
    let Ok(serde_json::Value::Object(mut costs)) = serde_json::to_value(experiment.costs) else {
        return None;
    };
    costs.insert("network_ns".into(), experiment.network_ns.into());
    Some(costs)
}
