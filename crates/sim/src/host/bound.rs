//! An upper bound for slow allocators (Shenango § 2, Figure 1): the fewest cores that keep the tail of an M/M/n
//! queue below a limit, allocated for the whole interval.
//!
//! As in the paper, every interval starts with an empty queue, and requests left at its end finish at once:
//! their latency counts up to that end. A conservative bound: real allocators must guess the number of cores,
//! pay for changing it, and keep what is queued.

use headway_policy::Rng;
use headway_workload::{Generator, Offered, Workload};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The bound for a slow allocator at one offered load.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IntervalBound {
    /// Offered work, cores (erlang).
    pub offered_cores: f64,
    /// Fewest cores that keep the limit.
    pub cores: usize,
    /// Offered ÷ allocated cores.
    pub efficiency: f64,
}

/// The bound for exponential service times of `mean_ns` at each of `offered_cores`: p99.9 of the latency at most
/// `limit_ns`, reallocation every `interval_ns`, over `intervals` simulated intervals. `None` where more than
/// `most` cores would be needed. The numbers of cores never fall with the load.
#[must_use]
pub fn optimal_interval_bound(
    offered_cores: &[f64],
    mean_ns: u64,
    limit_ns: u64,
    interval_ns: u64,
    intervals: u64,
    most: usize,
    seed: u64,
) -> Vec<Option<IntervalBound>> {
    let mut least = 1;
    offered_cores
        .iter()
        .map(|&offered: &f64| {
            let cores =
                (least.max(offered.ceil() as usize).max(1)..=most).find(|&cores: &usize| {
                    let run = Intervals {
                        offered_cores: offered,
                        mean_ns,
                        interval_ns,
                        intervals,
                        seed,
                    };
                    run.p999_ns(cores) <= limit_ns
                })?;
            least = cores;
            Some(IntervalBound {
                offered_cores: offered,
                cores,
                efficiency: offered / cores as f64,
            })
        })
        .collect()
}

/// An M/M/n/FCFS queue that restarts empty at every interval.
struct Intervals {
    offered_cores: f64,
    mean_ns: u64,
    interval_ns: u64,
    intervals: u64,
    seed: u64,
}

impl Intervals {
    /// 99.9th percentile of the latency with `cores` cores, ns.
    fn p999_ns(&self, cores: usize) -> u64 {
        let service = headway_workload::ServiceDistribution::Exponential {
            mean_ns: self.mean_ns,
        };
        let class = headway_workload::Class::new("all", 1.0, service);
        let workload = Workload::new("exponential", vec![class]);
        let rate_rps = self.offered_cores * 1e9 / self.mean_ns as f64;
        let mut latencies = Vec::new();
        let seed = Rng::new(self.seed).next_u64();
        let mut free: BinaryHeap<Reverse<u64>> = BinaryHeap::with_capacity(cores);
        let mut end_ns = 0;
        for arrival in Generator::new(&workload, Offered::Rate(rate_rps), seed) {
            if arrival.at_ns >= end_ns {
                end_ns = (arrival.at_ns / self.interval_ns + 1) * self.interval_ns;
                if end_ns > self.intervals * self.interval_ns {
                    break;
                }
                free.clear();
                free.extend((0..cores).map(|_| Reverse(arrival.at_ns)));
            }
            let Some(Reverse(free_ns)) = free.pop() else {
                unreachable!("there is a core at least");
            };
            let done_ns = free_ns.max(arrival.at_ns) + arrival.service_ns;
            free.push(Reverse(done_ns));
            latencies.push(done_ns.min(end_ns) - arrival.at_ns);
        }
        let rank = headway_report::nearest_rank(latencies.len() as u64, 0.999) as usize;
        if latencies.is_empty() {
            0
        } else {
            *latencies.select_nth_unstable(rank - 1).1
        }
    }
}

/// Erlang's C: the probability that a request of an M/M/c queue waits, `offered` being its load in
/// erlang, below `cores`.
#[must_use]
pub fn mmc_p_wait(offered: f64, cores: usize) -> f64 {
    // Erlang's B by its recursion (Kleinrock, Queueing Systems I, § 3.6), which does not overflow.
    let blocked = (1..=cores).fold(1.0, |b, c| offered * b / (c as f64 + offered * b));
    let rho = offered / cores as f64;
    blocked / (1.0 - rho + rho * blocked)
}

/// Fewest cores with which the 99.9th percentile of an M/M/c queue's latency in steady state is at most
/// `limit_means` mean service times: the theory's value for an endless interval.
///
/// P(latency > t) = e^−t + C·(e^−(c−a)t − e^−t)/(1 − (c − a)), service rate 1; at c − a = 1 the second term is
/// C·t·e^−t (Gross and Harris, § 2.3).
#[must_use]
pub fn least_cores_in_theory(offered: f64, limit_means: f64) -> usize {
    let beyond = |cores: usize| {
        let (wait, spare) = (mmc_p_wait(offered, cores), cores as f64 - offered);
        let alone = libm::exp(-limit_means);
        let waited = if (spare - 1.0).abs() < 1e-9 {
            limit_means * alone
        } else {
            (libm::exp(-spare * limit_means) - alone) / (1.0 - spare)
        };
        alone + wait * waited
    };
    let mut cores = offered as usize + 1;
    while beyond(cores) > 0.001 {
        cores += 1;
    }
    cores
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erlang_c_matches_its_tables() {
        // M/M/1: the load itself; M/M/2 at 1 erlang: 1/3.
        assert!((mmc_p_wait(0.7, 1) - 0.7).abs() < 1e-12);
        assert!((mmc_p_wait(1.0, 2) - 1.0 / 3.0).abs() < 1e-12);
    }

    /// Long intervals are steady state: the simulation needs the theory's number of cores. Where the tail is
    /// within a percent of the limit, it may differ by one.
    #[test]
    fn long_intervals_agree_with_theory() {
        let loads = [0.5, 1.5, 3.0, 6.0];
        let second = 1_000_000_000;
        let simulated = optimal_interval_bound(&loads, 10_000, 100_000, 4 * second, 1, 32, 1);
        for (bound, offered) in simulated.iter().zip(loads) {
            let expected = least_cores_in_theory(offered, 10.0);
            assert_eq!(bound.unwrap().cores, expected, "at {offered} erlang");
        }
    }

    #[test]
    fn empty_queues_at_the_start_of_short_intervals_only_help() {
        for offered in [0.8, 2.0, 5.0] {
            let bound = |interval_ns, intervals| {
                optimal_interval_bound(&[offered], 10_000, 100_000, interval_ns, intervals, 32, 3)
                    [0]
            };
            let (short, long) = (bound(1_000_000, 2_000), bound(2_000_000_000, 1));
            assert!(short.unwrap().cores <= long.unwrap().cores);
        }
    }
}
