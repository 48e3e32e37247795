//! The conclusions: ratios with intervals, and a ranking that these intervals support.

use crate::commands::demo::lane::{Basis, Lane, Round, Sample};
use headway_report::stats::{
    BurdenedPair, ConfidenceInterval, adjusted_ratio_interval, ratio_interval,
};
use headway_report::{ClassResult, Run};
use serde::Serialize;

/// The confidence of each interval. Two looks at most can each be wrong; together they are wrong in at most 5 of 100 cases.
pub(crate) const CONFIDENCE: f64 = 0.975;

/// The number of common rounds with enough untouched requests that a comparison by these needs. The interval of two rounds is too wide.
pub(crate) const ROUNDS_MIN: usize = 3;

/// The filter for untouched requests may change the ratio of two policies' percentiles by this factor, up or down.
const DISTORTION_MOST: f64 = 1.1;

/// Why a comparison is over all requests or over the untouched ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reason {
    /// Three rounds have enough untouched requests of both policies, and choosing them hardly changes the ratio.
    Fair,
    /// Fewer rounds have enough of them.
    TooFew,
    /// By simulation, the choice of the untouched requests changes the ratio itself: it removes one policy's waits more than the other's.
    Uneven,
}

/// The requests over which two policies are compared. The machine's stops and simulations decide, never a live latency.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Compared {
    /// Which requests.
    pub(crate) of: Basis,
    /// Why.
    pub(crate) reason: Reason,
    /// The factor by which the filter changes the ratio, by simulation; none where too few requests are left.
    pub(crate) filter_factor: Option<f64>,
}

impl Compared {
    /// The choice for the latency of a class, or the slowdown over all. All requests are compared where the untouched are too few, or where
    /// the filter removes the very difference: requests that wait behind a long one are nearly all in the server when the machine stops it.
    fn choose(left: &Lane, right: &Lane, class: Option<usize>) -> Self {
        let rounds = in_common(left, right, Sample::untouched(class));
        let logs: Vec<f64> = rounds
            .map(|(l, r)| (l.distortion.factor(class) / r.distortion.factor(class)).ln())
            .collect();
        if logs.len() < ROUNDS_MIN {
            return Self::all(Reason::TooFew, None);
        }
        let log = logs.iter().sum::<f64>() / logs.len() as f64;
        if log.abs() > DISTORTION_MOST.ln() {
            return Self::all(Reason::Uneven, Some(log.exp()));
        }
        Self {
            of: Basis::Untouched,
            reason: Reason::Fair,
            filter_factor: Some(log.exp()),
        }
    }

    fn all(reason: Reason, filter_factor: Option<f64>) -> Self {
        Self {
            of: Basis::All,
            reason,
            filter_factor,
        }
    }
}

/// A ratio of two policies' percentiles.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PolicyRatio {
    /// The policy in the numerator.
    pub(crate) policy: String,
    /// The policy in the denominator.
    pub(crate) base: String,
    pub(crate) class: String,
    /// The ratio of p99 latencies; `None` with fewer than two rounds in which both count.
    pub(crate) p99: Option<ConfidenceInterval>,
    /// Of which requests.
    #[serde(flatten)]
    pub(crate) compared: Compared,
}

/// Two neighbours in the ranking.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RankingStep {
    /// The policy with the lower p99 slowdown over all classes. The 99.9th percentile of a run of a few seconds rests on
    /// half a dozen requests, which one gap of the machine delays together; the 99th on ten times as many.
    pub(crate) better: String,
    pub(crate) worse: String,
    /// `worse` over `better`; none with fewer than two rounds in which both count.
    pub(crate) ratio: Option<ConfidenceInterval>,
    /// Of which requests.
    #[serde(flatten)]
    pub(crate) compared: Compared,
    /// Whether the interval excludes 1: only then the order is more than chance.
    pub(crate) ranked: bool,
}

/// The paired ratio `left` over `right` of a measure of a round. Where all requests are compared, both policies' latencies include stops of
/// the machine, of which each got its own: the ratio is that at equal lost time.
pub(crate) fn paired(
    left: &Lane,
    right: &Lane,
    sample: Sample,
    measure: impl Fn(&Run) -> f64,
) -> Option<ConfidenceInterval> {
    let value = |round: &Round| measure(&round.view(sample.basis).run);
    let rounds = in_common(left, right, sample);
    match sample.basis {
        Basis::Untouched => {
            let pairs: Vec<(f64, f64)> = rounds.map(|(l, r)| (value(l), value(r))).collect();
            ratio_interval(&pairs, CONFIDENCE).ok()
        }
        Basis::All => {
            let pairs = rounds.map(|(l, r)| BurdenedPair {
                left: value(l),
                right: value(r),
                extra_burden: l.stopped - r.stopped,
            });
            let pairs: Vec<BurdenedPair> = pairs.collect();
            adjusted_ratio_interval(&pairs, CONFIDENCE).ok()
        }
    }
}

