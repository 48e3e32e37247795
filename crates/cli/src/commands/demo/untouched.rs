//! Finds the requests that no stop of the machine delayed, by a witness and by simulation, never by their latency.
//!
//! The rule is that of `headway bench --compare-sim`: a request is set aside when it was, or by simulation would have been, in the
//! server at any time in the [aftermath](Aftermath) of a stop. Its simulated stay is the longest under any of the compared policies, so
//! the same rule applies to all of them. A slow policy thus keeps its late answers.

use crate::commands::demo::entrant::{Entrant, Offer};
use crate::commands::demo::live::FLOOR_NS;
use crate::commands::demo::stage::Stage;
use anyhow::Result;
use headway_bench::Aftermath;
use headway_load::Answered;
use headway_machine::noise::Stop;
use headway_report::schedule::Slice;
use headway_report::{ClassMeta, Recorder};
use headway_sim::{Experiment, Length};
use headway_workload::Offered;

/// The backlog of a stop of length `g` is assumed to be gone `g/(1 − ρ)` after it, the average. `bench --compare-sim` allows three
/// times as much, since it tests whether a simulation is exact. On a machine that loses a tenth to others this leaves hardly any
/// request.
const RECOVERY: f64 = 1.0;

/// How long each request of a round stays in an ideal server under the policy that keeps it longest, ns.
pub(crate) struct Lives(Vec<u64>);

impl Lives {
    /// Simulates the requests of a round under every policy.
    pub(crate) fn of(stage: &Stage, entrants: &[Entrant], offer: &Offer) -> Result<Self> {
        let mut lives_ns = Vec::new();
        for entrant in entrants {
            let mut experiment =
                Experiment::new(stage.workload.clone(), entrant.policy.clone().into())
                    .workers(stage.workers)
                    .offered(Offered::Rate(offer.rate_rps))
                    .seed(offer.seed);
            experiment.length = Length::Duration(offer.duration.as_nanos() as u64);
            experiment.trace_window = Some(0..u64::MAX);
            extend(&mut lives_ns, &experiment.run()?.slices);
        }
        Ok(Self(lives_ns))
    }
}

/// Raises each request's lifetime to its lifetime in these slices.
fn extend(lives_ns: &mut Vec<u64>, slices: &[Slice]) {
    let requests = slices.iter().map(|slice| slice.request as usize + 1);
    let requests = requests.max().unwrap_or(0);
    lives_ns.resize(requests.max(lives_ns.len()), 0);
    let mut arrived_ns = vec![0; requests];
    for slice in slices {
        let index = slice.request as usize;
        if !slice.resumed {
            arrived_ns[index] = slice.waited_from_ns;
        }
        lives_ns[index] = lives_ns[index].max(slice.to_ns - arrived_ns[index]);
    }
}

/// The requests that neither the `stops` nor the client's own delays touched, for a server at this load.
pub(crate) fn untouched(
    answers: &[Answered],
    classes: &[ClassMeta],
    stops: &[Stop],
    lives: &Lives,
    load: f64,
) -> Recorder {
    let seen = stops
        .iter()
        .map(|stop| (stop.from_ns..stop.to_ns, stop.lost_ns));
    let late = answers.iter().filter_map(delay);
    let aftermath = Aftermath::of_lost(seen.chain(late), load, RECOVERY);
    let mut untouched = Recorder::new(classes);
    for answer in answers {
        let life_ns = lives.0.get(answer.index).copied().unwrap_or(u64::MAX);
        if !aftermath.touches(answer.due_ns, answer.due_ns.saturating_add(life_ns)) {
            let service_ns = classes[answer.class].service_ns as u64;
            untouched.record(answer.class, answer.since_due_ns, service_ns);
        }
    }
    untouched
}

