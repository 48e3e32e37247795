//! What must hold in every world.

use std::ops::Range;

use headway_runtime::ShutdownError;

use crate::cores::{cores_are_granted, with_core};
use crate::longs;
use crate::network::{Fate, HandlerRun};
use crate::plans::{self, plans_are_kept};
use crate::play::WorldOutcome;
use crate::scenario::{MOST_ON_THE_WAY, OwnerOrder, Scenario};

/// What readings of the clock may add to the time for which a section held a request, ns.
const READS_NS: u64 = 5_000;

/// After its deadline a server gives up within this, ns: what runs is run to its end or its next probe.
const GIVE_UP_NS: u64 = 1_000_000_000;

/// What did not hold, a line each.
pub(crate) fn faults(scenario: &Scenario, outcome: &WorldOutcome) -> Vec<String> {
    let mut faults = Vec::new();
    threads_end(scenario, outcome, &mut faults);
    sections_are_kept(outcome, &mut faults);
    stops_accuse_nobody(scenario, outcome, &mut faults);
    for (delivery, fate) in outcome.log.fates.iter().enumerate() {
        one_fate(delivery, fate, &mut faults);
    }
    counts_add_up(scenario, outcome, &mut faults);
    a_stop_takes_in_what_came_before(scenario, outcome, &mut faults);
    nobody_idles_beside_work(scenario, outcome, &mut faults);
    queues_keep_their_bounds(scenario, outcome, &mut faults);
    quanta_end(scenario, outcome, &mut faults);
    plans_are_kept(scenario, outcome, &mut faults);
    duties_are_carried_out(scenario, outcome, &mut faults);
    longs::longs_give_way(scenario, outcome, &mut faults);
    cores_are_granted(scenario, outcome, &mut faults);
    faults
}

fn threads_end(scenario: &Scenario, outcome: &WorldOutcome, faults: &mut Vec<String>) {
    match &outcome.stats {
        Err(ShutdownError::Crashed { threads }) if scenario.crash.is_some() => {
            if threads.len() != 1 {
                faults.push(format!("one thread panicked, not these: {threads:?}"));
            }
        }
        Err(error) => faults.push(format!("the server did not end as it should: {error}")),
        Ok(_) => {}
    }
    for name in &outcome.past.left {
        faults.push(format!("the thread {name} did not end"));
    }
    let deadline_ns = u64::try_from(scenario.deadline.as_nanos()).unwrap_or(u64::MAX);
    let took_ns = outcome.ended_ns - outcome.stop_ns;
    if took_ns > deadline_ns.saturating_add(GIVE_UP_NS) {
        faults.push(format!(
            "the stop took {took_ns} ns, its deadline was {deadline_ns} ns"
        ));
    }
}

/// A datagram runs at most once, and is answered or refused at most once, if it was taken in.
fn one_fate(delivery: usize, fate: &Fate, faults: &mut Vec<String>) {
    let responses = fate.answered_ns.len() + fate.refused_ns.len() + fate.handed_back_ns.len();
    let mut fault = |what: &str| faults.push(format!("datagram {delivery} {what}: {fate:?}"));
    if fate.begun_ns.len() > 1 {
        fault("ran more than once");
    }
    if responses > 1 {
        fault("had more than one response");
    }
    if fate.taken_ns.is_none() && responses + fate.begun_ns.len() > 0 {
        fault("was answered though the server never took it in");
    }
    if let (Some(answered_ns), Some(begun_ns)) = (fate.answered_ns.first(), fate.begun_ns.first())
        && answered_ns < begun_ns
    {
        fault("was answered before it ran");
    }
}

