//! Finds the requests that no stop of the machine delayed, by a witness and by simulation, never by their latency.
//!
//! The rule is that of `headway bench --compare-sim`: a request is set aside when it was, or by simulation would have been, in the
//! server at any time in the [aftermath](Aftermath) of a stop. Its simulated stay is the longest under any of the compared policies, so
//! the same rule applies to all of them. A slow policy thus keeps its late answers.

use crate::commands::demo::entrant::{Entrant, Offer};
use crate::commands::demo::live::FLOOR_NS;
use crate::commands::demo::stage::Stage;
use crate::commands::demo::stopped::{ArrivingRequest, ServerTime, lives_ns, stays_ns};
use anyhow::Result;
use headway_bench::Aftermath;
use headway_load::Answered;
use headway_machine::noise::Stop;
use headway_policy::server::systems::ServerSpec;
use headway_report::{ClassMeta, Recorder, nearest_rank};
use headway_sim::{Experiment, Length};
use headway_workload::{Arrival, Generator, Offered};
use std::ops::Range;

/// The backlog of a stop of length `g` is assumed to be gone `g/(1 − ρ)` after it, the average. `bench --compare-sim` allows three
/// times as much, since it tests whether a simulation is exact. On a machine that loses a tenth to others this leaves hardly any
/// request.
const RECOVERY: f64 = 1.0;

/// How long each request of a round stays in an ideal server without stops, by simulation.
pub(crate) struct Lives {
    /// Under each policy, in the order of the entrants; ns by the request's index.
    pub(crate) by_policy: Vec<Vec<u64>>,
    /// Under the policy that keeps it longest.
    pub(crate) longest: Vec<u64>,
}

impl Lives {
    /// Simulates the requests of a round under every policy.
    pub(crate) fn of(stage: &Stage, entrants: &[Entrant], offer: &Offer) -> Result<Self> {
        let mut by_policy = Vec::new();
        for entrant in entrants {
            let mut experiment =
                Experiment::new(stage.workload.clone(), entrant.policy.clone().into())
                    .workers(stage.workers)
                    .offered(Offered::Rate(offer.rate_rps))
                    .seed(offer.seed);
            experiment.length = Length::Duration(offer.duration.as_nanos() as u64);
            experiment.trace_window = Some(0..u64::MAX);
            by_policy.push(lives_ns(&experiment.run()?.slices));
        }
        Ok(Self::under(by_policy))
    }

    /// From the lives under each policy.
    pub(crate) fn under(by_policy: Vec<Vec<u64>>) -> Self {
        let requests = by_policy.iter().map(Vec::len).max().unwrap_or(0);
        let longest = (0..requests).map(|index| {
            let lives_ns = by_policy.iter().filter_map(|lives_ns| lives_ns.get(index));
            lives_ns.copied().max().unwrap_or(0)
        });
        Self {
            longest: longest.collect(),
            by_policy,
        }
    }
}

/// A run's requests that the machine left alone, and what choosing them does to figures.
pub(crate) struct Filtered {
    pub(crate) untouched: Recorder,
    pub(crate) distortion: Distortion,
    /// The part of the measured time in which the machine stopped the server or the client, 0 to 1.
    pub(crate) stopped: f64,
}

/// By what factor the 99th percentiles of the untouched requests are off under a policy, by simulation: those of the untouched on a machine that
/// stops over those of all on one that does not. Requests that wait long rarely stay untouched, so the filter can remove the very waits that
/// are compared; and where stops follow each other closely, none is left that the one before did not delay.
pub(crate) struct Distortion {
    /// Of each class's latency.
    classes: Vec<f64>,
    /// Of the slowdown over all classes.
    overall: f64,
}

impl Distortion {
    /// None at all.
    #[cfg(test)]
    pub(crate) fn none(classes: usize) -> Self {
        Self {
            classes: vec![1.0; classes],
            overall: 1.0,
        }
    }

    /// Of a class's latency, or of the slowdown over all.
    pub(crate) fn factor(&self, class: Option<usize>) -> f64 {
        class.map_or(self.overall, |class| self.classes[class])
    }
}

