//! The package's functions: each asks the library once, and gives the JSON that the command prints, with what a plot needs beside.

use crate::asked::{Asked, LoadTexts, Replications, SettingTexts, read, setup};
use crate::errors::{HeadwayError, guarded, mistaken, mistaken_at, refused};
use crate::interrupt::{Cutoff, apart};
use crate::workload::NativeWorkload;
use headway_plan::{PlanProgress, Question};
use headway_policy::spec::Spec;
use headway_policy::{Policy, PolicySpec};
use headway_report::schedule::{Runner, Slice};
use headway_report::{Histogram, Run};
use headway_sim::host::HostExperiment;
use headway_sim::{Costs, Experiment, Figure, MachineCosts, Outcome};
use headway_study::planned::{self, PlanLoad, fitted_json};
use headway_study::registry::policy_json;
use headway_study::sweep::{SweepProgress, intervals, replicated};
use headway_study::{app, capacity as carried, figures, host, parse, read_costs, shown_window};
use headway_workload::Arrivals;
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Arrivals of a run, unless it is said otherwise: the command's.
pub(crate) const SIM_REQUESTS: u64 = 2_000_000;
const SWEEP_REQUESTS: u64 = 1_000_000;

/// What a run records beside its figures.
#[derive(FromPyObject)]
pub(crate) struct Recording {
    timeline: Option<String>,
    schedule: bool,
    window: Option<String>,
}

/// What a host is asked beside.
#[derive(FromPyObject)]
pub(crate) struct HostAsked {
    apps: Vec<String>,
    threads_per_core: Option<u8>,
    costs: Option<String>,
}

/// One run of a server, a rack or a host.
#[pyfunction]
pub(crate) fn simulate(
    py: Python<'_>,
    asked: Asked,
    recording: Recording,
    of_host: HostAsked,
    cutoff: Option<&Cutoff>,
) -> PyResult<String> {
    let end = Cutoff::of_run(cutoff);
    if let PolicySpec::Host { spec, .. } = asked.policy()? {
        if recording.schedule || recording.timeline.is_some() {
            return Err(mistaken_at(
                "schedule",
                "the applications of a host are not drawn",
            ));
        }
        let mut experiment = host_experiment(&asked, spec, &of_host)?;
        experiment.cutoff = Some(Arc::clone(&end.cutoff));
        let outcome = apart(py, &end, None, |_| experiment.run())?.map_err(refused)?;
        return text(&json!({"run": outcome}));
    }
    let (mut experiment, note) = asked.experiment(SIM_REQUESTS, &end.cutoff)?;
    of_host.refuse(&experiment.policy)?;
    recorded(&mut experiment, &recording)?;
    let outcome = apart(py, &end, None, |_| experiment.run())?.map_err(refused)?;
    let mut answer = shown(&outcome);
    answer["note"] = note.into();
    answer["window_ns"] = json!(experiment.trace_window.map(|it| [it.start, it.end]));
    text(&answer)
}

/// Has the experiment record what is asked for.
pub(crate) fn recorded(experiment: &mut Experiment, recording: &Recording) -> PyResult<()> {
    experiment.timeline_ns = read("timeline", recording.timeline.as_deref(), parse::time)?;
    let window = read("window", recording.window.as_deref(), parse::window)?;
    if recording.schedule {
        if experiment.is_rack() || experiment.policy == PolicySpec::Fluid {
            let why =
                "only the workers of a single server are drawn, not those of a rack or of 'ps'";
            return Err(mistaken_at("schedule", why));
        }
        experiment.trace_window = Some(window.unwrap_or_else(|| shown_window(experiment)));
    }
    Ok(())
}

fn host_experiment(
    asked: &Asked,
    allocator: Spec,
    of_host: &HostAsked,
) -> PyResult<HostExperiment> {
    let setup = asked.setup()?;
    let cores = setup.workers;
    let apps = if of_host.apps.is_empty() {
        host::server_and_batch(asked.workload().clone(), asked.offered(cores)?, cores)
    } else {
        let read = of_host.apps.iter().map(|text| app(text, cores));
        let read: Result<Vec<_>, _> = read.collect();
        read.map_err(|error| mistaken(&error))?
    };
    let costs = of_host.costs.as_deref();
    let experiment = host::experiment(&setup, allocator, apps, of_host.threads_per_core, costs);
    experiment.map_err(refused)
}

