//! What the machine alone does to a tail: arrivals at workers without any cost, which stop as threads of this machine just stopped.
//!
//! A guest's processors are taken away for milliseconds, and each tick of its kernel takes microseconds. No pool does better than these workers: shorts go first, longs
//! make way each 5 µs, and nothing takes time but the jobs. So this is the least that a contender can be expected to show here.

use std::collections::VecDeque;
use std::thread;

use headway_machine::Clock;

use crate::replay::{Arrival, SPAN_NS, SPREAD_NS, p99};

/// A thread that spins reads the clock each few tens of nanoseconds; a longer gap is a stop.
const LEAST_STOP_NS: u64 = 2_000;

/// A long job makes way after so much service: a pool asks its policy as often.
const SLICE_NS: u64 = 5_000;

/// A worker does nothing in between, ns.
#[derive(Clone, Copy)]
struct Stop {
    from_ns: u64,
    until_ns: u64,
}

/// The 99th percentile of slowdowns with as many ideal workers, under the stops of as many threads that spin for as long as a round lasts.
pub(crate) fn ideal_p99_slowdown(arrivals: &[Arrival], workers: usize) -> f64 {
    let latencies_ns = serve(arrivals, &record(workers));
    p99(arrivals, &latencies_ns)
}

/// The stops of threads that spin, by thread.
fn record(threads: usize) -> Vec<Vec<Stop>> {
    let clock = Clock::global();
    let from_ns = clock.now_ns() + SPREAD_NS;
    let spin = move || {
        let (mut stops, mut last_ns) = (Vec::new(), clock.now_ns());
        while last_ns < from_ns + SPAN_NS as u64 {
            let now_ns = clock.now_ns();
            if now_ns - last_ns > LEAST_STOP_NS && last_ns >= from_ns {
                stops.push(Stop {
                    from_ns: last_ns - from_ns,
                    until_ns: now_ns - from_ns,
                });
            }
            last_ns = now_ns;
        }
        stops
    };
    thread::scope(|scope| {
        let spinning: Vec<_> = (0..threads).map(|_| scope.spawn(spin)).collect();
        let joined = spinning.into_iter().map(|thread| thread.join());
        joined.map(|stops| stops.unwrap_or_default()).collect()
    })
}

/// One worker's time.
struct IdealWorker {
    free_ns: u64,
    /// Those that are not over.
    stops: VecDeque<Stop>,
}

impl IdealWorker {
    /// Whether it is stopped as it would take a job: then it is free once that is over.
    fn is_stopped(&mut self) -> bool {
        let Some(&Stop { from_ns, until_ns }) = self.stops.front() else {
            return false;
        };
        if from_ns > self.free_ns {
            return false;
        }
        self.stops.pop_front();
        self.free_ns = self.free_ns.max(until_ns);
        true
    }

    /// When so much work ends that begins as the worker is free.
    fn work(&mut self, mut left_ns: u64) -> u64 {
        let mut now_ns = self.free_ns;
        while let Some(&Stop { from_ns, until_ns }) = self.stops.front()
            && from_ns < now_ns + left_ns
        {
            left_ns -= from_ns - now_ns;
            now_ns = until_ns;
            self.stops.pop_front();
        }
        self.free_ns = now_ns + left_ns;
        self.free_ns
    }
}

/// A long job that waits from this time on, and what is left of it.
struct WaitingLong {
    from_ns: u64,
    job: usize,
    left_ns: u64,
}

/// The latency of each arrival, ns.
fn serve(arrivals: &[Arrival], stops: &[Vec<Stop>]) -> Vec<u64> {
    let mut workers: Vec<IdealWorker> = stops
        .iter()
        .map(|stops| IdealWorker {
            free_ns: 0,
            stops: stops.iter().copied().collect(),
        })
        .collect();
    let mut latencies_ns = vec![0; arrivals.len()];
    let (mut next, mut ended) = (0, 0);
    let mut shorts = VecDeque::new();
    let mut longs: VecDeque<WaitingLong> = VecDeque::new();
    while ended < arrivals.len()
        && let Some(worker) = workers.iter_mut().min_by_key(|worker| worker.free_ns)
    {
        if worker.is_stopped() {
            continue;
        }
        while let Some(arrival) = arrivals.get(next)
            && arrival.at_ns <= worker.free_ns
        {
            if arrival.is_long {
                longs.push_back(WaitingLong {
                    from_ns: arrival.at_ns,
                    job: next,
                    left_ns: arrival.service_ns,
                });
            } else {
                shorts.push_back((next, arrival.service_ns));
            }
            next += 1;
        }
        let long = || {
            let waits = longs
                .iter()
                .position(|long| long.from_ns <= worker.free_ns)?;
            let long = longs.remove(waits)?;
            Some((long.job, long.left_ns))
        };
        let Some((job, left_ns)) = shorts.pop_front().or_else(long) else {
            // What others do may come back to the queue at its slice's end.
            let arrives_ns = arrivals.get(next).map_or(u64::MAX, |arrival| arrival.at_ns);
            worker.free_ns = arrives_ns.min(worker.free_ns + SLICE_NS);
            continue;
        };
        let slice_ns = left_ns.min(SLICE_NS);
        let end_ns = worker.work(slice_ns);
        if left_ns > slice_ns {
            longs.push_front(WaitingLong {
                from_ns: end_ns,
                job,
                left_ns: left_ns - slice_ns,
            });
        } else {
            latencies_ns[job] = end_ns - arrivals[job].at_ns;
            ended += 1;
        }
    }
    latencies_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(at_ns: u64, service_ns: u64, is_long: bool) -> Arrival {
        Arrival {
            at_ns,
            service_ns,
            is_long,
        }
    }

    #[test]
    fn shorts_overtake_a_long_at_its_slices_end() {
        let arrivals = [arrival(0, 100_000, true), arrival(7_000, 1_000, false)];
        assert_eq!(serve(&arrivals, &[Vec::new()]), [101_000, 4_000]);
        assert_eq!(serve(&arrivals, &[Vec::new(), Vec::new()])[0], 100_000);
    }

    #[test]
    fn a_stop_takes_its_time() {
        let stop = |from_ns, until_ns| Stop { from_ns, until_ns };
        let arrivals = [arrival(12_000, 1_000, false), arrival(29_500, 1_000, false)];
        let stops = vec![stop(10_000, 20_000), stop(30_000, 40_000)];
        assert_eq!(serve(&arrivals, &[stops.clone()]), [9_000, 11_000]);
        // Another takes what comes meanwhile.
        assert_eq!(serve(&arrivals, &[Vec::new(), stops]), [1_000, 1_000]);
    }
}