/// How long the requests of a run stay, by simulation, ns by their index.
pub(crate) struct Foreseen<'a> {
    /// Without stops, under the policy that keeps each longest.
    pub(crate) longest: &'a [u64],
    /// Without stops, under the run's own policy.
    pub(crate) without_stops: &'a [u64],
    /// With the stops of the run, under its own policy.
    pub(crate) with_stops: &'a [u64],
}

/// The filter, for a server at this load: what neither the `stops` nor the client's own delays touched.
pub(crate) fn filtered(
    answers: &[Answered],
    classes: &[ClassMeta],
    stops: &[Stop],
    foreseen: &Foreseen<'_>,
    load: f64,
) -> Filtered {
    let seen = stops
        .iter()
        .map(|stop| (stop.from_ns..stop.to_ns, stop.lost_ns));
    let late = answers.iter().filter_map(delay);
    let spans: Vec<(Range<u64>, u64)> = seen.chain(late).collect();
    let aftermath = Aftermath::of_lost(spans.iter().cloned(), load, RECOVERY);
    let mut untouched = Recorder::new(classes);
    let mut is_untouched = Vec::with_capacity(answers.len());
    for answer in answers {
        let life_ns = foreseen.longest.get(answer.index).copied();
        let end_ns = answer.due_ns.saturating_add(life_ns.unwrap_or(u64::MAX));
        let left_alone = !aftermath.touches(answer.due_ns, end_ns);
        is_untouched.push(left_alone);
        if left_alone {
            let service_ns = classes[answer.class].service_ns as u64;
            untouched.record(answer.class, answer.since_due_ns, service_ns);
        }
    }
    let distortion = distortion(answers, classes, &is_untouched, foreseen);
    Filtered {
        untouched,
        distortion,
        stopped: stopped(answers, spans.into_iter().map(|(span, _)| span)),
    }
}

/// The distortion by these untouched requests.
fn distortion(
    answers: &[Answered],
    classes: &[ClassMeta],
    is_untouched: &[bool],
    foreseen: &Foreseen<'_>,
) -> Distortion {
    let slowdown = |class: usize, ns: u64| ns as f64 / classes[class].service_ns;
    // Of the class, or of all: as slowdowns, which within a class differ from latencies by a constant.
    let factor = |class: Option<usize>| {
        let (mut left, mut all) = (Vec::new(), Vec::new());
        let of_class = |answer: &Answered| class.is_none_or(|class| answer.class == class);
        for (answer, is_untouched) in answers.iter().zip(is_untouched) {
            if !of_class(answer) {
                continue;
            }
            let at = |ns: &[u64]| ns.get(answer.index).map(|ns| slowdown(answer.class, *ns));
            all.extend(at(foreseen.without_stops));
            left.extend(at(foreseen.with_stops).filter(|_| *is_untouched));
        }
        p99(&mut left)
            .zip(p99(&mut all))
            .map_or(1.0, |(left, all)| left / all)
    };
    Distortion {
        classes: (0..classes.len())
            .map(|class| factor(Some(class)))
            .collect(),
        overall: factor(None),
    }
}

/// None of nothing.
fn p99(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let rank = nearest_rank(values.len() as u64, 0.99) as usize;
    values.get(rank.checked_sub(1)?).copied()
}

/// The part of the time between the first and the last answered request's intended send that lies in these spans.
fn stopped(answers: &[Answered], spans: impl Iterator<Item = Range<u64>>) -> f64 {
    let due_ns = || answers.iter().map(|answer| answer.due_ns);
    let (Some(first_ns), Some(last_ns)) = (due_ns().min(), due_ns().max()) else {
        return 0.0;
    };
    let time = ServerTime::of(spans, &(first_ns..last_ns));
    time.stopped_ns() as f64 / (last_ns - first_ns).max(1) as f64
}