fn in_common<'a>(
    left: &'a Lane,
    right: &'a Lane,
    sample: Sample,
) -> impl Iterator<Item = (&'a Round, &'a Round)> {
    let rounds = left.rounds.iter().zip(&right.rounds);
    rounds.filter(move |(l, r)| left.counts(l, sample) && right.counts(r, sample))
}

/// Every other policy against `base`, class by class, where neither starves the class.
pub(crate) fn ratios(lanes: &[Lane], base: &Lane) -> Vec<PolicyRatio> {
    let classes = base.rounds[0].all.run.classes.iter().enumerate();
    classes
        .flat_map(|(index, class): (usize, &ClassResult)| class_ratios(lanes, base, index, class))
        .collect()
}

/// The same for one class, which is the `index`-th.
fn class_ratios(
    lanes: &[Lane],
    base: &Lane,
    index: usize,
    class: &ClassResult,
) -> Vec<PolicyRatio> {
    let fair = |lane: &&Lane| !lane.starved.contains(&class.name);
    if !fair(&base) {
        return Vec::new();
    }
    lanes
        .iter()
        .filter(|lane| lane.name != base.name)
        .filter(fair)
        .map(|lane: &Lane| {
            let compared = Compared::choose(lane, base, Some(index));
            let sample = Sample {
                basis: compared.of,
                class: Some(index),
            };
            PolicyRatio {
                policy: lane.name.clone(),
                base: base.name.clone(),
                class: class.name.clone(),
                p99: paired(lane, base, sample, |run| run.classes[index].latency_us.p99),
                compared,
            }
        })
        .collect()
}

/// Whether every comparison is decided: every policy's p99 of the first class, the short one, differs from that of `base` by requests that
/// the machine left alone.
pub(crate) fn all_decided(lanes: &[Lane], base: &Lane) -> bool {
    let short = &base.rounds[0].all.run.classes[0].name;
    let ratios = ratios(lanes, base);
    let mut of_short = ratios.iter().filter(|ratio| ratio.class == *short);
    of_short.all(|ratio| {
        ratio.compared.of == Basis::Untouched
            && ratio
                .p99
                .is_some_and(|interval: ConfidenceInterval| interval.distinguishable_from(1.0))
    })
}

/// The policies that starve no class, from the lowest p99 slowdown over all classes to the highest, each
/// compared with the next. All comparisons use the same kind of requests.
pub(crate) fn ranking(lanes: &[Lane]) -> Vec<RankingStep> {
    let fair: Vec<&Lane> = lanes
        .iter()
        .filter(|lane| lane.starved.is_empty())
        .collect();
    let compared = alike(&fair);
    let sample = Sample {
        basis: compared.of,
        class: None,
    };
    let known = fair
        .iter()
        .filter_map(|lane| Some((*lane, slowdown(lane, sample)?)));
    let mut order: Vec<(&Lane, f64)> = known.collect();
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    let pairs = order.windows(2);
    pairs
        .map(|pair| step(pair[1].0, pair[0].0, compared))
        .collect()
}

/// The requests over which all of these are compared: the untouched ones if they are fair to every two, else all, for the first reason that
/// there is.
fn alike(lanes: &[&Lane]) -> Compared {
    let every = lanes
        .iter()
        .enumerate()
        .flat_map(|(index, left)| lanes[..index].iter().map(move |right| (left, right)));
    let mut choices = every.map(|(left, right)| Compared::choose(left, right, None));
    let first_unfair = choices.find(|compared| compared.of == Basis::All);
    first_unfair.unwrap_or(Compared {
        of: Basis::Untouched,
        reason: Reason::Fair,
        filter_factor: None,
    })
}

/// Two policies, of which the first is higher on average over all its rounds. Over the rounds that both have it may be the lower one.
fn step(higher: &Lane, lower: &Lane, compared: Compared) -> RankingStep {
    let sample = Sample {
        basis: compared.of,
        class: None,
    };
    let over =
        |worse: &Lane, better: &Lane| paired(worse, better, sample, |run| run.overall.slowdown.p99);
    let ratio = over(higher, lower);
    let (worse, better, ratio) = match ratio {
        Some(ConfidenceInterval { estimate, .. }) if estimate < 1.0 => {
            (lower, higher, over(lower, higher))
        }
        ratio => (higher, lower, ratio),
    };
    RankingStep {
        better: better.name.clone(),
        worse: worse.name.clone(),
        ratio,
        compared,
        ranked: ratio.is_some_and(|ratio| ratio.distinguishable_from(1.0)),
    }
}

