//! What a plan is for, in words, and what a trace was fitted by.

use crate::{Mistake, StudyError, explain, traffic};
use headway_plan::candidates_of;
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::SpecError;
use headway_policy::{MAX_WORKERS, Resume, Shape};
use headway_report::format;
use headway_workload::fit::{ClassFit, FitCandidate};
use headway_workload::{Arrivals, Fitted, Offered, Trace, Workload};
use serde_json::{Value, json};

const DEFAULT_LOAD: f64 = 0.8;
const DEFAULT_WORKERS: usize = 14;
/// The load by which the number of workers is chosen, where the rate is known.
const TARGET_LOAD: f64 = 0.7;

/// How much a plan's requests are offered, and to how many cores.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PlanLoad {
    /// The load, where it is given.
    pub load: Option<f64>,
    /// The rate, requests per second, where it is given.
    pub rate_rps: Option<f64>,
    /// The machine's cores, where they are known.
    pub cores: Option<usize>,
}

impl PlanLoad {
    /// The arrival rate and the number of workers. A `trace` is what the workload was fitted to.
    ///
    /// # Errors
    /// A trace whose requests arrive at once, with neither a load nor a rate; a load or a rate of a trace that is replayed; a rate that no server carries.
    pub fn of(
        &self,
        workload: &Workload,
        trace: Option<&Trace>,
    ) -> Result<(Offered, usize), Mistake> {
        let recorded = trace.and_then(Trace::rate_rps);
        let unsaid = self.load.is_none() && self.rate_rps.is_none();
        if trace.is_some() && recorded.is_none() && unsaid {
            return Err(Mistake::at(
                "trace",
                "all requests arrive at once: say how fast they come with --rate or --load",
            ));
        }
        self.check_rate(workload)?;
        let rate = match (self.load, self.rate_rps, &workload.arrivals) {
            (Some(_), ..) => None,
            (None, Some(rate), _) => Some(rate),
            (None, None, Arrivals::Trace(trace)) => trace.rate_rps(),
            (None, None, _) => recorded,
        };
        let for_rate = |rate: f64| {
            let workers = workload.load_for_rate(rate, 1) / TARGET_LOAD;
            (workers.ceil() as usize).clamp(1, MAX_WORKERS)
        };
        let workers = match (self.cores, rate) {
            (Some(cores), _) => (cores - 1).max(1),
            (None, Some(rate)) => for_rate(rate),
            (None, None) => DEFAULT_WORKERS,
        };
        let offered = match (rate, recorded) {
            (Some(rate), Some(_)) => Offered::Rate(rate),
            _ => traffic::offered(workload, self.load, self.rate_rps, workers, DEFAULT_LOAD)?,
        };
        Ok((offered, workers))
    }

    /// Refuses a rate that keeps more workers busy than any server has: every run would be overloaded.
    fn check_rate(&self, workload: &Workload) -> Result<(), Mistake> {
        let Some(rate_rps) = self.rate_rps else {
            return Ok(());
        };
        let busy = workload.load_for_rate(rate_rps, 1);
        if busy < MAX_WORKERS as f64 {
            return Ok(());
        }
        Err(Mistake::at(
            "rate",
            format!(
                "{} rps of {} keep {} workers busy, and a server has at most {MAX_WORKERS}: plan for one server's part, at most {} rps",
                format::metric(rate_rps),
                workload.name,
                format::metric(busy),
                format::metric(TARGET_LOAD * workload.rate_for_load(1.0, MAX_WORKERS)),
            ),
        ))
    }
}

/// The cores of a machine that nobody described, for so many workers: one more, for a dispatcher, where a server may have as many.
#[must_use]
pub fn cores_for(workers: usize) -> usize {
    (workers + 1).min(MAX_WORKERS)
}

/// The policies to try, where any are named.
///
/// # Errors
/// A policy is wrong, or none of them is a candidate.
pub fn policies(
    texts: &[String],
    workload: &Workload,
    workers: usize,
    resume: Option<Resume>,
) -> Result<Option<Vec<ServerSpec>>, StudyError> {
    let mut shape = Shape::new(workers);
    shape.resume = resume.unwrap_or(Resume::Anywhere);
    let read = || -> Result<Vec<ServerSpec>, SpecError> {
        let specs = texts.iter().map(|text| text.parse());
        let specs = specs.collect::<Result<Vec<ServerSpec>, _>>()?;
        candidates_of(&specs, workload, &shape)?;
        Ok(specs)
    };
    let specs = read().map_err(|error| Mistake::at("policy", explain(&error)))?;
    Ok((!specs.is_empty()).then_some(specs))
}

/// The quality of a fit: what `headway fit --format json` prints.
#[must_use]
pub fn fitted_json(fitted: &Fitted) -> Value {
    let candidate = |one: &FitCandidate| {
        json!({
            "distribution": one.name,
            "ks": one.ks,
            "mean_error": one.mean_error,
            "second_moment_error": one.second_moment_error,
        })
    };
    let arrivals = &fitted.arrivals;
    json!({
        "workload": fitted.workload.name,
        "arrivals": {
            "process": arrivals.process.name(),
            "rps": arrivals.rate_rps,
            "cv": arrivals.cv,
            "lag1": arrivals.lag1,
            "candidates": arrivals.distances.iter().map(|(name, ks): &(&str, f64)| json!({"process": name, "ks": ks})).collect::<Vec<_>>(),
            "doubt": arrivals.doubt.map(|doubt| doubt.to_string()),
        },
        "classes": fitted.classes.iter().map(|fit: &ClassFit| {
        json!({
            "name": fit.name,
            "count": fit.samples,
            "service_us": fit.mean_ns / 1e3,
            "scv": fit.scv,
            "chosen": candidate(fit.chosen()),
            "candidates": fit.candidates.iter().map(candidate).collect::<Vec<_>>(),
        })
    }).collect::<Vec<_>>(),
    })
}