/// How long the requests of a run would stay under its policy, by simulation on a machine with these stops, ns by their index. The client's
/// delays are those of the run.
pub(crate) fn with_stops(
    stage: &Stage,
    policy: &ServerSpec,
    offer: &Offer,
    answers: &[Answered],
    stops: &[Stop],
) -> Result<Vec<u64>> {
    let Some(any) = answers.first() else {
        return Ok(Vec::new());
    };
    let generated = Generator::new(&stage.workload, Offered::Rate(offer.rate_rps), offer.seed);
    let duration_ns = offer.duration.as_nanos() as u64;
    let generated: Vec<Arrival> = generated
        .take_while(|arrival| arrival.at_ns < duration_ns)
        .collect();
    let Some(of_any) = generated.get(any.index) else {
        return Ok(Vec::new());
    };
    let start_ns = any.due_ns.saturating_sub(of_any.at_ns);
    let mut late_ns = vec![0; generated.len()];
    for answer in answers {
        if let Some(late_ns) = late_ns.get_mut(answer.index) {
            *late_ns = answer.since_due_ns.saturating_sub(answer.since_sent_ns);
        }
    }
    let mut sent_ns = 0;
    let arriving = generated.iter().zip(late_ns).map(|(arrival, late_ns)| {
        sent_ns = sent_ns.max(start_ns + arrival.at_ns + late_ns);
        ArrivingRequest {
            at_ns: sent_ns,
            class: usize::from(arrival.class),
        }
    });
    let requests: Vec<ArrivingRequest> = arriving.collect();
    let lost = stops
        .iter()
        .map(|stop| stop.from_ns..stop.from_ns.saturating_add(stop.lost_ns));
    let time = ServerTime::of(lost, &(start_ns..start_ns + 2 * duration_ns));
    stays_ns(&stage.workload, stage.workers, policy, &requests, &time)
}

/// The delay of a request that the client sent noticeably late. A stopped client sends its next requests in a burst that is not part of
/// the offered load.
fn delay(answer: &Answered) -> Option<(Range<u64>, u64)> {
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

    /// Without foresight of the own policy.
    fn foreseen(longest: &[u64]) -> Foreseen<'_> {
        Foreseen {
            longest,
            without_stops: &[],
            with_stops: &[],
        }
    }

    /// The requests left where each stays this long.
    fn left(answers: &[Answered], stops: &[Stop], life_ns: u64) -> [u64; 2] {
        let lives = vec![life_ns; answers.len()];
        counts(&filtered(answers, &classes(), stops, &foreseen(&lives), LOAD).untouched)
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
        let stops = [stop(1_099 * MS, MS)];
        let filtered = filtered(&answers, &classes(), &stops, &foreseen(&[]), LOAD);
        assert_eq!(counts(&filtered.untouched), [0, 0]);
        assert_eq!(filtered.distortion.factor(None), 1.0, "nothing is foreseen");
    }

    #[test]
    fn simulation_tells_what_the_filter_does_to_a_tail() {
        // GETs in the first tenth of each 100 ms wait 2 ms behind a SCAN, and that is when the machine stops.
        let answers = answers();
        let life_ns = |answer: &Answered| match (answer.class, answer.index % 100) {
            (0, 0..10) => 2 * MS,
            (0, _) => 20_000,
            _ => 2 * MS,
        };
        let waits: Vec<u64> = answers.iter().map(life_ns).collect();
        let stops: Vec<Stop> = (0..10)
            .map(|n| stop((100 + 100 * n) * MS, 5 * MS))
            .collect();
        let factor = |without_stops: &[u64], with_stops: &[u64]| {
            let foreseen = Foreseen {
                longest: &waits,
                without_stops,
                with_stops,
            };
            let found = filtered(&answers, &classes(), &stops, &foreseen, LOAD);
            assert!((found.stopped - 0.05).abs() < 0.001, "{}", found.stopped);
            found.distortion.factor(Some(0))
        };
        assert!(factor(&waits, &waits) < 0.02, "the waits are gone");
        let brief = vec![20_000; answers.len()];
        assert_eq!(factor(&brief, &brief), 1.0, "there were none");
        let delayed = vec![60_000; answers.len()];
        assert_eq!(
            factor(&brief, &delayed),
            3.0,
            "none is left that no stop delayed"
        );
    }

    #[test]
    fn stops_that_overlap_take_their_time_once() {
        let answers = answers();
        let stops =
            [(200, 10), (205, 10), (0, 110), (1_090, 50)].map(|(at, ms)| stop(at * MS, ms * MS));
        let spans = stops.iter().map(|stop| stop.from_ns..stop.to_ns);
        // 15 ms, 10 ms after the first request, and 9 ms before the last; of 999.
        assert!((stopped(&answers, spans) - 34.0 / 999.0).abs() < 1e-9);
    }
}
