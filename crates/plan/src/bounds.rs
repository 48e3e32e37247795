//! What no policy can do: each claim is computed, and says what from.

use crate::pooled::{fcfs_max_ns, srpt_mean_ns};
use crate::question::Question;
use headway_report::slo::{Bound, Measure, Scope, Statistic};
use headway_report::{Impossible, LOST_FRACTION_MAX, format};
use headway_workload::{Arrivals, Class, Generator};

/// Part of the arrivals that is not measured, as in every experiment.
const WARM_UP: f64 = 0.1;

/// The bounds of the SLO that no policy can keep on so many workers, as far as that can be shown;
/// empty where nothing was.
///
/// A dispatcher that runs requests itself counts as one more worker here.
///
/// - Demand, overheads included, beyond what the workers can give: queues grow without bound.
/// - A percentile or mean of the latency below what the service itself, its overhead and the network take.
/// - A slowdown below 1, or below what overhead and network make of it.
/// - A mean or largest latency below that of one worker as fast as all together, under its best
///   policy, on the arrivals of every replication ([`srpt_mean_ns`], [`fcfs_max_ns`]).
#[must_use]
pub fn impossible(question: &Question) -> Vec<Impossible> {
    let steady = question.workload.phases.is_empty();
    let recorded = matches!(question.workload.arrivals, Arrivals::Trace(_));
    let mut shown: Vec<Impossible> = Vec::new();
    if steady && !recorded && !is_bounded(question) {
        shown.extend(saturated(question));
    }
    if !steady {
        return shown;
    }
    for bound in narrowed(question) {
        let why = by_service(question, &bound).or_else(|| by_pooling(question, &bound));
        shown.extend(why.map(|why| Impossible {
            bound: bound.to_string(),
            why,
        }));
    }
    shown
}

/// The SLO with every class by itself.
fn narrowed(question: &Question) -> Vec<Bound> {
    let names = question.workload.class_names();
    let each = |bound: &Bound| match bound.scope {
        Scope::EveryClass => names
            .iter()
            .map(|name| Bound {
                scope: Scope::Class((*name).into()),
                ..bound.clone()
            })
            .collect(),
        _ => vec![bound.clone()],
    };
    question.slo.bounds().iter().flat_map(each).collect()
}

fn saturated(question: &Question) -> Option<Impossible> {
    let service_ns = question.workload.mean_service_ns() + question.costs.overhead_ns as f64;
    let demand = question.rate_rps() * service_ns / 1e9;
    (demand >= question.workers as f64).then(|| Impossible {
        bound: "every bound".into(),
        why: format!(
            "utilization: the requests take {} workers, and there are {}; queues grow without bound under any policy",
            format::significant(demand, 4),
            question.workers,
        ),
    })
}

/// The classes a bound is about.
fn classes<'a>(question: &'a Question, scope: &Scope) -> Vec<&'a Class> {
    let mix = question.workload.initial_mix().iter();
    mix.filter(|class| match scope {
        Scope::Class(name) => class.name == *name,
        Scope::Overall | Scope::EveryClass => true,
    })
    .collect()
}

/// The part of the requests of some classes for which something holds.
fn part(classes: &[&Class], of_class: impl Fn(&Class) -> f64) -> f64 {
    let shares: f64 = classes.iter().map(|class| class.share).sum();
    let sum: f64 = classes
        .iter()
        .map(|class| class.share * of_class(class))
        .sum();
    sum / shares
}

/// Each request takes its service, its overhead and the network at least.
fn by_service(question: &Question, bound: &Bound) -> Option<String> {
    let fixed_ns = (question.network_ns + question.costs.overhead_ns) as f64;
    let classes = classes(question, &bound.scope);
    if classes.is_empty() {
        return None;
    }
    let allowed = match bound.statistic {
        Statistic::Mean if is_bounded(question) => return below_one(bound),
        Statistic::Mean => return by_mean_service(&classes, fixed_ns, bound),
        Statistic::Max => return below_one(bound),
        Statistic::P50 => 0.5,
        Statistic::P90 => 0.1,
        Statistic::P99 => 0.01,
        Statistic::P999 => 0.001,
    };
    let too_slow = match bound.measure {
        Measure::Latency => {
            let left_ns = bound.at_most * 1e3 - fixed_ns;
            part(&classes, |class| match left_ns >= 0.0 {
                true => 1.0 - class.service.cdf(left_ns as u64),
                false => 1.0,
            })
        }
        Measure::Slowdown if bound.at_most < 1.0 => return below_one(bound),
        // (S + fixed) ÷ S > B where S < fixed ÷ (B − 1).
        Measure::Slowdown => {
            let shortest_ns = libm::ceil(fixed_ns / (bound.at_most - 1.0)) - 1.0;
            part(&classes, |class| match shortest_ns >= 1.0 {
                true => class.service.cdf(shortest_ns as u64),
                false => 0.0,
            })
        }
    };
    // Printed shares and percentiles are rounded: the last digit proves nothing. Bounded queues may
    // shed a few, perhaps just these.
    const ROUNDING: f64 = 1e-9;
    let shed = if is_bounded(question) {
        LOST_FRACTION_MAX
    } else {
        0.0
    };
    (too_slow > allowed + shed + ROUNDING).then(|| {
        format!(
            "service time: {} of these requests exceed it without waiting, {} may",
            format::percent(too_slow),
            format::percent(allowed),
        )
    })
}