/// A graceful stop takes in all that had come, to answer or refuse it.
fn a_stop_takes_in_what_came_before(
    scenario: &Scenario,
    outcome: &WorldOutcome,
    faults: &mut Vec<String>,
) {
    if !scenario.is_patient() || outcome.stats.is_err() {
        return;
    }
    let fates = outcome.log.fates.iter().zip(&scenario.datagrams);
    for (delivery, (fate, datagram)) in fates.enumerate() {
        let came_ns = outcome.start_ns + datagram.at_ns;
        let before = came_ns < outcome.stop_ns;
        // With few buffers some of what came before finds none.
        if before && fate.turned_away && scenario.slots.is_none() {
            faults.push(format!(
                "datagram {delivery} came at {came_ns} ns, before the stop at {} ns, and was turned away as if it had come later",
                outcome.stop_ns
            ));
        }
        if before && fate.taken_ns.is_none() && !fate.dropped {
            faults.push(format!(
                "datagram {delivery} came at {came_ns} ns, before the stop at {} ns, and was never taken in",
                outcome.stop_ns
            ));
        }
    }
}

/// Handlers that meet probes yield within microseconds of their own time, so none of them overruns, however long its core stood still.
fn stops_accuse_nobody(scenario: &Scenario, outcome: &WorldOutcome, faults: &mut Vec<String>) {
    let Ok(stats) = &outcome.stats else {
        return;
    };
    if !scenario.probes || scenario.by_feedback || scenario.sections {
        return;
    }
    for class in stats.classes.iter().filter(|class| class.overruns > 0) {
        faults.push(format!(
            "{} requests of class {} are said to overrun, though their handlers meet probes",
            class.overruns, class.name
        ));
    }
}

/// No request is interrupted where it must not be, and what is counted of long parts and of sections is what happened.
fn sections_are_kept(outcome: &WorldOutcome, faults: &mut Vec<String>) {
    for (delivery, fate) in outcome.log.fates.iter().enumerate() {
        if fate.interrupted_in_section {
            faults.push(format!("datagram {delivery} was interrupted in a section"));
        }
    }
    let Ok(stats) = &outcome.stats else {
        return;
    };
    let said = outcome.log.fates.iter().filter_map(|fate| fate.said_long);
    let said = said.fold([0; 3], |[begun, unended, unbegun], one| {
        [
            begun + one.begun,
            unended + one.unended,
            unbegun + one.unbegun,
        ]
    });
    let counted = stats.classes.iter().map(|class| class.feedback);
    let counted = counted.fold([0; 3], |[begun, unended, unbegun], one| {
        [
            begun + one.said_long,
            unended + one.unended,
            unbegun + one.unbegun,
        ]
    });
    if counted != said {
        faults.push(format!(
            "long parts begun, not ended, not begun: counted {counted:?}, and handlers said {said:?}"
        ));
    }
    let ran_ns: u64 = outcome
        .log
        .runs
        .iter()
        .map(|run| run.to_ns - run.from_ns)
        .sum();
    let stalled_ns: u64 = outcome
        .past
        .stalls
        .iter()
        .map(|stall| stall.1 - stall.0)
        .sum();
    for (section, held) in stats.classes.iter().flat_map(|class| class.held.kinds()) {
        let most_ns = ran_ns + stalled_ns + held.count * READS_NS;
        if held.count > 0 && !(1..=most_ns).contains(&held.ns) {
            faults.push(format!(
                "sections of {} held {} requests for {} ns in all, not within {most_ns} ns",
                section.name(),
                held.count,
                held.ns
            ));
        }
    }
}

