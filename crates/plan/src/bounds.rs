//! SLO bounds that no policy can keep: each claim is computed, and names its reason.

use crate::pooling::{ROUNDING, SLOWDOWN_ROUNDING, by_pooling};
use crate::question::Question;
use crate::servers::Servers;
use headway_report::slo::{Bound, Measure, Scope, Statistic};
use headway_report::{Impossible, LOST_FRACTION_MAX, ShownBy, format};
use headway_workload::{Arrivals, Class};

/// The bounds of the SLO that provably no policy can keep on the question's workers; empty without such a
/// proof.
///
/// A dispatcher that runs requests itself counts as one more worker, and has no overhead.
///
/// With `λ` requests a second, service times `s` (mean `E[s]`), an overhead `o` of each, `c` workers, and a network that adds `N`:
///
/// | shown by | what | why no policy is below it |
/// |---|---|---|
/// | [`Utilization`](ShownBy::Utilization) | `λ (E[s] + o) > c` | more work comes than can be done: the backlog drifts to infinity (Loynes 1962) |
/// | [`ServiceTime`](ShownBy::ServiceTime) | a percentile, the mean or the largest of the latency is at least that of `s + o + N`; of the slowdown, that of `1 + (o + N) ÷ s` | a request runs on one worker at a time, at its speed |
/// | [`PooledMean`](ShownBy::PooledMean) | the mean latency is at least that of one worker `c` times as fast under SRPT ([`srpt_mean_ns`](crate::srpt_mean_ns)) | pooling; SRPT is best on one (Schrage 1968; Schrage & Miller 1966 for its mean) |
/// | [`PooledMax`](ShownBy::PooledMax) | the largest latency, likewise under FCFS ([`fcfs_max_ns`](crate::fcfs_max_ns)) | pooling; FCFS is EDF for equal allowances (Horn 1974) |
/// | [`PooledPercentile`](ShownBy::PooledPercentile) | so many requests at least are late ([`least_late`](crate::least_late)), and the percentile lets fewer | pooling; the fewest late on one (Kise, Ibaraki & Mine 1978) |
///
/// The last three are about the drawn arrivals: each holds for one sequence of arrivals, and counts if it holds for every
/// replication. They leave out the warm-up and all classes outside the bound's scope, which can only make the remaining requests
/// faster.
///
/// Three cases have no proof here: bounds that can be kept singly but not together, a mean slowdown (SRPT is not optimal for it, and the
/// optimal order is unknown), and bounded queues, which may shed requests.
#[must_use]
pub fn impossible(question: &Question) -> Vec<Impossible> {
    let steady = question.workload.phases.is_empty();
    let recorded = matches!(question.workload.arrivals, Arrivals::Trace(_));
    let mut shown: Vec<Impossible> = Vec::new();
    if steady && !recorded && !question.is_bounded() {
        shown.extend(saturated(question));
    }
    if !steady {
        return shown;
    }
    let saturated = !shown.is_empty();
    for bound in narrowed(question) {
        let by_service = by_service(question, &bound).map(|why| (ShownBy::ServiceTime, why));
        let proof = by_service.or_else(|| {
            if saturated {
                None
            } else {
                by_pooling(question, &bound)
            }
        });
        shown.extend(proof.map(|(shown_by, why)| Impossible {
            bound: bound.to_string(),
            shown_by,
            why,
        }));
    }
    shown
}

/// The SLO with every class by itself.
fn narrowed(question: &Question) -> Vec<Bound> {
    let names = question.workload.class_names();
    question
        .slo
        .bounds()
        .iter()
        .flat_map(|bound: &Bound| match bound.scope {
            Scope::EveryClass => names
                .iter()
                .map(|name| Bound {
                    scope: Scope::Class((*name).into()),
                    ..bound.clone()
                })
                .collect(),
            _ => vec![bound.clone()],
        })
        .collect()
}

fn saturated(question: &Question) -> Option<Impossible> {
    let servers = Servers::of(question);
    let service_ns = question.workload.mean_service_ns() + servers.overhead_ns as f64;
    let demand = question.rate_rps() * service_ns / 1e9;
    // Strictly above, by more than rounding: at exactly full load, constant gaps and service times keep their queues bounded.
    (demand > servers.count as f64 * (1.0 + ROUNDING)).then(|| Impossible {
        bound: "every bound".into(),
        shown_by: ShownBy::Utilization,
        why: format!(
            "utilization: the requests take {} workers, and there are {servers}; queues grow without bound under any policy",
            format::significant(demand, 4),
        ),
    })
}

/// The classes in a bound's scope.
fn classes<'a>(question: &'a Question, scope: &Scope) -> Vec<&'a Class> {
    let mix = question.workload.initial_mix().iter();
    mix.filter(|class| match scope {
        Scope::Class(name) => class.name == *name,
        Scope::Overall | Scope::EveryClass => true,
    })
    .collect()
}

/// The mean of `of_class` over the requests of these classes.
fn part(classes: &[&Class], of_class: impl Fn(&Class) -> f64) -> f64 {
    let shares: f64 = classes.iter().map(|class| class.share).sum();
    let sum: f64 = classes
        .iter()
        .map(|class| class.share * of_class(class))
        .sum();
    sum / shares
}

