//! Scores the control plane's candidates by simulation (Pallas § 4.3, Algorithm 1).

use super::engine;
use super::rival::{Rival, objective_of};
use crate::error::SimError;
use crate::experiment::{CoreChange, Experiment};
use crate::outcome::Outcome;
use headway_policy::WorkerId;
use headway_policy::rack::{
    Bouncing, Cloning, ControlPlane, Demand, Grouping, Objective, RackSystem, Shaper, Turns,
};
use headway_report::Slo;
use headway_workload::{Class, Offered, ServiceDistribution, Workload};

/// Arrivals simulated for each candidate while time permits: enough to see that a single mixed group is overloaded.
const REQUESTS: u64 = 200_000;
/// Requests that one core simulates in a ms, all candidates together. Measured by `benches/rack.rs`: 2 900 to 4 500.
const REQUESTS_PER_MS: u64 = 3_000;
/// Fewest requests for a meaningful p99.
const FEWEST_REQUESTS: u64 = 2_000;
/// A run shorter than a trial limits the trials to this multiple of its length.
const SHORT_RUNS: u64 = 10;
/// Below this load almost no request queues, and every grouping is equally good.
const LOWEST_LOAD: f64 = 0.85;
/// Above this load every grouping is overloaded, and the scores are meaningless.
const HIGHEST_LOAD: f64 = 0.95;

/// The p99 of each candidate, in the control plane's order, under the same arrivals; infinite where it is overloaded or
/// certain to lie above another's.
pub(super) fn scores(
    experiment: &Experiment,
    control: &ControlPlane,
    load: f64,
    turns: Turns,
) -> Result<Vec<f64>, SimError> {
    if control.candidates().len() == 1 {
        // There is no choice.
        return Ok(vec![0.0]);
    }
    // Of several racks, only one is simulated: in the time for planning, thousands of cores would get a handful of requests each.
    let control = control.of_one_rack();
    let trial = trial(experiment, control.demand(), load, length(&control));
    scores_in(&trial, &control, turns)
}

/// An SLO of a live rack.
#[derive(Clone, PartialEq, Debug)]
pub struct RackSlo {
    /// Its bounds.
    pub slo: Slo,
    /// The names of the declared types, by which its bounds call them.
    pub declared: Vec<String>,
}

/// Scores the candidates of a live rack's control plane by trials on one core of this machine. Returns a score of each candidate in the
/// control plane's order, the input of [`ControlPlane::choose`]: its p99 by the control plane's objective, or with an SLO how far it uses the
/// tightest bound.
///
/// # Errors
/// [`SimError`] when there are more servers than a simulation has ([`MAX_SERVERS`](crate::MAX_SERVERS)), or no core.
pub fn score_candidates(
    cores: &[usize],
    control: &ControlPlane,
    load: f64,
    turns: Turns,
    slo: Option<&RackSlo>,
) -> Result<Vec<f64>, SimError> {
    if control.candidates().len() == 1 {
        return Ok(vec![0.0]);
    }
    let workers = cores.iter().copied().max().unwrap_or(0).max(1);
    let missing = cores
        .iter()
        .enumerate()
        .flat_map(|(server, &cores)| (cores..workers).map(move |core| server * workers + core));
    let core_changes = missing.map(|worker| CoreChange {
        at_ns: 0,
        worker: WorkerId(worker as u16),
        present: false,
    });
    let name = |number: usize| {
        let declared = slo.and_then(|slo| slo.declared.get(number));
        declared.cloned().unwrap_or(format!("type {number}"))
    };
    let names = (0..control.demand().types().len()).map(name);
    let classes = names.zip(control.demand().types()).map(|(name, hint)| {
        let mean_ns = (hint.mean_ns as u64).max(1);
        Class::new(name, hint.share, ServiceDistribution::Constant { mean_ns })
    });
    let workload = Workload::new("measured", classes.collect());
    let spec = "pallas".parse().map_err(SimError::from)?;
    let rack = Experiment {
        core_changes: core_changes.collect(),
        ..Experiment::new(workload, spec)
            .servers(cores.len())
            .workers(workers)
            .requests(REQUESTS)
    };
    rack.check()?;
    let trial = Experiment {
        core_changes: rack.core_changes.clone(),
        ..trial(&rack, control.demand(), load, length(control))
    }
    .offered(Offered::Load {
        load: load.clamp(LOWEST_LOAD, HIGHEST_LOAD),
        workers: cores.iter().sum(),
    });
    match slo {
        Some(slo) => scores_by_slo(&trial, control, turns, &slo.slo),
        None => scores_in(&trial, control, turns),
    }
}

