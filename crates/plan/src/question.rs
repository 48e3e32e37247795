//! What is asked, and the plan that answers it.

use crate::bounds::impossible;
use crate::search::{Ranked, Search, search};
use crate::servers::facts;
use crate::situations::{cores, sensitivity};
use crate::trial::{Task, try_all};
use headway_policy::Resume;
use headway_policy::spec::{Spec, SpecError};
use headway_report::slo::{Slo, SloError, Statistic};
use headway_report::{PlanReport, PlanVerdict, Run, ShownBy, Trial, format};
use headway_sim::{Costs, Offered, SimError, available_threads};
use headway_workload::{Arrivals, Workload};

/// What is to be planned.
#[derive(Clone, Debug)]
pub struct Question {
    /// What arrives.
    pub workload: Workload,
    /// How much of it.
    pub offered: Offered,
    /// What must hold.
    pub slo: Slo,
    /// Workers that the candidates are ranked with, one dispatcher beside them not counted.
    pub workers: usize,
    /// Cores of the machine, where the candidates share them with what dispatches: each has those as workers that its
    /// dispatchers and timers leave. None: every candidate has `workers`, whatever else it takes.
    pub cores: Option<usize>,
    /// Arrivals of each run of the last round; the first tenth is not measured.
    pub requests: u64,
    /// Runs of each candidate in the last round, of consecutive seeds; at least 2 for intervals.
    pub replications: u64,
    /// Seed of the first.
    pub seed: u64,
    /// What the machinery costs.
    pub costs: Costs,
    /// What receiving a request costs besides, ns: the dispatcher, or the worker under a policy without one.
    pub receive_ns: u64,
    /// Added to every latency, ns.
    pub network_ns: u64,
    /// Most requests in one queue.
    pub queue_limit: usize,
    /// Where interrupted requests may go on; policies that cannot keep to it are not tried.
    pub resume: Resume,
    /// Policies to be tried, with the parameters that are fixed; all of the table where none is given.
    pub policies: Option<Vec<Spec>>,
    /// Whether the live server runs a policy.
    pub live: fn(&Spec) -> bool,
    /// The trace behind the workload, to try the best on.
    pub replay: Option<Workload>,
    /// Threads; the plan does not depend on it.
    pub threads: usize,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The table, or a policy's parameters.
    #[error(transparent)]
    Policy(#[from] SpecError),
    /// The runs.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The SLO.
    #[error(transparent)]
    Slo(#[from] SloError),
    /// None of the policies named is in the table, or makes sense for the workload.
    #[error("none of the policies to try is a candidate for this workload")]
    NoCandidates,
}

/// What the planner is at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    /// A stage of so many runs begins.
    Stage(&'static str, u64),
    /// A run is done.
    Run,
}

impl Question {
    /// Ideal costs, 400 000 requests, 5 replications from seed 1.
    #[must_use]
    pub fn new(workload: Workload, slo: Slo, workers: usize, offered: Offered) -> Self {
        Self {
            workload,
            offered,
            slo,
            workers,
            cores: None,
            requests: 400_000,
            replications: 5,
            seed: 1,
            costs: Costs::default(),
            receive_ns: 0,
            network_ns: 0,
            queue_limit: usize::MAX,
            resume: Resume::Anywhere,
            policies: None,
            live: |_| true,
            replay: None,
            threads: available_threads(),
        }
    }
}

/// Answers a question; `progress` hears what is going on.
///
/// # Errors
/// [`PlanError`] when the workload, a figure or the SLO is not valid.
pub fn plan(
    question: &Question,
    mut progress: impl FnMut(Progress),
) -> Result<PlanReport, PlanError> {
    let names = question.workload.class_names();
    question.slo.check_classes(names.iter().copied())?;
    let probe = Task {
        policy: "c-fcfs".parse()?,
        workload: question.workload.clone(),
        workers: question.workers,
        offered: question.offered,
        requests: question.requests,
        replications: question.replications,
        seed: question.seed,
    };
    question.experiment(&probe, question.seed).check()?;
    let impossible = impossible(question);
    let found = search(question, &mut progress)?;
    let best = found.best();
    let hopeless = !impossible.is_empty();
    let sensitivity = match hopeless {
        true => Vec::new(),
        false => sensitivity(question, best, &mut progress)?,
    };
    let rate = question.rate_rps();
    let (ranking, comparison) = found.entries();
    Ok(PlanReport {
        slo: question.slo.to_string(),
        workload: question.workload.name.clone(),
        ideal: question.costs.is_free(),
        machine_cores: question.cores,
        workers: question.workers,
        load: question.workload.load_for_rate(rate, question.workers),
        offered_rps: rate,
        seed: question.seed,
        verdict: match (hopeless, best.tried.all_met()) {
            (true, _) => PlanVerdict::Impossible,
            (false, true) => PlanVerdict::Met,
            (false, false) => PlanVerdict::Missed,
        },
        caveats: caveats(question, &found, hopeless),
        ranking,
        comparison,
        live: found.best_live().map(|one| one.policy.to_string()),
        cores: all_cores(question, &found, &impossible, &mut progress)?,
        replay: replay(question, best, &mut progress)?,
        rounds: found.rounds,
        sensitivity,
        impossible,
        validation: None,
    })
}

/// Of the best, the best live one, and the baseline. More workers do not help where the service
/// itself is too long, and change nothing in a trace that is not to be scaled.
fn all_cores(
    question: &Question,
    found: &Search,
    impossible: &[headway_report::Impossible],
    progress: &mut impl FnMut(Progress),
) -> Result<Vec<headway_report::CoresNeeded>, PlanError> {
    if impossible
        .iter()
        .any(|one| one.shown_by == ShownBy::ServiceTime)
    {
        return Ok(Vec::new());
    }
    let mut of: Vec<&Ranked> = vec![found.best()];
    for more in [found.best_live(), found.baseline()].into_iter().flatten() {
        if of.iter().all(|one| one.policy != more.policy) {
            of.push(more);
        }
    }
    of.into_iter()
        .map(|one| cores(question, one, progress))
        .collect()
}

/// The best on the recorded arrivals: one run, since there is nothing random in it.
fn replay(
    question: &Question,
    best: &Ranked,
    progress: &mut impl FnMut(Progress),
) -> Result<Option<Trial>, PlanError> {
    let Some(workload) = &question.replay else {
        return Ok(None);
    };
    let task = Task {
        policy: best.tried.task.policy.clone(),
        workload: workload.clone(),
        workers: best.tried.task.workers,
        offered: question.offered,
        requests: u64::MAX >> 16,
        replications: 1,
        seed: question.seed,
    };
    let tried = try_all(question, vec![task], "replaying", progress)?;
    Ok(Some(tried[0].report(&best.policy)))
}

fn caveats(question: &Question, found: &Search, hopeless: bool) -> Vec<String> {
    let mut caveats = Vec::new();
    if hopeless && found.best().tried.all_met() {
        caveats.push("the best met the SLO on what was drawn for this plan, which longer runs would not repeat".into());
    }
    if question.costs.is_free() {
        caveats.push("on an ideal machine, whose machinery costs nothing; --costs here measures this machine's, --costs FILE takes those of `headway calibrate -o FILE`".into());
    }
    if question.resume == Resume::OwnWorker && question.policies.is_none() {
        caveats.push("interrupted requests go on where they were interrupted; --resume anywhere also tries policies that move them".into());
    }
    if matches!(question.workload.arrivals, Arrivals::Trace(_)) {
        caveats.push("the trace is replayed as recorded: replications differ in the policy's own randomness only".into());
    }
    if !question.workload.phases.is_empty() {
        caveats
            .push("the mix changes over time: load and cores are those of the first phase".into());
    }
    if found.best().policy != found.best().tried.task.policy {
        let simulated = &found.best().tried.task.policy;
        caveats.push(format!(
            "simulated as {simulated}: the live server learns the profile first"
        ));
    }
    let best = found.best();
    let dispatchers = facts(&best.policy).map_or(1, |facts| facts.dispatchers);
    if dispatchers > 1 && question.cores.is_none() {
        caveats.push(format!(
            "{} takes {dispatchers} cores for its dispatchers, besides those of the workers",
            best.policy
        ));
    }
    caveats.extend(few_samples(
        question,
        &found.best().tried.replications[0].run,
    ));
    caveats
}

/// A percentile that rests on a handful of requests a run is not much of one.
fn few_samples(question: &Question, run: &Run) -> Option<String> {
    const ENOUGH: f64 = 10.0;
    let beyond = |statistic| match statistic {
        Statistic::P50 => 0.5,
        Statistic::P90 => 0.1,
        Statistic::P99 => 0.01,
        Statistic::P999 => 0.001,
        Statistic::Mean | Statistic::Max => 1.0,
    };
    let all: u64 = run.classes.iter().map(|class| class.count).sum();
    let count = |scope: &headway_report::slo::Scope| match scope {
        headway_report::slo::Scope::Class(name) => run.class(name).map_or(0, |class| class.count),
        _ => all,
    };
    let bounds = question.slo.bounds().iter();
    let rests_on = bounds.flat_map(|bound| {
        let scopes = bound.values(run).into_iter().map(|(scope, _)| scope);
        scopes.map(|scope| {
            (
                count(&scope) as f64 * beyond(bound.statistic),
                scope,
                bound.statistic,
            )
        })
    });
    let (requests, scope, statistic) = rests_on.min_by(|a, b| a.0.total_cmp(&b.0))?;
    (requests < ENOUGH).then(|| {
        format!(
            "{statistic} of {scope} rests on {} requests a run: ask for more --requests",
            format::significant(requests, 2)
        )
    })
}