/// Every datagram received is in exactly one count, and the counts are what happened.
fn counts_add_up(scenario: &Scenario, outcome: &WorldOutcome, faults: &mut Vec<String>) {
    let Ok(stats) = &outcome.stats else {
        return;
    };
    let fates = &outcome.log.fates;
    let count = |of: fn(&Fate) -> bool| fates.iter().filter(|fate| of(fate)).count() as u64;
    let mut equal = |what: &str, counted: u64, happened: u64| {
        if counted != happened {
            faults.push(format!(
                "{what}: counted {counted}, and it happened {happened} times"
            ));
        }
    };
    let taken = count(|fate| fate.taken_ns.is_some());
    equal("datagrams received", stats.received, taken);
    let begun = count(|fate| !fate.begun_ns.is_empty());
    let responses = count(|fate| !fate.answered_ns.is_empty());
    let refused = count(|fate| !fate.refused_ns.is_empty());
    let handed_back = count(|fate| !fate.handed_back_ns.is_empty());
    equal("requests handed back", stats.handed_back, handed_back);
    equal(
        "all counts together",
        stats.answered
            + stats.shed
            + stats.refused_draining
            + stats.malformed
            + stats.too_large
            + stats.abandoned
            + stats.handed_back,
        stats.received,
    );
    equal(
        "responses and refusals",
        stats.answered + stats.shed + stats.refused_draining,
        responses + refused,
    );
    equal(
        "requests given up",
        stats.abandoned,
        taken - responses - refused - handed_back,
    );
    // More may be dropped while the server counts, and after it.
    let dropped = count(|fate| fate.dropped);
    let at_most = stats.kernel_drops.min(dropped);
    equal(
        "dropped by the network, at most",
        stats.kernel_drops,
        at_most,
    );
    if scenario.is_patient() {
        equal("requests given up by a patient server", stats.abandoned, 0);
        equal("requests answered", stats.answered, begun);
    }
}

/// While a request waits, at the receive queue or behind it, no worker that may take it idles for longer than the policy's engine allows. Times around which a
/// core stood still are left out.
fn nobody_idles_beside_work(scenario: &Scenario, outcome: &WorldOutcome, faults: &mut Vec<String>) {
    let Some(most_idle_ns) = scenario.most_idle_ns() else {
        return;
    };
    let fates = outcome.log.fates.iter().zip(&scenario.datagrams);
    for (delivery, (fate, datagram)) in fates.enumerate() {
        let (Some(taken_ns), Some(begun_ns)) = (fate.taken_ns, fate.begun_ns.first()) else {
            continue;
        };
        // With few buffers a request may have to wait outside for one.
        let since_ns = if scenario.slots.is_none() {
            outcome.start_ns + datagram.at_ns
        } else {
            taken_ns
        };
        let may_take = plans::workers_of(scenario, outcome, fate);
        if scenario.follows_plan() && may_take.is_none() {
            continue;
        }
        for (number, worker) in outcome.past.workers.iter().enumerate() {
            if may_take.is_some_and(|workers| !workers.contains(number)) {
                continue;
            }
            for core in with_core(outcome, number) {
                let waited = core.start.max(since_ns)..core.end.min(*begun_ns);
                if waited.is_empty() {
                    continue;
                }
                let idle = outcome.longest_idle(*worker, &waited);
                let idle_ns = idle.end.saturating_sub(idle.start);
                let around = idle.start.saturating_sub(idle_ns)..idle.end;
                if idle_ns > most_idle_ns && !outcome.past.stalled(&around) {
                    faults.push(format!(
                        "datagram {delivery} waited while worker thread {worker} idled for {idle_ns} ns from {}: {fate:?}",
                        idle.start
                    ));
                }
            }
        }
    }
}

/// While a request waits, no other runs on for longer than a quantum and what it takes to interrupt it. Times around which a core stood still are left out.
fn quanta_end(scenario: &Scenario, outcome: &WorldOutcome, faults: &mut Vec<String>) {
    let Some(most_ns) = scenario.longest_turn_ns() else {
        return;
    };
    let turns = turns(&outcome.log.runs);
    // On granted cores a turn may span times without one.
    let turns: Vec<_> = turns
        .iter()
        .flat_map(|turn| cores_of(outcome, turn).map(move |core| (turn, core)))
        .collect();
    let fates = outcome.log.fates.iter().enumerate();
    for (delivery, fate) in fates {
        let (Some(taken_ns), Some(begun_ns)) = (fate.taken_ns, fate.begun_ns.first()) else {
            continue;
        };
        for (turn, core) in &turns {
            let within =
                turn.from_ns.max(taken_ns).max(core.start)..turn.to_ns.min(*begun_ns).min(core.end);
            let ran_ns = within.end.saturating_sub(within.start);
            if ran_ns > most_ns && !outcome.past.stalled(&within) {
                faults.push(format!(
                    "datagram {delivery} waited while {} ran on for {ran_ns} ns from {}: {fate:?}",
                    turn.delivery, within.start
                ));
            }
        }
    }
}

