//! What must hold in every world.

use crate::network::Fate;
use crate::play::Outcome;
use crate::scenario::Scenario;

/// For how long a request may wait beside workers that are idle, ns: wakes take up to 20 µs each, and threads look at their queues every few.
const IDLE_BESIDE_WORK_NS: u64 = 200_000;

/// After its deadline a server gives up within this, ns: what runs is run to its end or its next probe.
const GIVE_UP_NS: u64 = 1_000_000_000;

/// What did not hold, a line each.
pub(crate) fn faults(scenario: &Scenario, outcome: &Outcome) -> Vec<String> {
    let mut faults = Vec::new();
    threads_end(scenario, outcome, &mut faults);
    for (delivery, fate) in outcome.log.fates.iter().enumerate() {
        one_fate(delivery, fate, &mut faults);
    }
    counts_add_up(scenario, outcome, &mut faults);
    nobody_idles_beside_work(scenario, outcome, &mut faults);
    faults
}

fn threads_end(scenario: &Scenario, outcome: &Outcome, faults: &mut Vec<String>) {
    if let Err(error) = &outcome.stats {
        faults.push(format!("the server did not end as it should: {error}"));
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
    let responses = fate.answered_ns.len() + fate.refused_ns.len();
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

/// Every datagram received is in exactly one count, and the counts are what happened.
fn counts_add_up(scenario: &Scenario, outcome: &Outcome, faults: &mut Vec<String>) {
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
    equal(
        "dropped by the network",
        stats.kernel_drops,
        count(|fate| fate.dropped),
    );
    let begun = count(|fate| !fate.begun_ns.is_empty());
    let responses = count(|fate| !fate.answered_ns.is_empty());
    let refused = count(|fate| !fate.refused_ns.is_empty());
    equal(
        "all counts together",
        stats.answered
            + stats.shed
            + stats.refused_draining
            + stats.malformed
            + stats.too_large
            + stats.abandoned,
        stats.received,
    );
    equal(
        "responses and refusals",
        stats.answered + stats.shed + stats.refused_draining,
        responses + refused,
    );
    if scenario.is_patient() {
        equal("requests given up by a patient server", stats.abandoned, 0);
        equal("requests answered", stats.answered, begun);
        equal(
            "datagrams without a response",
            taken - responses - refused,
            0,
        );
    }
}

/// While a request that was taken in waits, no worker that may take it idles for long. Held against policies whose workers run whatever waits;
/// times in which a core stood still are left out.
fn nobody_idles_beside_work(scenario: &Scenario, outcome: &Outcome, faults: &mut Vec<String>) {
    if !scenario.conserves_work() {
        return;
    }
    let log = &outcome.log;
    for (delivery, fate) in log.fates.iter().enumerate() {
        let (Some(taken_ns), Some(begun_ns)) = (fate.taken_ns, fate.begun_ns.first()) else {
            continue;
        };
        let waited = taken_ns..*begun_ns;
        let busy_ns: u64 = log
            .runs
            .iter()
            .map(|run| overlap(&waited, run.from_ns, run.to_ns))
            .sum();
        let stalled_ns: u64 = outcome
            .past
            .stalls
            .iter()
            .map(|&(from_ns, to_ns)| overlap(&waited, from_ns, to_ns))
            .sum();
        let waited_ns = begun_ns.saturating_sub(taken_ns);
        let workers = scenario.workers as u64;
        let idle_ns = (waited_ns * workers).saturating_sub(busy_ns + stalled_ns * workers);
        // Each change between requests costs something, however many waited before.
        let changes = log.runs.len() as u64 * 2_000;
        if idle_ns > IDLE_BESIDE_WORK_NS * workers + changes {
            faults.push(format!(
                "datagram {delivery} waited {waited_ns} ns while the workers idled for {idle_ns} ns together: {fate:?}"
            ));
        }
    }
}

fn overlap(waited: &std::ops::Range<u64>, from_ns: u64, to_ns: u64) -> u64 {
    waited
        .end
        .min(to_ns)
        .saturating_sub(waited.start.max(from_ns))
}
