//! What must hold where an arbiter grants and revokes the workers' cores.

use std::ops::Range;

use crate::granted::{CoreLog, CoreSpan};
use crate::play::WorldOutcome;
use crate::scenario::{MOST_ON_THE_WAY, Scenario};

/// For how long a request may wait beside a core that the arbiter would give, while it grants none, ns: a door looks every 0.1 ms at what nobody polled for as long, the arbiter
/// looks twice, and threads wake.
const UNASKED_NS: u64 = 400_000;

/// For how long a worker may keep a revoked core while it runs no request, ns: it looks, tells the dispatcher, and hands on what it holds.
const KEEPS_NS: u64 = 200_000;

/// For how long an interruptible request may run on a core after its worker has seen the revocation, ns: a look at the orders, a way to a probe, wakes.
const LEAVES_NS: u64 = 100_000;

/// What must hold of granted cores.
pub(crate) fn cores_are_granted(
    scenario: &Scenario,
    outcome: &WorldOutcome,
    faults: &mut Vec<String>,
) {
    let Some(cores) = &outcome.cores else { return };
    if cores.entered != scenario.workers || cores.ended != cores.entered {
        faults.push(format!(
            "of {} workers {} entered and {} gave their cores back at the end",
            scenario.workers, cores.entered, cores.ended
        ));
    }
    requests_have_cores_asked_for(scenario, outcome, cores, faults);
    revoked_cores_are_left(scenario, outcome, cores, faults);
}

/// While a request waits, to begin or to go on, and the arbiter has a core for a worker without one, the arbiter is asked.
fn requests_have_cores_asked_for(
    scenario: &Scenario,
    outcome: &WorldOutcome,
    cores: &CoreLog,
    faults: &mut Vec<String>,
) {
    if !scenario.is_polled_at_work() {
        return;
    }
    let closed_ns = cores.closed_ns.unwrap_or(outcome.ended_ns);
    let is_handed_on = scenario.admission().has_dispatcher && scenario.policy.facts().depth > 1;
    for (delivery, waited, taken_ns) in waits(scenario, outcome) {
        for spare in &cores.spare {
            let within = spare.start.max(waited.start)..spare.end.min(waited.end).min(closed_ns);
            let spare_ns = within.end.saturating_sub(within.start);
            // A request that its dispatcher hands to a worker that is busy waits for that worker, and no core more would help it.
            let has_worker = is_handed_on && within.end > taken_ns;
            if spare_ns > UNASKED_NS && !has_worker && !outcome.past.stalled(&within) {
                faults.push(format!(
                    "datagram {delivery} waited for {spare_ns} ns from {} beside a core that nobody asked for: {:?}",
                    within.start, outcome.log.fates[delivery]
                ));
            }
        }
    }
}

/// The times in which requests that began waited: to begin, and between two of their runs. With each, its delivery, and when it was taken in, ns.
fn waits(scenario: &Scenario, outcome: &WorldOutcome) -> Vec<(usize, Range<u64>, u64)> {
    let mut waits = Vec::new();
    let mut since_ns: Vec<u64> = scenario
        .datagrams
        .iter()
        .map(|datagram| outcome.start_ns + datagram.at_ns)
        .collect();
    for run in &outcome.log.runs {
        let delivery = run.delivery as usize;
        let taken_ns = outcome.log.fates[delivery].taken_ns.unwrap_or(u64::MAX);
        waits.push((delivery, since_ns[delivery]..run.from_ns, taken_ns));
        since_ns[delivery] = run.to_ns;
    }
    waits
}

/// A worker leaves a revoked core once what it runs has ended, or is interrupted.
fn revoked_cores_are_left(
    scenario: &Scenario,
    outcome: &WorldOutcome,
    cores: &CoreLog,
    faults: &mut Vec<String>,
) {
    let closed_ns = cores.closed_ns.unwrap_or(outcome.ended_ns);
    let is_interrupted = scenario.admission().interrupts() && scenario.is_interruptible();
    for (worker, spans) in cores.held.iter().enumerate() {
        let Some(&thread) = outcome.past.workers.get(worker) else {
            continue;
        };
        for span in spans {
            let Some(revoked_ns) = span.revoked_ns else {
                continue;
            };
            let kept = revoked_ns..span.left_ns.unwrap_or(closed_ns).min(closed_ns);
            let kept_ns = kept.end.saturating_sub(kept.start);
            if kept_ns == 0 || outcome.past.stalled(&kept) {
                continue;
            }
            let idle = outcome.longest_idle(thread, &kept);
            if idle.end - idle.start > KEEPS_NS {
                faults.push(format!(
                    "worker {worker} ran nothing from {} to {} on a core that was revoked at {revoked_ns} ns",
                    idle.start, idle.end
                ));
            }
            let runs = outcome.log.runs.iter().filter(|run| run.thread == thread);
            let late_ns = revoked_ns + LEAVES_NS;
            let late = runs.filter(|run| run.from_ns >= late_ns && run.from_ns < kept.end);
            let mut late: Vec<u32> = late.map(|run| run.delivery).collect();
            late.dedup();
            let most = if is_interrupted { 0 } else { MOST_ON_THE_WAY };
            if late.len() > most {
                faults.push(format!(
                    "worker {worker} ran the requests {late:?} on a core that was revoked at {revoked_ns} ns, more than {most}"
                ));
            }
        }
    }
}

/// When this worker had a core that was not revoked: all the time, where no arbiter grants cores.
pub(crate) fn with_core(outcome: &WorldOutcome, worker: usize) -> Vec<Range<u64>> {
    let Some(cores) = &outcome.cores else {
        return std::iter::once(0..u64::MAX).collect();
    };
    let range = |span: &CoreSpan| {
        let end_ns = span.left_ns.unwrap_or(u64::MAX);
        span.from_ns..end_ns.min(span.revoked_ns.unwrap_or(u64::MAX))
    };
    cores.held[worker].iter().map(range).collect()
}
