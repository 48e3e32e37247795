//! The plan that answers a question.

use crate::arrangement::PlannedServer;
use crate::bounds::impossible;
use crate::question::{PlanError, PlanProgress, Question};
use crate::ranked::Ranked;
use crate::search::{Search, search};
use crate::situations::{cores, stressed};
use crate::trial::SeededTask;
use headway_policy::Resume;
use headway_report::{CoresNeeded, Impossible, PlanReport, PlanVerdict, ShownBy};
use headway_workload::Arrivals;
use headway_workload::fit::Doubt;

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
        server: PlannedServer::new("c-fcfs".parse()?),
        workload: question.workload.clone(),
        workers: question.workers,
        offered: question.offered,
        requests: question.requests,
        replications: question.replications,
        seed: question.seed,
    };
    question.experiment(&probe, question.seed).check()?;
    let recording = question.on_the_recording();
    let impossible = impossible(recording.as_ref().unwrap_or(question));
    let found = search(question, &mut progress)?;
    let best = found.best();
    let hopeless = !impossible.is_empty();
    let sensitivity = match &found.stressed {
        _ if hopeless => Vec::new(),
        Some(stressed) => stressed.report(question, &best.policy),
        None => as_far_as_it_went(stressed(question, &[best], &mut progress))?
            .first()
            .map_or(Vec::new(), |stressed| {
                stressed.report(question, &best.policy)
            }),
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
        } else if !found.is_decided {
            PlanVerdict::Undecided
        } else if best.deciding().all_met() {
            PlanVerdict::Met
        } else {
            PlanVerdict::Missed
        },
        caveats: caveats(question, &found, hopeless),
        ranking,
        comparison,
        live: found.best_live().map(|one| one.policy.to_string()),
        cores: as_far_as_it_went(all_cores(question, &found, &impossible, &mut progress))?,
        replay: best
            .recorded
            .as_ref()
            .map(|tried| tried.report(&best.policy)),
        doubt: question.doubt.map(|doubt| doubt.to_string()),
        rounds: found.rounds,
        sensitivity,
        impossible,
        validation: None,
        cut_off: question.is_cut_off(),
    })
}

/// What a plan that is cut off leaves out is empty.
fn as_far_as_it_went<T>(found: Result<Vec<T>, PlanError>) -> Result<Vec<T>, PlanError> {
    match found {
        Err(PlanError::CutOff) => Ok(Vec::new()),
        found => found,
    }
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
        if of
            .iter()
            .all(|one| one.policy != more.policy || one.tried.task.server != more.tried.task.server)
        {
            of.push(more);
        }
    }
    of.into_iter()
        .map(|one| cores(question, one, progress))
        .collect()
}