/// For each candidate the largest ratio of a simulated value to its bound: up to 1 it keeps the SLO. Infinite where it is overloaded.
fn scores_by_slo(
    trial: &Experiment,
    control: &ControlPlane,
    turns: Turns,
    slo: &Slo,
) -> Result<Vec<f64>, SimError> {
    let score = |grouping| {
        let system = fixed(control, grouping, turns);
        let Outcome { run, .. } = engine::run(trial, system, None, scores)?;
        if run.meta.overloaded {
            return Ok(f64::INFINITY);
        }
        let ratios = slo.bounds().iter().flat_map(|bound| {
            let values = bound.values(&run).into_iter();
            values.map(|(_, value)| value / bound.at_most)
        });
        // A type without a request in the trial has no value.
        Ok(ratios.filter(|ratio| ratio.is_finite()).fold(0.0, f64::max))
    };
    control.candidates().iter().map(score).collect()
}

fn scores_in(
    trial: &Experiment,
    control: &ControlPlane,
    turns: Turns,
) -> Result<Vec<f64>, SimError> {
    let candidates = control.candidates();
    let objective = control.objective();
    let mut p99s = vec![f64::INFINITY; candidates.len()];
    let mut rival: Option<Rival> = None;
    // Candidates with the most groups run first: they mostly win, and the other trials then end early.
    for (grouping, score) in candidates.iter().zip(&mut p99s).rev() {
        let system = fixed(control, grouping, turns);
        let outcome = match rival {
            Some(rival) => engine::run_against(trial, system, scores, rival)?,
            None => Some(engine::run(trial, system, None, scores)?),
        };
        let Some(Outcome { run, recorder, .. }) = outcome.filter(|o| !o.run.meta.overloaded) else {
            continue;
        };
        *score = match objective {
            Objective::Slowdown => run.overall.slowdown.p99,
            Objective::Latency => run.overall.latency_us.p99,
        };
        let p99 = objective_of(objective, &recorder.overall()).quantile(0.99);
        let lowest = rival.map_or(u64::MAX, |rival| rival.p99);
        rival = p99
            .filter(|&p99| p99 < lowest)
            .map(|p99| Rival { objective, p99 })
            .or(rival);
    }
    Ok(p99s)
}

/// Requests of each trial. The first policy is generated offline (§ 4.2), each later one in the time for planning.
fn length(control: &ControlPlane) -> u64 {
    if control.revisions() == 0 || control.plan_ns() == 0 {
        return REQUESTS;
    }
    let all = control.plan_ns() * REQUESTS_PER_MS / 1_000_000;
    (all / control.candidates().len() as u64).clamp(FEWEST_REQUESTS, REQUESTS)
}

/// The demand as a workload: of a type, only the mean is known.
fn trial(experiment: &Experiment, demand: &Demand, load: f64, requests: u64) -> Experiment {
    let declared = experiment.workload.union();
    let known: f64 = demand.types().iter().map(|hint| hint.share).sum();
    let classes = declared.zip(demand.types()).map(|(class, hint)| {
        let mean_ns = (hint.mean_ns as u64).max(1);
        Class::new(
            &class.name,
            hint.share / known,
            ServiceDistribution::Constant { mean_ns },
        )
    });
    let workload = Workload::new("measured", classes.collect());
    let servers = experiment.servers / experiment.racks;
    let workers = servers * experiment.workers;
    let load = load.clamp(LOWEST_LOAD, HIGHEST_LOAD);
    let offered = Offered::Load { load, workers };
    Experiment {
        workload,
        servers,
        racks: 1,
        core_changes: Vec::new(),
        network_ns: 0,
        ..experiment.clone()
    }
    .offered(offered)
    .requests(
        requests
            .min(SHORT_RUNS * experiment.expected_requests() as u64)
            .max(1),
    )
}

/// The rack in one candidate's layout, without later changes.
fn fixed(control: &ControlPlane, grouping: &Grouping, turns: Turns) -> RackSystem<Shaper> {
    let mut control = control.clone();
    control.adopt(grouping.clone());
    let types = control.demand().types().len();
    let cores = control.layout().total();
    RackSystem {
        name: "pallas",
        params: Vec::new(),
        switch: Shaper::new(types, cores, turns, Cloning::Off, 1),
        control: Some(control),
        rtt_ns: 0,
        bouncing: Bouncing::Off,
        adapting: false,
    }
}
