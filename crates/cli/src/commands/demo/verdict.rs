//! What may be concluded: ratios with their intervals, and a ranking that claims no more than these say.

use crate::commands::demo::live::Round;
use crate::commands::demo::rounds::Lane;
use headway_report::Run;
use headway_report::stats::{Interval, ratio_interval};
use serde::Serialize;

pub(crate) const CONFIDENCE: f64 = 0.95;

/// A ratio of two policies' percentiles.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Ratio {
    /// The policy above the line.
    pub(crate) policy: String,
    /// The one below.
    pub(crate) base: String,
    pub(crate) class: String,
    /// Of p99 latencies; none with fewer than two rounds in which both count or were only delayed.
    pub(crate) p99: Option<Interval>,
    /// Of p99.9 latencies.
    pub(crate) p999: Option<Interval>,
    /// Whether delayed rounds had to be counted.
    pub(crate) delayed: bool,
}

/// Two neighbours in the ranking.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Step {
    /// The one with the lower p99 slowdown over all requests. The 99.9th percentile of a run of a few seconds rests
    /// on half a dozen requests, which one gap of the machine delays together; the 99th on ten times as many.
    pub(crate) better: String,
    pub(crate) worse: String,
    /// `worse` over `better`; none with fewer than two rounds in which both count or were only delayed.
    pub(crate) ratio: Option<Interval>,
    /// Whether delayed rounds had to be counted.
    pub(crate) delayed: bool,
    /// Whether the interval excludes 1: only then the order is more than chance.
    pub(crate) ranked: bool,
}

/// The paired ratio `left` over `right` of a measure of a round. Where no two rounds count for both, by those as well that the
/// machine only delayed: that is then decided by delays and not by latencies, and the interval is as wide as such rounds make it.
fn paired(left: &Lane, right: &Lane, measure: impl Fn(&Run) -> f64) -> Option<Interval> {
    let counts = match delayed(left, right) {
        true => Lane::may_count,
        false => Lane::counts,
    };
    let pairs: Vec<(f64, f64)> = in_common(left, right, counts)
        .map(|(l, r)| (measure(&l.run), measure(&r.run)))
        .collect();
    ratio_interval(&pairs, CONFIDENCE).ok()
}

/// Whether delayed rounds have to be counted to compare the two.
fn delayed(left: &Lane, right: &Lane) -> bool {
    in_common(left, right, Lane::counts).count() < 2
}

fn in_common<'a>(
    left: &'a Lane,
    right: &'a Lane,
    counts: fn(&Lane, &Round) -> bool,
) -> impl Iterator<Item = (&'a Round, &'a Round)> {
    let rounds = left.rounds.iter().zip(&right.rounds);
    rounds.filter(move |(l, r)| counts(left, l) && counts(right, r))
}

/// Every other policy against `base`, class by class, where neither starves the class.
pub(crate) fn ratios(lanes: &[Lane], base: &Lane) -> Vec<Ratio> {
    let classes = base.rounds[0].run.classes.iter().enumerate();
    let of_class = |(index, class): (usize, &headway_report::ClassResult)| {
        let fair = |lane: &&Lane| !lane.starved.contains(&class.name);
        let others = lanes.iter().filter(|lane| lane.name != base.name);
        let ratio = |lane: &Lane| Ratio {
            policy: lane.name.clone(),
            base: base.name.clone(),
            class: class.name.clone(),
            p99: paired(lane, base, |run| run.classes[index].latency_us.p99),
            p999: paired(lane, base, |run| run.classes[index].latency_us.p999),
            delayed: delayed(lane, base),
        };
        match fair(&base) {
            true => others.filter(fair).map(ratio).collect(),
            false => Vec::new(),
        }
    };
    classes.flat_map(of_class).collect()
}