/// When the worker that this run was on had a core.
fn cores_of(outcome: &WorldOutcome, turn: &HandlerRun) -> impl Iterator<Item = Range<u64>> {
    let mut workers = outcome.past.workers.iter();
    let worker = workers.position(|&thread| thread == turn.thread);
    let worker = worker.expect("only workers run requests");
    with_core(outcome, worker).into_iter()
}

/// Runs of one request that follow each other on a thread, as one.
fn turns(runs: &[HandlerRun]) -> Vec<HandlerRun> {
    let mut turns: Vec<HandlerRun> = Vec::new();
    for run in runs {
        let last = turns
            .iter_mut()
            .rev()
            .find(|turn| turn.thread == run.thread);
        match last {
            Some(turn) if turn.delivery == run.delivery => turn.to_ns = run.to_ns,
            _ => turns.push(*run),
        }
    }
    turns
}

/// No more requests of a class wait than its queue holds, what is on the way to workers apart.
fn queues_keep_their_bounds(scenario: &Scenario, outcome: &WorldOutcome, faults: &mut Vec<String>) {
    if !scenario.limits_queues() {
        return;
    }
    for class in 0..2 {
        let mut changes: Vec<(u64, i64)> = Vec::new();
        let fates = outcome.log.fates.iter().zip(&scenario.datagrams);
        for (fate, _) in fates.filter(|(_, datagram)| datagram.class == class) {
            let (Some(taken_ns), Some(begun_ns)) = (fate.taken_ns, fate.begun_ns.first()) else {
                continue;
            };
            changes.push((taken_ns, 1));
            changes.push((*begun_ns, -1));
        }
        changes.sort_unstable();
        let mut waiting = 0;
        let most = changes.iter().map(|(_, change)| {
            waiting += change;
            waiting
        });
        let most = most.max().unwrap_or(0);
        let bound = scenario.queue_limit + scenario.workers * MOST_ON_THE_WAY;
        if most > bound as i64 {
            faults.push(format!(
                "{most} requests of class {class} waited in a queue for {bound}"
            ));
        }
    }
}

/// What a rack's control plane orders is carried out by a server that has the time, and only what its switch sent is handed back, not begun.
fn duties_are_carried_out(scenario: &Scenario, outcome: &WorldOutcome, faults: &mut Vec<String>) {
    let Some(counts) = outcome.rack else {
        return;
    };
    let fates = outcome.log.fates.iter().zip(&scenario.datagrams);
    for (delivery, (fate, datagram)) in fates.enumerate() {
        if fate.handed_back_ns.is_empty() {
            continue;
        }
        if !datagram.by_switch || datagram.flag.is_bounced() || !fate.begun_ns.is_empty() {
            faults.push(format!(
                "datagram {delivery}, {datagram:?}, was handed back: {fate:?}"
            ));
        }
    }
    let given = scenario
        .orders
        .iter()
        .filter(|order| order.0 < scenario.stop_ns);
    let numbers = given.filter_map(|(_, order)| match order {
        OwnerOrder::Duty(duty) => Some(duty.number),
        _ => None,
    });
    let last = numbers.max().unwrap_or(0);
    if scenario.is_patient() && outcome.stats.is_ok() && counts.in_force != last {
        faults.push(format!("the last order was {last}: {counts:?}"));
    }
}