/// The geometric mean over the rounds, as the ratios are.
fn slowdown(lane: &Lane, sample: Sample) -> Option<f64> {
    let rounds = lane
        .valid(sample)
        .map(|round| &round.view(sample.basis).run);
    let logs: Vec<f64> = rounds.map(|run| run.overall.slowdown.p99.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    mean.is_finite().then_some(mean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::demo::lane::ALL;
    use crate::commands::demo::lane::tests::{lane, quiet, round, starving};
    use headway_load::Flaw;

    const LOST: Flaw = Flaw::Lost { fraction: 0.01 };

    /// A lane whose first round takes `latency_ns`, each further one a tenth more. Rounds that are not quiet have few untouched requests.
    fn played(name: &str, latency_ns: u64, are_quiet: [bool; 4]) -> Lane {
        lane(
            name,
            are_quiet
                .into_iter()
                .enumerate()
                .map(|(index, is_quiet): (usize, bool)| {
                    let latency_ns = latency_ns * (10 + index as u64) / 10;
                    if is_quiet {
                        quiet(latency_ns)
                    } else {
                        // The delay shows in all requests, not in the few untouched ones.
                        round(90_000_000, latency_ns, 0.05)
                    }
                })
                .collect(),
        )
    }

    #[test]
    fn untouched_requests_decide_where_three_rounds_have_enough() {
        let slow = played("slow", 100_000, [true; 4]);
        let fast = played("fast", 10_000, [false, true, true, true]);
        let step = &ranking(&[slow, fast])[0];
        assert!(
            step.ranked && step.compared.of == Basis::Untouched,
            "{step:?}"
        );
        let ratio = step.ratio.unwrap().estimate;
        assert!((9.5..10.5).contains(&ratio), "{ratio}");
    }

    #[test]
    fn all_requests_are_compared_where_no_three_rounds_are_quiet() {
        let slow = played("slow", 100_000, [true, true, false, true]);
        let fast = played("fast", 10_000, [true, true, true, false]);
        let step = &ranking(&[slow, fast])[0];
        assert_eq!(step.compared.of, Basis::All);
        assert_eq!(step.compared.reason, Reason::TooFew);
        assert!(
            !step.ranked,
            "delays alike under both hide the difference: {step:?}"
        );
    }

    #[test]
    fn rounds_that_lost_requests_never_count_unless_the_policy_starves() {
        let mut slow = played("slow", 100_000, [true; 4]);
        for round in &mut slow.rounds[1..] {
            round.flaws.push(LOST);
        }
        let fast = played("fast", 10_000, [true; 4]);
        let base = played("base", 100_000, [true; 4]);
        let found = ratios(&[slow, fast], &base);
        assert_eq!(found.len(), 2);
        assert!(found[0].p99.is_none(), "{found:?}");
        assert!(
            found[1].p99.is_some() && found[1].compared.of == Basis::Untouched,
            "{found:?}"
        );
        let mut starves = starving("starves", "SCAN");
        starves.rounds = vec![quiet(10_000), quiet(11_000)];
        starves.rounds[0].flaws.push(LOST);
        assert!(starves.counts(&starves.rounds[0], ALL));
    }

    #[test]
    fn everything_is_decided_once_each_differs_by_untouched_requests() {
        let base = || played("base", 100_000, [true; 4]);
        let fast = || played("fast", 10_000, [true; 4]);
        assert!(all_decided(&[base(), fast()], &base()));
        assert!(!all_decided(
            &[base(), fast(), played("same", 100_000, [true; 4])],
            &base()
        ));
        let noisy = played("noisy", 10_000, [false; 4]);
        assert!(!all_decided(&[base(), noisy], &base()));
        assert!(all_decided(&[base()], &base()), "nobody to compare with");
    }

    #[test]
    fn the_better_of_two_is_who_is_lower_in_the_rounds_that_both_have() {
        // On average over its own rounds `odd` is higher, for those that `even` does not have.
        let mut odd = lane(
            "odd",
            vec![quiet(10_000), quiet(10_000), quiet(900_000), quiet(900_000)],
        );
        let mut even = lane(
            "even",
            vec![quiet(40_000), quiet(41_000), quiet(1), quiet(1)],
        );
        for round in &mut even.rounds[2..] {
            round.flaws.push(LOST);
        }
        odd.judge();
        let step = &ranking(&[odd, even])[0];
        assert_eq!(
            (step.better.as_str(), step.ranked),
            ("odd", true),
            "{step:?}"
        );
        assert!(step.ratio.unwrap().lo > 1.0);
    }
}