fn is_bounded(question: &Question) -> bool {
    question.queue_limit != usize::MAX
}

fn by_mean_service(classes: &[&Class], fixed_ns: f64, bound: &Bound) -> Option<String> {
    if bound.measure == Measure::Slowdown {
        return below_one(bound);
    }
    let least_us = (part(classes, Class::mean_ns) + fixed_ns) / 1e3;
    (least_us > bound.at_most).then(|| {
        let least = format::duration_us(least_us);
        format!("service time: these requests take {least} on average without waiting")
    })
}

fn below_one(bound: &Bound) -> Option<String> {
    let slowdown = bound.measure == Measure::Slowdown && bound.at_most < 1.0;
    slowdown.then(|| "service time: no slowdown is below 1".into())
}

/// What requests `(arrival, service time)` come to at best on so many workers, ns.
type LeastLatency = fn(&[(u64, u64)], usize) -> f64;

/// One worker as fast as all, for the measured arrivals of these classes alone.
fn by_pooling(question: &Question, bound: &Bound) -> Option<String> {
    let (least_ns, best): (LeastLatency, _) = match (bound.measure, bound.statistic) {
        (Measure::Latency, Statistic::Mean) => (srpt_mean_ns, "mean under SRPT"),
        (Measure::Latency, Statistic::Max) => (fcfs_max_ns, "largest under FCFS"),
        _ => return None,
    };
    if is_bounded(question) {
        return None;
    }
    let least_us = |replication| {
        let requests = measured(
            question,
            &bound.scope,
            question.seed.wrapping_add(replication),
        );
        (least_ns(&requests, question.workers) + question.network_ns as f64) / 1e3
    };
    let least_us = (0..question.replications)
        .map(least_us)
        .fold(f64::INFINITY, f64::min);
    (least_us > bound.at_most).then(|| {
        format!(
            "{best} on one worker as fast as {} together is {} or more on the arrivals of every replication; no policy is below it",
            question.workers,
            format::duration_us(least_us),
        )
    })
}

/// The measured arrivals of a replication that are in scope. What they wait for besides is left
/// out, which can only make them faster.
fn measured(question: &Question, scope: &Scope, seed: u64) -> Vec<(u64, u64)> {
    let names = question.workload.class_names();
    let counted = |class: u16| match scope {
        Scope::Class(name) => names[usize::from(class)] == name,
        Scope::Overall | Scope::EveryClass => true,
    };
    let overhead_ns = question.costs.overhead_ns;
    Generator::new(&question.workload, question.offered, seed)
        .take(question.requests as usize)
        .skip(libm::ceil(question.requests as f64 * WARM_UP) as usize)
        .filter(|arrival| counted(arrival.class))
        .map(|arrival| (arrival.at_ns, arrival.service_ns + overhead_ns))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_sim::Offered;
    use headway_workload::Workload;

    fn question(slo: &str, load: f64) -> Question {
        let workload = Workload::named("high-bimodal").unwrap();
        Question {
            requests: 50_000,
            replications: 2,
            ..Question::new(
                workload,
                slo.parse().unwrap(),
                4,
                Offered::Load { load, workers: 4 },
            )
        }
    }

    #[track_caller]
    fn shows(question: &Question, bound: &str, why: &str) {
        let shown = impossible(question);
        let found = shown
            .iter()
            .any(|one| one.bound == bound && one.why.contains(why));
        assert!(found, "{bound}, {why}: {shown:?}");
    }

    #[test]
    fn too_much_load_is_shown_by_the_utilization() {
        shows(
            &question("overall.slowdown.p99<=100", 1.05),
            "every bound",
            "take 4.200 workers, and there are 4",
        );
        let bounded = Question {
            queue_limit: 10,
            ..question("overall.slowdown.p99<=100", 1.05)
        };
        assert_eq!(impossible(&bounded), []);
    }

    #[test]
    fn a_bound_below_the_service_itself_is_shown_by_it() {
        let too_short = question("class.*.latency.p99<=50us", 0.5);
        shows(
            &too_short,
            "class.long.latency.p99<=50us",
            "100.0 % of these requests",
        );
        assert_eq!(impossible(&too_short).len(), 1);
        shows(
            &question("overall.latency.p90<=50us", 0.5),
            "overall.latency.p90<=50us",
            "50.0 %",
        );
        assert_eq!(impossible(&question("overall.latency.p50<=50us", 0.5)), []);
        shows(
            &question("overall.latency.mean<=50us", 0.5),
            "overall.latency.mean<=50us",
            "50.5 µs on average",
        );
        shows(
            &question("class.short.slowdown.p50<=0.9", 0.1),
            "class.short.slowdown.p50<=0.9",
            "below 1",
        );
    }

    #[test]
    fn the_network_and_overheads_count() {
        let far = Question {
            network_ns: 10_000,
            ..question("class.short.slowdown.p99<=10", 0.3)
        };
        shows(&far, "class.short.slowdown.p99<=10", "100.0 %");
        let near = Question {
            network_ns: 8_000,
            ..far
        };
        assert_eq!(impossible(&near), []);
    }

    #[test]
    fn a_maximum_below_that_of_the_pooled_worker_is_shown_by_it() {
        // Four longs at once already take one worker four times as fast 100 µs.
        let at = |load| question("overall.latency.max<=400us", load);
        assert_eq!(impossible(&at(0.3)), []);
        shows(
            &at(0.98),
            "overall.latency.max<=400us",
            "largest under FCFS",
        );
    }
}