/// The delay of a request that the client sent noticeably late. A stopped client sends its next requests in a burst that is not part of
/// the offered load.
fn delay(answer: &Answered) -> Option<(std::ops::Range<u64>, u64)> {
    let late_ns = answer.since_due_ns.saturating_sub(answer.since_sent_ns);
    (late_ns > FLOOR_NS).then(|| (answer.due_ns..answer.due_ns + late_ns, late_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const LOAD: f64 = 0.5;

    /// A request a ms, each answered after 50 µs, and one in ten a SCAN of 2 ms.
    fn answers() -> Vec<Answered> {
        (0..1_000)
            .map(|index: usize| {
                let class = usize::from(index % 10 == 9);
                let since_ns = [50_000, 2 * MS][class];
                Answered {
                    index,
                    class,
                    due_ns: 100 * MS + index as u64 * MS,
                    since_due_ns: since_ns,
                    since_sent_ns: since_ns,
                }
            })
            .collect()
    }

    fn classes() -> [ClassMeta; 2] {
        [
            ClassMeta::new("GET", 10_000.0),
            ClassMeta::new("SCAN", 2_000_000.0),
        ]
    }

    /// The time in which both classes are gone, by simulation, ns.
    fn left(answers: &[Answered], stops: &[Stop], life_ns: u64) -> [u64; 2] {
        let lives = Lives(vec![life_ns; answers.len()]);
        counts(&untouched(answers, &classes(), stops, &lives, LOAD))
    }

    fn counts(recorder: &Recorder) -> [u64; 2] {
        let classes = recorder.classes();
        [classes[0].count(), classes[1].count()]
    }

    /// GETs and SCANs of which the index is not within this range.
    fn all_but(gone: std::ops::RangeInclusive<usize>) -> [u64; 2] {
        let mut counts = [0, 0];
        for index in (0..1_000).filter(|index| !gone.contains(index)) {
            counts[usize::from(index % 10 == 9)] += 1;
        }
        counts
    }

    fn stop(from_ns: u64, lost_ns: u64) -> Stop {
        Stop {
            from_ns,
            to_ns: from_ns + lost_ns,
            lost_ns,
        }
    }

    #[test]
    fn a_machine_that_never_stops_touches_nothing() {
        assert_eq!(left(&answers(), &[], MS), [900, 100]);
    }

    #[test]
    fn a_stop_sets_aside_who_was_there_and_who_came_while_its_backlog_drained() {
        // 10 ms from 300.5 on; at load 0.5 the backlog takes 20: until 330.5. Requests that came up to 2 ms before were there.
        let stops = [stop(300 * MS + MS / 2, 10 * MS)];
        assert_eq!(left(&answers(), &stops, 2 * MS), all_but(199..=230));
    }

    #[test]
    fn what_is_set_aside_does_not_depend_on_latencies() {
        let stops: Vec<Stop> = (0..20).map(|n| stop((100 + 50 * n) * MS, 5 * MS)).collect();
        let fast = answers();
        let mut slow = fast.clone();
        for answer in &mut slow {
            answer.since_due_ns *= 40;
            answer.since_sent_ns *= 40;
        }
        let left_of_fast = left(&fast, &stops, MS);
        assert!((500..800).contains(&left_of_fast[0]), "{left_of_fast:?}");
        assert_eq!(left_of_fast, left(&slow, &stops, MS));
    }

    #[test]
    fn a_client_that_was_late_stopped_as_well() {
        let mut answers = answers();
        // The client slept from 600 to 605: six requests left together.
        for (late, answer) in answers[500..506].iter_mut().rev().enumerate() {
            answer.since_due_ns += late as u64 * MS;
        }
        // From 600, less a life, until twice 5 ms after 605.
        assert_eq!(left(&answers, &[], MS), all_but(499..=514));
    }

    #[test]
    fn an_interrupt_is_no_stop_and_an_unknown_life_meets_every_later_one() {
        let mut answers = answers();
        answers[3].since_due_ns += FLOOR_NS;
        assert_eq!(left(&answers, &[], MS), [900, 100]);
        let unknown = Lives(Vec::new());
        let stops = [stop(1_099 * MS, MS)];
        let untouched = untouched(&answers, &classes(), &stops, &unknown, LOAD);
        assert_eq!(counts(&untouched), [0, 0]);
    }
}
