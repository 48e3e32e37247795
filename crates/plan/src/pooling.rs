//! SLO bounds that even one worker as fast as all workers together cannot keep, on the arrivals of every replication.

use crate::late::{Due, least_late};
use crate::pooled::{fcfs_max_ns, srpt_mean_ns};
use crate::question::Question;
use crate::servers::Servers;
use headway_report::slo::{Bound, Measure, Scope, Statistic};
use headway_report::{ShownBy, format, nearest_rank};
use headway_workload::{Arrival, Generator};

/// Fraction of the arrivals that is not measured, as in every experiment.
const WARM_UP: f64 = 0.1;
/// Margin for rounded shares, percentiles and means: their last digit proves nothing.
pub(crate) const ROUNDING: f64 = 1e-9;
/// A slowdown is recorded in thousandths, rounded to the nearest.
pub(crate) const SLOWDOWN_ROUNDING: f64 = 0.5e-3;

/// The proof that a bound cannot be kept, if there is one.
pub(crate) fn by_pooling(question: &Question, bound: &Bound) -> Option<(ShownBy, String)> {
    if question.is_bounded() {
        return None;
    }
    let quantile = match (bound.measure, bound.statistic) {
        (Measure::Latency, Statistic::Mean) => {
            let why = by_least(question, bound, srpt_mean_ns, "mean under SRPT");
            return why.map(|why| (ShownBy::PooledMean, why));
        }
        (Measure::Latency, Statistic::Max) => {
            let why = by_least(question, bound, fcfs_max_ns, "largest under FCFS");
            return why.map(|why| (ShownBy::PooledMax, why));
        }
        (Measure::Slowdown, Statistic::Mean | Statistic::Max) => return None,
        (_, Statistic::P50) => 0.5,
        (_, Statistic::P90) => 0.9,
        (_, Statistic::P99) => 0.99,
        (_, Statistic::P999) => 0.999,
    };
    let why = by_late(question, bound, quantile);
    why.map(|why| (ShownBy::PooledPercentile, why))
}

/// The least latency of requests `(arrival, service time)` on a number of workers, ns.
type LeastLatency = fn(&[(u64, u64)], usize) -> f64;

fn by_least(
    question: &Question,
    bound: &Bound,
    least_ns: LeastLatency,
    what: &str,
) -> Option<String> {
    let servers = Servers::of(question);
    let mut least_us = f64::INFINITY;
    for replication in 0..question.replications {
        let arrivals = measured(question, bound, replication)?;
        let requests: Vec<_> = arrivals
            .iter()
            .map(|arrival: &Arrival| (arrival.at_ns, servers.work_ns(arrival)))
            .collect();
        let fastest_ns = least_ns(&requests, servers.count) + question.network_ns as f64;
        least_us = least_us.min(fastest_ns / 1e3);
    }
    (least_us > bound.at_most * (1.0 + ROUNDING)).then(|| {
        format!(
            "{what} on one worker as fast as {servers} together is {} or more on the arrivals of every replication; no policy is below it",
            format::duration_us(least_us),
        )
    })
}

/// Proves that more requests must be late than the percentile allows.
fn by_late(question: &Question, bound: &Bound, quantile: f64) -> Option<String> {
    let servers = Servers::of(question);
    let mut least = f64::INFINITY;
    for replication in 0..question.replications {
        let arrivals = measured(question, bound, replication)?;
        let count = arrivals.len() as u64;
        let late = late(question, bound, &arrivals, &servers) as u64;
        if late <= count - nearest_rank(count, quantile) {
            return None;
        }
        least = least.min(late as f64 / count as f64);
    }
    Some(format!(
        "of these requests {} or more end later even on one worker as fast as {servers} together that gives up the fewest, on the arrivals of every replication; {} may",
        format::percent(least),
        format::percent(1.0 - quantile),
    ))
}

/// The number of these requests that must exceed the bound.
fn late(question: &Question, bound: &Bound, arrivals: &[Arrival], servers: &Servers) -> usize {
    let due = |arrival: &Arrival| Due {
        at_ns: arrival.at_ns,
        service_ns: servers.work_ns(arrival),
        within_ns: within_ns(question, bound, arrival.service_ns),
    };
    let all: Vec<Due> = arrivals.iter().map(due).collect();
    let together = least_late(&all, servers.count);
    // A slowdown gives each class its own allowance. Class by class, no deadline is relaxed to another class's.
    let classes = 0..question.workload.class_names().len() as u16;
    let alone = classes.map(|class| {
        let of_class = arrivals
            .iter()
            .zip(&all)
            .filter(|(arrival, _)| arrival.class == class);
        let of_class: Vec<Due> = of_class.map(|(_, due)| *due).collect();
        least_late(&of_class, servers.count)
    });
    together.max(alone.sum())
}

/// The longest latency that the bound allows a request at the server, rounded up.
fn within_ns(question: &Question, bound: &Bound, service_ns: u64) -> u64 {
    let allowed_ns = match bound.measure {
        Measure::Latency => bound.at_most * 1e3,
        Measure::Slowdown => (bound.at_most + SLOWDOWN_ROUNDING) * service_ns as f64,
    };
    (libm::ceil(allowed_ns) as u64).saturating_sub(question.network_ns)
}

/// The measured arrivals of a replication in the bound's scope, where there are any. All other requests are left out, which
/// can only make these faster. Nothing is proven by a part of them, so where the plan is cut off there are none.
fn measured(question: &Question, bound: &Bound, replication: u64) -> Option<Vec<Arrival>> {
    let names = question.workload.class_names();
    let seed = question.seed.wrapping_add(replication);
    let measured: Vec<Arrival> = Generator::new(&question.workload, question.offered, seed)
        .take(question.requests as usize)
        .take_while(|_| !question.is_cut_off())
        .skip((WARM_UP * question.requests as f64) as usize)
        .filter(|arrival| match &bound.scope {
            Scope::Class(name) => names[usize::from(arrival.class)] == name.as_str(),
            Scope::Overall | Scope::EveryClass => true,
        })
        .collect();
    (!measured.is_empty() && !question.is_cut_off()).then_some(measured)
}