impl HostAsked {
    /// Refuses what only a host has.
    fn refuse(&self, policy: &PolicySpec) -> PyResult<()> {
        let names = headway_policy::host::systems::NAMES.join(", ");
        if !self.apps.is_empty() {
            let why = format!(
                "'{policy}' does not share cores among applications; those that do: {names}"
            );
            return Err(mistaken_at("policy", why));
        }
        let why = format!("only a host has that: choose a policy of {names}");
        match (self.threads_per_core, &self.costs) {
            (Some(_), _) => Err(mistaken_at("threads_per_core", why)),
            (_, Some(_)) => Err(mistaken_at("host_costs", why)),
            _ => Ok(()),
        }
    }
}

/// What a run has to show: its figures, and what was recorded.
pub(crate) fn shown(outcome: &Outcome) -> Value {
    let latencies = outcome.recorder.classes().iter();
    let timeline = outcome.timeline.iter().map(|interval| {
        let classes = interval.classes.iter().map(|class| {
            let at = |quantile| class.quantile(quantile).map(|ns| ns as f64 / 1e3);
            json!([class.count(), at(0.5), at(0.99), at(0.999)])
        });
        json!({"from_ns": interval.from_ns, "classes": classes.collect::<Vec<_>>()})
    });
    let changes = outcome.plan_changes.iter();
    json!({
        "run": outcome.run,
        "curves": latencies.map(|class| curve(class.latency_ns(), class.slowdown_milli())).collect::<Vec<_>>(),
        "timeline": timeline.collect::<Vec<_>>(),
        "slices": outcome.slices.iter().map(slice).collect::<Vec<_>>(),
        "plan_changes": changes
            .map(|change| json!({"at_ns": change.at_ns, "reservation": change.reservation}))
            .collect::<Vec<_>>(),
    })
}

/// Quantiles of latency, µs, and slowdown, dense towards the tail.
fn curve(latency_ns: &Histogram, slowdown_milli: &Histogram) -> Value {
    const DECADES: u32 = 5;
    let tails = (0..DECADES).flat_map(|decade| {
        let scale = 0.1_f64.powi(decade as i32);
        (1..10).map(move |step| 1.0 - scale * f64::from(10 - step) / 10.0)
    });
    let rows = tails.filter_map(|quantile| {
        let latency_us = latency_ns.quantile(quantile)? as f64 / 1e3;
        let slowdown = slowdown_milli.quantile(quantile)? as f64 / 1e3;
        Some(json!([quantile, latency_us, slowdown]))
    });
    rows.collect::<Vec<_>>().into()
}

fn slice(slice: &Slice) -> Value {
    let (kind, number) = match slice.runner {
        Runner::Worker(number) => ("worker", number),
        Runner::Dispatcher(number) => ("dispatcher", number),
    };
    json!([
        slice.request,
        slice.class,
        slice.service_ns,
        kind,
        number,
        slice.waited_from_ns,
        slice.from_ns,
        slice.to_ns,
        slice.resumed,
        slice.done,
    ])
}

/// Refuses what [`sweep_point`] and the judgement of its runs would refuse, without a run.
#[pyfunction]
pub(crate) fn check(
    asked: Asked,
    replications: Replications,
    slo: Option<&str>,
) -> PyResult<Option<String>> {
    headway_study::traffic::check_scalable(asked.workload()).map_err(|error| mistaken(&error))?;
    let (experiment, note) = asked.experiment(SWEEP_REQUESTS, &Cutoff::of_run(None).cutoff)?;
    let classes = experiment.workload.class_names();
    replications.wanted(&classes)?;
    if let Some(slo) = slo {
        figures::slo(slo, &classes).map_err(|error| mistaken(&error))?;
    }
    Ok(note)
}

/// A policy at a load, with all its replications and their intervals.
#[pyfunction]
pub(crate) fn sweep_point(
    py: Python<'_>,
    asked: Asked,
    replications: Replications,
    threads: usize,
    cutoff: Option<&Cutoff>,
) -> PyResult<String> {
    let end = Cutoff::of_run(cutoff);
    headway_study::traffic::check_scalable(asked.workload()).map_err(|error| mistaken(&error))?;
    let (experiment, _) = asked.experiment(SWEEP_REQUESTS, &end.cutoff)?;
    let wanted = replications.wanted(&experiment.workload.class_names())?;
    let mut runs = apart(py, &end, None, |_| {
        let one = std::slice::from_ref(&experiment);
        replicated(one, threads, |runs| wanted.of(runs), |_: SweepProgress| {})
    })?
    .map_err(refused)?;
    let runs = runs.pop().unwrap_or_default();
    let intervals = intervals(&runs);
    text(&json!({
        "policy": experiment.policy.to_string(),
        "load": runs.first().map(|run| run.meta.load),
        "replications": runs.len(),
        "cut_off": experiment.is_cut_off(),
        "intervals": intervals,
        "runs": runs,
    }))
}