fn caveats(question: &Question, found: &Search, hopeless: bool) -> Vec<String> {
    let mut caveats = Vec::new();
    if hopeless && found.best().deciding().all_met() {
        caveats.push("the best met the SLO on what was drawn for this plan, which longer runs would not repeat".into());
    }
    if question.costs.is_free() {
        caveats.push("on an ideal machine, whose machinery costs nothing; --costs here measures this machine's, --costs FILE takes those of `headway calibrate -o FILE`".into());
    }
    if let Some(limit) = question.begun_at_most {
        caveats.push(format!(
            "for a pool, in which at most {limit} requests have begun and not ended: a server begins any number"
        ));
    }
    if question.resume.is_none()
        && found.best().tried.task.server.resume == Resume::Anywhere
        && found.best().policy.facts().interrupts()
    {
        caveats.push(format!("under {} an interrupted request goes on at any worker: handlers must keep nothing of their thread's; --resume own-worker leaves such policies out", found.best().policy.name()));
    }
    if question.resume == Some(Resume::OwnWorker) && question.policies.is_none() {
        caveats.push("interrupted requests go on where they were interrupted; --resume anywhere also tries policies that move them".into());
    }
    if let Arrivals::Trace(trace) = &question.workload.arrivals {
        if trace.arrival_doubt() == Some(Doubt::TooCoarse) {
            caveats.push("the trace's clock is coarse: requests that share a recorded time arrive at once here".into());
        }
        if (trace.records().len() as u64) > question.requests {
            let (of, requests) = (trace.records().len(), question.requests);
            caveats.push(format!(
                "only the first {requests} of the trace's {of} requests were simulated: ask for more --requests"
            ));
        }
        caveats.push("the trace is replayed as recorded: replications differ in the policy's own randomness only".into());
    }
    if !question.workload.phases.is_empty() {
        caveats
            .push("the mix changes over time: load and cores are those of the first phase".into());
    }
    if found.best().policy != found.best().tried.task.server.policy {
        let simulated = &found.best().tried.task.server.policy;
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
    let remedy = match &best.recorded {
        Some(_) => "record for longer",
        None => "ask for more --requests",
    };
    let few = question
        .slo
        .few_samples(&best.deciding().replications[0].run);
    caveats.extend(few.map(|few| format!("{few} a run: {remedy}")));
    caveats
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_sim::Offered;
    use headway_workload::Trace;

    /// Waves of 200 requests in 10 ms, 90 ms apart, of 100 µs each: a fifth of a worker's work, and two workers' in a wave.
    fn waves() -> Trace {
        let rows = (0..4_000_u64).map(|n| {
            let at_us = n / 200 * 100_000 + n % 200 * 50 + n * n % 37;
            format!("{at_us},req,100\n")
        });
        let text = format!("time,class,service\n{}", rows.collect::<String>());
        Trace::from_csv_str(&text, "waves.csv").unwrap()
    }

    fn planned(workers: usize) -> PlanReport {
        let trace = waves();
        let fitted = trace.fit("waves");
        let rate = trace.rate_rps().unwrap();
        let slo = "overall.latency.p99<=1ms".parse().unwrap();
        let question = Question {
            requests: 20_000,
            replications: 2,
            policies: Some(vec!["c-fcfs".parse().unwrap(), "d-fcfs".parse().unwrap()]),
            replay: Some(trace.into_workload("waves")),
            doubt: fitted.arrivals.doubt,
            ..Question::new(fitted.workload, slo, workers, Offered::Rate(rate))
        };
        plan(&question, |_| {}).unwrap()
    }

    #[test]
    fn the_recording_decides_and_not_the_process_fitted_to_it() {
        let one = planned(1);
        let best = &one.ranking[0];
        assert_eq!(
            (best.met, best.replications),
            (2, 2),
            "the process is met: {best:?}"
        );
        assert!(one.verdict != PlanVerdict::Met, "{:?}", one.verdict);
        assert!(one.doubt.as_deref().is_some_and(|doubt| !doubt.is_empty()));
        let needed = one.cores[0].workers.unwrap();
        let met = |workers| {
            let report = planned(workers);
            assert_eq!(report.replay, report.ranking[0].replay);
            report.verdict == PlanVerdict::Met
        };
        assert!(needed > 1 && met(needed) && !met(needed - 1), "{needed}");
    }

    #[test]
    fn a_policy_that_was_asked_for_is_in_the_table_met_or_not() {
        let slo = "class.short.slowdown.p99<=5".parse().unwrap();
        let workload = headway_workload::Workload::named("high-bimodal").unwrap();
        let offered = Offered::Load {
            load: 0.8,
            workers: 4,
        };
        let names = ["darc", "concord", "shinjuku-sq", "wrr", "d-fcfs"];
        let question = Question {
            requests: 5_000,
            replications: 2,
            policies: Some(names.map(|name| name.parse().unwrap()).into()),
            ..Question::new(workload, slo, 4, offered)
        };
        let report = plan(&question, |_| {}).unwrap();
        for name in names {
            let mut entries = report.ranking.iter();
            let found = entries.any(|entry| entry.policy.split(',').next() == Some(name));
            assert!(found, "{name}: {:?}", report.ranking);
        }
    }

    /// A dispatcher's core is half of two: what carries the load does without.
    #[test]
    fn two_cores_carry_without_a_dispatchers_core_what_one_worker_cannot() {
        let slo = "class.*.slowdown.p999<=10".parse().unwrap();
        let workload = headway_workload::Workload::named("high-bimodal").unwrap();
        let offered = Offered::Load {
            load: 0.5,
            workers: 2,
        };
        let names = ["c-fcfs", "synergy", "srpt"];
        let two_cores = Question {
            requests: 20_000,
            replications: 2,
            cores: Some(2),
            resume: None,
            policies: Some(names.map(|name| name.parse().unwrap()).into()),
            ..Question::new(workload, slo, 1, offered)
        };
        let report = plan(&two_cores, |_| {}).unwrap();
        assert_eq!(report.verdict, PlanVerdict::Met, "{:?}", report.ranking);
        let best = &report.ranking[0];
        assert_eq!((best.workers, best.cores), (2, 2), "{best:?}");
        let mut dedicated = report.ranking.iter().filter(|one| one.workers == 1);
        let missed = |one: &headway_report::PlanEntry| one.met == 0 && one.cores == 2;
        assert!(dedicated.all(missed), "{:?}", report.ranking);
        for name in names {
            let mut entries = report.ranking.iter();
            let found = entries.any(|entry| entry.policy.starts_with(name));
            assert!(found, "{name}: {:?}", report.ranking);
        }
    }

    #[test]
    fn of_what_ties_the_one_that_bears_most_comes_first() {
        let plan_of = |policies: &[&str]| {
            let slo = "class.*.slowdown.p99<=10".parse().unwrap();
            let workload = headway_workload::Workload::named("high-bimodal").unwrap();
            let offered = Offered::Load {
                load: 0.6,
                workers: 4,
            };
            let policies = policies.iter().map(|name| name.parse().unwrap());
            let question = Question {
                requests: 10_000,
                replications: 2,
                policies: Some(policies.collect()),
                ..Question::new(workload, slo, 4, offered)
            };
            plan(&question, |_| {}).unwrap()
        };
        let report = plan_of(&[
            "synergy,factor=1",
            "synergy,factor=2",
            "synergy,factor=5",
            "shinjuku-ci,q=5us",
            "shinjuku-sq,q=5us",
        ]);
        let bears = |report: &PlanReport| {
            let trials = report.sensitivity.iter().map(|one| &one.trial);
            let missed = trials
                .clone()
                .filter(|one| one.met < one.replications)
                .count();
            let uses = trials.map(|one| one.slo_use.unwrap_or(f64::INFINITY));
            (missed, uses.fold(0.0, f64::max))
        };
        let tied: Vec<_> = report
            .ranking
            .iter()
            .skip(1)
            .filter(|one| one.tied)
            .collect();
        assert!(!tied.is_empty(), "{:?}", report.ranking);
        for other in tied {
            let alone = plan_of(&[&other.policy]);
            let (best, other) = (bears(&report), bears(&alone));
            assert!(best <= other, "{best:?} {other:?}: {:?}", report.ranking);
        }
    }
}
