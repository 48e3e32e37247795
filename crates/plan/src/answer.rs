//! The plan that answers a question.

use crate::bounds::impossible;
use crate::question::{PlanError, PlanProgress, Question};
use crate::search::{Ranked, Search, search};
use crate::situations::{cores, sensitivity};
use crate::trial::{SeededTask, try_all};
use headway_policy::Resume;
use headway_report::slo::{Scope, Statistic};
use headway_report::{
    CoresNeeded, Impossible, PlanReport, PlanVerdict, Run, ShownBy, TrialResult, format,
};
use headway_workload::Arrivals;

/// Answers a question. `progress` is called with every stage and every finished run.
///
/// # Errors
/// [`PlanError`] when the workload, a figure or the SLO is not valid.
pub fn plan(
    question: &Question,
    mut progress: impl FnMut(PlanProgress),
) -> Result<PlanReport, PlanError> {
    let names = question.workload.class_names();
    question.slo.check_classes(names.iter().copied())?;
    let probe = SeededTask {
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
    let sensitivity = if hopeless {
        Vec::new()
    } else {
        sensitivity(question, best, &mut progress)?
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
        verdict: if hopeless {
            PlanVerdict::Impossible
        } else if best.tried.all_met() {
            PlanVerdict::Met
        } else {
            PlanVerdict::Missed
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

/// For the best candidate, the best live one, and the baseline. Empty where the service times alone
/// exceed a bound, since more workers cannot help then.
fn all_cores(
    question: &Question,
    found: &Search,
    impossible: &[Impossible],
    progress: &mut impl FnMut(PlanProgress),
) -> Result<Vec<CoresNeeded>, PlanError> {
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

/// The best candidate on the recorded arrivals: a single run, since nothing in it is random.
fn replay(
    question: &Question,
    best: &Ranked,
    progress: &mut impl FnMut(PlanProgress),
) -> Result<Option<TrialResult>, PlanError> {
    let Some(workload) = &question.replay else {
        return Ok(None);
    };
    let task = SeededTask {
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
    let dispatchers = best.policy.facts().dispatchers;
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

/// Warns of a percentile that rests on a handful of requests per run.
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
    let count = |scope: &Scope| match scope {
        Scope::Class(name) => run.class(name).map_or(0, |class| class.count),
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