/// The intervals of a point's runs, given as JSON.
#[pyfunction]
pub(crate) fn intervals_of(runs: &str) -> PyResult<String> {
    let runs: Vec<Run> = serde_json::from_str(runs).map_err(|error| mistaken_at("runs", error))?;
    text(&intervals(&runs))
}

/// The highest load at which a policy meets an SLO.
#[pyfunction]
pub(crate) fn capacity(
    py: Python<'_>,
    asked: Asked,
    slo: &str,
    tolerance: f64,
    cutoff: Option<&Cutoff>,
) -> PyResult<String> {
    let end = Cutoff::of_run(cutoff);
    headway_study::traffic::check_scalable(asked.workload()).map_err(|error| mistaken(&error))?;
    let classes = asked.workload().class_names();
    let slo = figures::slo(slo, &classes).map_err(|error| mistaken(&error))?;
    let search = carried::search(tolerance).map_err(|error| mistaken(&error))?;
    let (experiment, _) = asked.experiment(SIM_REQUESTS, &end.cutoff)?;
    let found = apart(py, &end, None, |_| search.find_repeated(&experiment, &slo))?;
    let system = carried::SystemCapacity::of(&experiment, found.map_err(refused)?);
    text(&json!({
        "result": system.capacity,
        "unshown": system.unshown.map(|few| few.to_string()),
        "cut_off": system.cut_off,
    }))
}

/// What a plan is asked beside its load.
#[derive(FromPyObject)]
pub(crate) struct PlanAsked {
    slo: String,
    policies: Vec<String>,
    requests: String,
    replications: u64,
    cores: Option<usize>,
    threads: Option<usize>,
}

/// Which policy, parameters and number of workers meet an SLO. A trace is planned for by the workload that is fitted to it.
#[pyfunction]
pub(crate) fn plan(
    py: Python<'_>,
    workload: &NativeWorkload,
    at: LoadTexts,
    asked: PlanAsked,
    settings: SettingTexts,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let mut question = guarded(|| question(&workload.0, &at, &asked, &settings))?;
    let end = Cutoff::of_run(None);
    question.cutoff = Some(Arc::clone(&end.cutoff));
    let report = apart(py, &end, progress, |teller| {
        headway_plan::plan(&question, |progress| match progress {
            PlanProgress::Stage(_, runs) => teller.tell(0, runs),
            PlanProgress::Run => teller.tell(1, 0),
        })
    })?;
    text(&report.map_err(refused)?)
}

fn question(
    given: &headway_workload::Workload,
    at: &LoadTexts,
    asked: &PlanAsked,
    settings: &SettingTexts,
) -> PyResult<Question> {
    let setup = setup(settings)?;
    let fitted = match &given.arrivals {
        Arrivals::Trace(trace) => Some(trace.fit(given.name.as_str())),
        _ => None,
    };
    let trace = match &given.arrivals {
        Arrivals::Trace(trace) => Some(&**trace),
        _ => None,
    };
    let workload = fitted.as_ref().map_or(given, |fitted| &fitted.workload);
    let load = PlanLoad {
        load: at.load()?,
        rate_rps: at.rate_rps()?,
        cores: asked.cores,
    };
    let is_recorded = load.load.is_none() && load.rate_rps.is_none();
    let (offered, workers) = load.of(workload, trace).map_err(|error| mistaken(&error))?;
    let classes = workload.class_names();
    let slo = figures::slo(&asked.slo, &classes).map_err(|error| mistaken(&error))?;
    if !(2..=1000).contains(&asked.replications) {
        return Err(mistaken_at("replications", "must be 2 to 1000"));
    }
    let costs = match &setup.costs {
        None => MachineCosts::default(),
        Some(path) => {
            let measured = read_costs(Path::new(path));
            measured.map_err(|error| mistaken_at("costs", error))?.costs
        }
    };
    let costs = match setup.dispatch_ns {
        None => costs,
        Some(dispatch_ns) => costs.map(|costs| Costs {
            dispatch_ns,
            ..costs
        }),
    };
    let resume = settings.iter().any(|(name, _)| name == "resume");
    let resume = resume.then_some(setup.resume);
    let policies = planned::policies(&asked.policies, workload, workers, resume);
    let requests = parse::count(&asked.requests).map_err(|error| mistaken_at("requests", error))?;
    let default = Question::new(workload.clone(), slo, workers, offered);
    Ok(Question {
        requests,
        replications: asked.replications,
        seed: setup.seed,
        cores: Some(asked.cores.unwrap_or_else(|| planned::cores_for(workers))),
        costs,
        network_ns: setup.network_ns,
        queue_limit: setup.queue_limit.map_or(usize::MAX, |it| it as usize),
        resume,
        policies: policies.map_err(refused)?,
        live: headway_policy::server::systems::ServerSpec::runs_live,
        replay: (is_recorded && trace.is_some()).then(|| given.clone()),
        doubt: fitted.as_ref().and_then(|fitted| fitted.arrivals.doubt),
        threads: asked.threads.unwrap_or(default.threads),
        ..default
    })
}