/// The policies that starve no class, from the lowest p99 slowdown over all requests to the highest, each
/// compared with the next.
pub(crate) fn ranking(lanes: &[Lane]) -> Vec<Step> {
    let mut order: Vec<(&Lane, f64)> = lanes
        .iter()
        .filter(|lane| lane.starved.is_empty())
        .filter_map(|lane| Some((lane, slowdown(lane)?)))
        .collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let step = |pair: &[(&Lane, f64)]| {
        let (better, worse) = (pair[0].0, pair[1].0);
        let ratio = paired(worse, better, |run| run.overall.slowdown.p99);
        Step {
            better: better.name.clone(),
            worse: worse.name.clone(),
            ratio,
            delayed: delayed(worse, better),
            ranked: ratio.is_some_and(|ratio| ratio.distinguishable_from(1.0)),
        }
    };
    order.windows(2).map(step).collect()
}

/// The geometric mean over the rounds, as the ratios are.
fn slowdown(lane: &Lane) -> Option<f64> {
    let logs: Vec<f64> = lane
        .valid()
        .map(|round| round.run.overall.slowdown.p99.ln())
        .collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    mean.is_finite().then_some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::demo::objection::Objection;
    use headway_load::Flaw;
    use headway_report::{ClassMeta, Level, Recorder, RunExtras, RunMeta};
    use headway_runtime::Stats;

    const LATE: Flaw = Flaw::Late {
        fraction: 0.05,
        bound_ns: 1_000_000,
    };

    fn round(latency_ns: u64, flaw: Option<Flaw>) -> Round {
        let mut recorder = Recorder::new(&[ClassMeta::new("GET", 1_000.0)]);
        recorder.record(0, latency_ns, 1_000);
        let meta = RunMeta {
            policy: String::new(),
            params: serde_json::Map::new(),
            level: Level::Server,
            workload: String::new(),
            workers: 1,
            seed: 1,
            requests: 1,
            offered_rps: 1.0,
            achieved_rps: 1.0,
            load: 0.5,
            utilization: 0.5,
            dropped: 0,
            preemptions: 0,
            overloaded: false,
        };
        Round {
            run: Run::new(meta, &recorder, RunExtras::default()),
            recorder,
            objections: flaw.into_iter().map(Objection::Client).collect(),
            stats: Stats::default(),
        }
    }

    /// A lane whose rounds take `latency_ns`, a tenth more from one to the next.
    fn lane(name: &str, latency_ns: u64, flaws: [Option<Flaw>; 4]) -> Lane {
        let rounds = flaws.into_iter().enumerate();
        Lane {
            name: name.to_owned(),
            rounds: rounds
                .map(|(index, flaw)| round(latency_ns * (10 + index as u64) / 10, flaw))
                .collect(),
            starved: Vec::new(),
        }
    }

    #[test]
    fn undisturbed_rounds_are_enough_where_there_are_two() {
        let slow = lane("slow", 100_000, [None, None, None, Some(LATE)]);
        let mut fast = lane("fast", 10_000, [Some(LATE), None, None, None]);
        // What was delayed must not show.
        fast.rounds[0] = round(90_000_000, Some(LATE));
        let step = &ranking(&[slow, fast])[0];
        assert!(step.ranked && !step.delayed, "{step:?}");
        let ratio = step.ratio.unwrap().estimate;
        assert!((9.5..10.5).contains(&ratio), "{ratio}");
    }

    #[test]
    fn rounds_that_were_only_delayed_count_where_there_are_no_two_others() {
        let slow = lane("slow", 100_000, [None, Some(LATE), Some(LATE), None]);
        let fast = lane("fast", 10_000, [Some(LATE), None, Some(LATE), None]);
        let step = &ranking(&[slow, fast])[0];
        assert!(step.ranked && step.delayed, "{step:?}");
        assert_eq!(
            (step.better.as_str(), step.worse.as_str()),
            ("fast", "slow")
        );
    }

    #[test]
    fn rounds_that_lost_requests_never_count() {
        let lost = || Some(Flaw::Lost { fraction: 0.01 });
        let slow = lane("slow", 100_000, [None, lost(), lost(), lost()]);
        let fast = lane("fast", 10_000, [None, None, None, None]);
        let ratios = ratios(&[slow, fast], &lane("base", 100_000, [None; 4]));
        assert_eq!(ratios.len(), 2);
        assert!(ratios[0].p99.is_none(), "{ratios:?}");
        assert!(ratios[1].p99.is_some() && !ratios[1].delayed, "{ratios:?}");
    }
}
