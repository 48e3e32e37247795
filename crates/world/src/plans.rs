//! What policies promise by their plans: which class runs on which workers.

use std::ops::Range;

use headway_policy::server::Order;
use headway_policy::{BitSet, ClassId, Plan};

use crate::network::{Fate, FirstRun};
use crate::play::WorldOutcome;
use crate::scenario::{OwnerOrder, Scenario};

/// The plans that a server published, by revision.
struct PublishedPlans<'a> {
    seen: &'a [(u64, Plan)],
    /// The last one.
    last: u64,
}

impl PublishedPlans<'_> {
    /// The plans by which a request may have been placed that was taken and begun while these revisions were in force; `None` where one of them was
    /// published and replaced before anybody looked.
    fn within(&self, revisions: Range<u64>) -> Option<Vec<&Plan>> {
        let within = revisions.start..revisions.end.min(self.last + 1);
        let plan = |revision| self.seen.iter().find(|plan| plan.0 == revision);
        within.map(|revision| Some(&plan(revision)?.1)).collect()
    }
}

/// No request begins on a worker that its plan does not give it.
pub(crate) fn plans_are_kept(
    scenario: &Scenario,
    outcome: &WorldOutcome,
    faults: &mut Vec<String>,
) {
    let own = [(0, darc_static(scenario))];
    let is_static = scenario.policy.name() == "darc-static";
    let changes = |order: &(u64, OwnerOrder)| matches!(order.1, OwnerOrder::Workers(_));
    if is_static && scenario.orders.iter().any(changes) {
        return;
    }
    let seen = if is_static {
        &own
    } else {
        &outcome.log.plans[..]
    };
    let Some((last, _)) = seen.last() else {
        return;
    };
    // After a panic nobody says which was the last.
    let last = outcome
        .stats
        .as_ref()
        .map_or(last + 1, |stats| stats.plan_revisions);
    let plans = PublishedPlans { seen, last };
    for (delivery, fate) in outcome.log.fates.iter().enumerate() {
        let Some(FirstRun {
            class,
            worker,
            revision,
        }) = fate.first_run
        else {
            continue;
        };
        let first = revision_at(outcome, fate.taken_ns.unwrap_or(0));
        // A plan is published after the first request was placed by it.
        let Some(plans) = plans.within(first..revision + 2) else {
            continue;
        };
        // A dispatcher that runs requests itself has a number after the workers'.
        let is_workers = usize::from(worker) < scenario.workers;
        if is_workers
            && !plans
                .iter()
                .any(|plan| allowed(plan, class).contains(worker.into()))
        {
            faults.push(format!(
                "datagram {delivery} of class {class} ran on worker {worker}, which no plan in force gave it: {fate:?}, {plans:?}"
            ));
        }
    }
}

/// For which workers a request waited that its plan gave it, where one plan was in force all the time.
pub(crate) fn workers_of(
    scenario: &Scenario,
    outcome: &WorldOutcome,
    fate: &Fate,
) -> Option<BitSet> {
    let run = fate.first_run?;
    if scenario.policy.name() == "darc-static" {
        return Some(allowed(&darc_static(scenario), run.class));
    }
    let first = revision_at(outcome, fate.taken_ns?);
    let is_last = outcome
        .stats
        .as_ref()
        .is_ok_and(|stats| stats.plan_revisions == run.revision);
    if first != run.revision || !is_last {
        return None;
    }
    let plan = outcome.log.plans.iter().find(|plan| plan.0 == first)?;
    Some(allowed(&plan.1, run.class))
}

fn allowed(plan: &Plan, class: u16) -> BitSet {
    let class = ClassId(class);
    plan.reserved(class).union(plan.stealable(class))
}

/// The last revision that a handler saw which began before.
fn revision_at(outcome: &WorldOutcome, at_ns: u64) -> u64 {
    let fates = outcome.log.fates.iter();
    let runs = fates.filter_map(|fate| Some((fate.begun_ns.first()?, fate.first_run?.revision)));
    let before = runs.filter(|(begun_ns, _)| **begun_ns <= at_ns);
    let first = outcome.log.plans.first().map_or(0, |plan| plan.0);
    before.map(|(_, revision)| revision).max().unwrap_or(first)
}

/// As `darc-static` says: one worker for the shortest class, which may use all; the others have the rest, and UNKNOWN the last.
fn darc_static(scenario: &Scenario) -> Plan {
    let workers = scenario.workers;
    let all = BitSet::range(0, workers);
    let mut plan = Plan::open(Order::Rank, (0..3).map(ClassId).collect(), all);
    if workers > 1 {
        plan.allow(ClassId(1), BitSet::EMPTY, BitSet::range(1, workers));
        plan.allow(
            ClassId(2),
            BitSet::EMPTY,
            BitSet::range(workers - 1, workers),
        );
    }
    plan
}