/// The workload that is fitted to a trace, and how well it fits.
#[pyfunction]
pub(crate) fn fit(py: Python<'_>, workload: &NativeWorkload) -> PyResult<(NativeWorkload, String)> {
    let Arrivals::Trace(trace) = &workload.0.arrivals else {
        let why = "is no trace: there is nothing to fit";
        return Err(mistaken_at("workload", why));
    };
    let fitted = py.detach(|| trace.fit(workload.0.name.as_str()));
    let quality = text(&fitted_json(&fitted))?;
    Ok((NativeWorkload(fitted.workload), quality))
}

/// How much of an SLO a run uses: the largest figure ÷ its bound; infinite where it is overloaded.
#[pyfunction]
pub(crate) fn slo_use(slo: &str, run: &str) -> PyResult<f64> {
    let run: Run = serde_json::from_str(run).map_err(|error| mistaken_at("run", error))?;
    let classes: Vec<&str> = run.classes.iter().map(|it| it.name.as_str()).collect();
    let slo = figures::slo(slo, &classes).map_err(|error| mistaken(&error))?;
    if run.meta.overloaded {
        return Ok(f64::INFINITY);
    }
    let uses = slo.bounds().iter().map(|bound| {
        let figure = Figure {
            scope: bound.scope.clone(),
            measure: bound.measure,
            statistic: bound.statistic,
        };
        figure.of(&run) / bound.at_most
    });
    Ok(uses.fold(0.0, f64::max))
}

/// A policy's text as results have it.
#[pyfunction]
pub(crate) fn canonical(policy: &str) -> PyResult<String> {
    let policy = headway_study::any_policy(policy).map_err(|error| mistaken_at("policy", error))?;
    Ok(policy.to_string())
}

/// The mean of some figures with its Student-t interval.
#[pyfunction]
pub(crate) fn mean_interval(values: Vec<f64>) -> PyResult<String> {
    let interval = headway_report::stats::mean_interval(&values, headway_sim::CONFIDENCE);
    text(&interval.map_err(|error| mistaken_at("replications", error))?)
}

/// All policies with their parameters.
#[pyfunction]
pub(crate) fn policies() -> PyResult<String> {
    let all: Vec<Value> = Policy::all().map(|policy| policy_json(&policy)).collect();
    text(&all)
}

/// The loads of a text: `0.1..0.9:0.1`.
#[pyfunction]
pub(crate) fn loads(text: &str) -> PyResult<Vec<f64>> {
    parse::loads(text).map_err(|error| mistaken_at("loads", error))
}

/// Whether a run, as JSON, meets an SLO.
#[pyfunction]
pub(crate) fn meets(slo: &str, run: &str) -> PyResult<bool> {
    let run: Run = serde_json::from_str(run).map_err(|error| mistaken_at("run", error))?;
    let classes: Vec<&str> = run.classes.iter().map(|it| it.name.as_str()).collect();
    let slo = figures::slo(slo, &classes).map_err(|error| mistaken(&error))?;
    Ok(slo.evaluate(&run).map_err(refused)?.is_met())
}

pub(crate) fn text(answer: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(answer).map_err(|error| HeadwayError::new_err(error.to_string()))
}
