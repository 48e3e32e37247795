//! A lower bound on every policy: one worker as fast as all of them together.
//!
//! One worker of `c` times the speed does at least as well as `c` workers on the same arrivals: it gives
//! each running request its share. So the best order for that one worker is a lower bound for every
//! policy on the same arrivals: its mean latency is least under SRPT (Schrage 1968), its largest latency
//! under FCFS, which for equal allowances is EDF (Liu & Layland 1973; Horn 1974).
//!
//! Times are multiplied by `c` instead of dividing service times, so that whole numbers suffice.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The least mean latency, ns, that any policy on `workers` workers can give to these requests:
/// `(arrival, service time)` in ns, in order of arrival. 0 for none.
#[must_use]
pub fn srpt_mean_ns(requests: &[(u64, u64)], workers: usize) -> f64 {
    let speed = workers as u128;
    let mut left: BinaryHeap<Reverse<(u128, u128)>> = BinaryHeap::new();
    let mut now = 0;
    let mut total = 0;
    for &(at_ns, service_ns) in requests {
        let at = u128::from(at_ns) * speed;
        total += serve(&mut left, &mut now, at);
        left.push(Reverse((u128::from(service_ns), at)));
    }
    total += serve(&mut left, &mut now, u128::MAX);
    total as f64 / speed as f64 / requests.len().max(1) as f64
}

/// Serves the shortest request first, until a time. Adds the latencies of the requests that end.
fn serve(left: &mut BinaryHeap<Reverse<(u128, u128)>>, now: &mut u128, until: u128) -> u128 {
    let mut latencies = 0;
    while let Some(Reverse((remaining, at))) = left.pop() {
        let span = until - *now;
        if remaining > span {
            left.push(Reverse((remaining - span, at)));
            break;
        }
        *now += remaining;
        latencies += *now - at;
    }
    // The worker is idle until then, except at the very end.
    if until < u128::MAX {
        *now = until;
    }
    latencies
}

/// The least possible largest latency, ns, for these requests, as [`srpt_mean_ns`]; also no less than the
/// longest service time, since a request runs on one worker at a time. 0 for none.
#[must_use]
pub fn fcfs_max_ns(requests: &[(u64, u64)], workers: usize) -> f64 {
    let speed = workers as u128;
    let mut free_at = 0;
    let mut largest = 0;
    for &(at_ns, service_ns) in requests {
        let at = u128::from(at_ns) * speed;
        free_at = at.max(free_at) + u128::from(service_ns);
        largest = largest
            .max(free_at - at)
            .max(u128::from(service_ns) * speed);
    }
    largest as f64 / speed as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_sim::{Experiment, Offered};
    use headway_workload::{Generator, Workload};

    #[test]
    fn small_cases_by_hand() {
        // A long one is set aside for a short one: 3 + (10 + 3) − … on one worker.
        let requests = [(0, 10), (2, 3)];
        assert_eq!(srpt_mean_ns(&requests, 1), (13.0 + 3.0) / 2.0);
        // Two workers: twice as fast. Ends at 1.5 · 1 → 3.5 and 6.5.
        assert_eq!(srpt_mean_ns(&requests, 2), (6.5 + 1.5) / 2.0);
        assert_eq!(fcfs_max_ns(&requests, 1), 11.0);
        assert_eq!(fcfs_max_ns(&requests, 2), 10.0);
        assert_eq!(srpt_mean_ns(&[(5, 4), (100, 4)], 1), 4.0);
        assert_eq!((srpt_mean_ns(&[], 3), fcfs_max_ns(&[], 3)), (0.0, 0.0));
    }

    #[test]
    fn one_worker_with_equal_service_times_waits_as_in_theory() {
        // SRPT is FCFS then: M/D/1, S + ρS ÷ 2(1 − ρ) (Pollaczek–Khinchine).
        let workload = Workload::named("fixed-1us").unwrap();
        let offered = Offered::Load {
            load: 0.7,
            workers: 1,
        };
        let drawn = Generator::new(&workload, offered, 3).take(400_000);
        let requests: Vec<_> = drawn.map(|a| (a.at_ns, a.service_ns)).collect();
        let expected = 1_000.0 + 0.7 * 1_000.0 / (2.0 * 0.3);
        let mean = srpt_mean_ns(&requests, 1);
        assert!((mean / expected - 1.0).abs() < 0.02, "{mean} {expected}");
    }

    #[test]
    fn no_policy_is_better_than_the_bounds() {
        for (traffic, workers, load) in [
            ("high-bimodal", 4, 0.9),
            ("tpcc", 2, 0.8),
            ("exponential-1us", 1, 0.9),
        ] {
            let workload = Workload::named(traffic).unwrap();
            let offered = Offered::Load { load, workers };
            let drawn = Generator::new(&workload, offered, 9).take(30_000);
            let requests: Vec<_> = drawn.map(|a| (a.at_ns, a.service_ns)).collect();
            let mean_us = srpt_mean_ns(&requests, workers) / 1e3;
            let max_us = fcfs_max_ns(&requests, workers) / 1e3;
            for name in headway_policy::server::systems::NAMES {
                // A dispatcher that runs requests counts as one more worker.
                let policy = match *name {
                    "concord" => "concord,dispatcher=dedicated",
                    name => name,
                };
                let mut experiment = Experiment::new(workload.clone(), policy.parse().unwrap())
                    .workers(workers)
                    .offered(offered)
                    .requests(30_000)
                    .seed(9);
                experiment.warm_up = 0.0;
                let latency = experiment.run().unwrap().run.overall.latency_us;
                assert!(
                    latency.mean >= mean_us,
                    "{policy} {traffic}: {} {mean_us}",
                    latency.mean
                );
                assert!(
                    latency.max >= max_us,
                    "{policy} {traffic}: {} {max_us}",
                    latency.max
                );
            }
        }
    }
}