/// The proof from service times: every latency is at least service time, overhead and network together.
fn by_service(question: &Question, bound: &Bound) -> Option<String> {
    let fixed_ns = (question.network_ns + Servers::of(question).overhead_ns) as f64;
    let classes = classes(question, &bound.scope);
    if classes.is_empty() {
        return None;
    }
    let allowed = match bound.statistic {
        Statistic::Mean if question.is_bounded() => return below_one(bound),
        Statistic::Mean => return by_mean_service(&classes, fixed_ns, bound),
        Statistic::Max => return below_one(bound),
        Statistic::P50 => 0.5,
        Statistic::P90 => 0.1,
        Statistic::P99 => 0.01,
        Statistic::P999 => 0.001,
    };
    let too_slow = match bound.measure {
        Measure::Latency => {
            // Rounded up: the product may lie just below the intended whole number of ns.
            let left_ns = libm::ceil(bound.at_most * 1e3) - fixed_ns;
            part(&classes, |class| {
                if left_ns >= 0.0 {
                    1.0 - class.service.cdf(left_ns as u64)
                } else {
                    1.0
                }
            })
        }
        Measure::Slowdown if bound.at_most < 1.0 => return below_one(bound),
        // (S + fixed) ÷ S > B where S < fixed ÷ (B − 1), with B at the upper end of its rounding.
        Measure::Slowdown => {
            let at_most = bound.at_most + SLOWDOWN_ROUNDING;
            let shortest_ns = libm::ceil(fixed_ns / (at_most - 1.0)) - 1.0;
            part(&classes, |class| {
                if shortest_ns >= 1.0 {
                    class.service.cdf(shortest_ns as u64)
                } else {
                    0.0
                }
            })
        }
    };
    // Bounded queues may shed some requests, perhaps exactly these.
    let shed = if question.is_bounded() {
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

fn by_mean_service(classes: &[&Class], fixed_ns: f64, bound: &Bound) -> Option<String> {
    if bound.measure == Measure::Slowdown {
        return below_one(bound);
    }
    let least_us = (part(classes, Class::mean_ns) + fixed_ns) / 1e3;
    (least_us > bound.at_most * (1.0 + ROUNDING)).then(|| {
        let least = format::duration_us(least_us);
        format!("service time: these requests take {least} on average without waiting")
    })
}

fn below_one(bound: &Bound) -> Option<String> {
    let slowdown = bound.measure == Measure::Slowdown && bound.at_most < 1.0;
    slowdown.then(|| "service time: no slowdown is below 1".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_sim::Offered;
    use headway_workload::Workload;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

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
    fn a_plan_that_is_cut_off_proves_nothing_by_arrivals() {
        let asked = question("overall.latency.max<=400us", 0.95);
        shows(&asked, "overall.latency.max<=400us", "largest under FCFS");
        let cut_off = Question {
            cutoff: Some(Arc::new(AtomicBool::new(true))),
            ..asked
        };
        assert_eq!(impossible(&cut_off), []);
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

    #[test]
    fn a_percentile_that_too_many_must_exceed_is_shown_by_the_fewest_late() {
        // Of 4 workers at 98 % some percent of the longs must wait; none need at 30 %.
        let at = |load| question("class.long.latency.p99<=101us", load);
        assert_eq!(impossible(&at(0.3)), []);
        shows(&at(0.98), "class.long.latency.p99<=101us", "end later");
        let shown = impossible(&at(0.98));
        assert_eq!(shown[0].shown_by, ShownBy::PooledPercentile);
        // A dispatcher that runs requests counts as one more worker.
        let works = Question {
            policies: Some(vec![
                "concord,dispatcher=works,dispatchers=4".parse().unwrap(),
            ]),
            ..at(0.98)
        };
        assert_eq!(impossible(&works), []);
        let dedicated = Question {
            policies: Some(vec!["concord,dispatchers=4".parse().unwrap()]),
            ..at(0.98)
        };
        assert_eq!(impossible(&dedicated), shown);
    }

    #[test]
    fn dispatchers_that_are_tried_count_as_those_that_are_given() {
        // 14 workers and the four dispatchers of the largest candidate carry what 15 could not.
        let workload = Workload::named("high-bimodal").unwrap();
        let slo = "overall.slowdown.p99<=100".parse().unwrap();
        let load = Offered::Load {
            load: 1.15,
            workers: 14,
        };
        let free = Question {
            policies: Some(vec!["concord,dispatcher=works".parse().unwrap()]),
            requests: 10_000,
            ..Question::new(workload, slo, 14, load)
        };
        assert_eq!(impossible(&free), []);
        let one = Question {
            policies: Some(vec![
                "concord,dispatcher=works,dispatchers=1".parse().unwrap(),
            ]),
            ..free
        };
        shows(&one, "every bound", "there are 15");
    }

    #[test]
    fn what_is_rounded_to_the_bound_keeps_it() {
        use headway_workload::{Class, ServiceDistribution};
        let constant = |mean_ns, slo: &str, overhead_ns| {
            let class = Class::new("all", 1.0, ServiceDistribution::Constant { mean_ns });
            let workload = Workload::new("constant", vec![class]);
            let load = Offered::Load {
                load: 0.01,
                workers: 4,
            };
            Question {
                requests: 1_000,
                costs: headway_sim::Costs {
                    overhead_ns,
                    ..Default::default()
                }
                .into(),
                ..Question::new(workload, slo.parse().unwrap(), 4, load)
            }
        };
        for ns in 1_000..1_200 {
            let slo = format!("overall.latency.p99<={}us", ns as f64 / 1e3);
            assert_eq!(impossible(&constant(ns, &slo, 0)), []);
        }
        let slo = "overall.slowdown.p99<=1";
        assert_eq!(impossible(&constant(100_000, slo, 10)), []);
        shows(&constant(100_000, slo, 60), slo, "100.0 %");
    }

    #[test]
    fn a_class_that_was_never_drawn_shows_nothing() {
        let mut rare = question(
            "class.long.latency.p99<=150us,class.long.latency.mean<=101us",
            0.9,
        );
        rare.requests = 1;
        assert_eq!(impossible(&rare), []);
    }
}
