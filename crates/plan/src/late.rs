//! The number of requests that every policy serves late: a lower bound for percentiles.
//!
//! A percentile of the latency keeps a bound `T` only if all but a few requests `(a, s)` end by `a + T`; a percentile of
//! the slowdown keeps a bound `B` only if they end by `a + B·s`. So every request has a deadline, and the question is how
//! few requests can miss theirs.
//!
//! - *Pooling.* One worker of `c` times the speed can imitate `c` workers: it gives each running request a share of 1 ÷ c, and
//!   every request ends at the same time. (This holds for each sequence of arrivals by itself, and for a policy that knows the
//!   future, interrupts at no cost, and serves no other class.)
//! - *One worker.* With deadlines in the order of arrivals, first come first served meets all deadlines that any order meets (it
//!   is earliest deadline first, Horn 1974, and interrupts nothing). When the next request would be late, the algorithm gives up
//!   the request without which the others end soonest (Kise, Ibaraki & Mine, *Operations Research* 26, 1978, for ready and due
//!   times in the same order). The result is exactly the fewest late requests.
//! - *Other orders of deadlines*, of slowdowns say, are relaxed: each deadline is moved to at least the deadlines of
//!   earlier arrivals. Later deadlines only make fewer requests late.
//! - A request runs on one worker at a time, so a request with `s` beyond its own allowance is late on any number of workers.
//!   It is counted and removed, which can only help the others.
//!
//! A sharper bound would limit the speed of each request throughout: a lone request is served at speed `1`, not `c`. With
//! many workers and few requests the pooled worker is far too fast, and the bound is then that of the service times alone.

/// A request with its deadline, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Due {
    /// When it arrives.
    pub at_ns: u64,
    /// Its service time on one worker, ns.
    pub service_ns: u64,
    /// The deadline, counted from the arrival.
    pub within_ns: u64,
}

/// A lower bound to how many of these requests, in order of arrival, end after their deadlines under any policy on `workers`
/// workers. It is the least number of late requests on one worker as fast as all of them, exactly so where deadlines are in the
/// order of arrivals.
///
/// ```
/// use headway_plan::{Due, least_late};
///
/// let due = |at_ns| Due { at_ns, service_ns: 10, within_ns: 12 };
/// // One worker can serve the first and the third; two, all.
/// let requests = [due(0), due(5), due(10)];
/// assert_eq!((least_late(&requests, 1), least_late(&requests, 2)), (1, 0));
/// ```
#[must_use]
pub fn least_late(requests: &[Due], workers: usize) -> usize {
    let mut worker = Pooled::default();
    let mut latest = 0;
    let mut late = 0;
    for due in requests {
        if due.service_ns > due.within_ns {
            late += 1;
            continue;
        }
        // Times are multiplied instead of dividing service times, so that whole numbers suffice.
        let speed = workers as u128;
        let at = u128::from(due.at_ns) * speed;
        latest = latest.max(at + u128::from(due.within_ns) * speed);
        late += usize::from(!worker.serve(at, u128::from(due.service_ns), latest));
    }
    late
}

/// The pooled worker, and the requests that it serves in time, in the order of their arrival.
#[derive(Default)]
struct Pooled {
    /// The requests of the present busy period; earlier ones cannot move.
    served: Vec<ServedRequest>,
    free_at: u128,
    /// The longest service so far: an upper bound of the time gained by giving up a request.
    longest: u128,
}

/// Most requests of a busy period that are tracked. Beyond it the backlog is forgotten: the bound gets weaker and stays valid.
const LONGEST_PERIOD: usize = 1 << 16;

#[derive(Clone, Copy)]
struct ServedRequest {
    service: u128,
    /// Its wait for the requests before it.
    wait: u128,
}

impl Pooled {
    /// Adds a request, and gives one up if the new request would be late. Returns whether the number of served requests grew.
    fn serve(&mut self, at: u128, service: u128, deadline: u128) -> bool {
        if self.free_at <= at || self.served.len() == LONGEST_PERIOD {
            self.served.clear();
            self.free_at = at;
        }
        self.longest = self.longest.max(service);
        let wait = self.free_at - at;
        self.served.push(ServedRequest { service, wait });
        self.free_at += service;
        if self.free_at <= deadline {
            return true;
        }
        self.give_one_up();
        false
    }

    /// Gives up the request without which the last one ends soonest. The requests after it move up by its service,
    /// each to its own arrival at most.
    fn give_one_up(&mut self) {
        let mut least_wait = u128::MAX;
        let (mut best, mut gain) = (0, 0);
        for (index, one) in self.served.iter().enumerate().rev() {
            if one.service.min(least_wait) > gain {
                (best, gain) = (index, one.service.min(least_wait));
            }
            least_wait = least_wait.min(one.wait);
            if least_wait.min(self.longest) <= gain {
                break;
            }
        }
        let mut shift = self.served.remove(best).service;
        for one in &mut self.served[best..] {
            shift = shift.min(one.wait);
            one.wait -= shift;
        }
        self.free_at -= shift;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_sim::Offered;
    use headway_workload::{Generator, Workload};
    use proptest::prelude::*;

    /// Whether the pooled worker can serve these requests in time, the earliest deadline first.
    fn feasible(requests: &[&Due], speed: u64) -> bool {
        let mut left: Vec<(u64, u64)> = vec![];
        let mut now = 0;
        let arrivals = requests.iter().map(|due| due.at_ns * speed);
        let ends = arrivals.clone().skip(1).chain([u64::MAX]);
        for ((due, at), until) in requests.iter().zip(arrivals).zip(ends) {
            now = now.max(at);
            left.push((at + due.within_ns * speed, due.service_ns));
            left.sort_by_key(|(deadline, _)| std::cmp::Reverse(*deadline));
            while now < until
                && let Some((deadline, service)) = left.pop()
            {
                let slice = service.min(until - now);
                now += slice;
                if now > deadline {
                    return false;
                }
                if slice < service {
                    left.push((deadline, service - slice));
                }
            }
        }
        true
    }

    /// The fewest late requests of the pooled worker, by trying every subset.
    fn by_brute_force(requests: &[Due], speed: u64) -> usize {
        let n = requests.len();
        let in_time = (0..1_u32 << n)
            .map(|chosen: u32| {
                let kept = (0..n).filter(move |at| chosen >> at & 1 == 1);
                kept.map(|at| &requests[at]).collect::<Vec<_>>()
            })
            .filter(|kept| {
                let alone = kept.iter().all(|due| due.service_ns <= due.within_ns);
                alone && feasible(kept, speed)
            });
        n - in_time.map(|kept| kept.len()).max().unwrap_or(0)
    }

    fn requests(within: impl Strategy<Value = u64>) -> impl Strategy<Value = Vec<Due>> {
        let gaps_and_services = prop::collection::vec((0_u64..12, 1_u64..15), 1..10);
        (gaps_and_services, prop::collection::vec(within, 10)).prop_map(|(drawn, withins)| {
            let mut at_ns = 0;
            drawn
                .into_iter()
                .zip(withins)
                .map(|((gap, service_ns), within_ns): ((u64, u64), u64)| {
                    at_ns += gap;
                    Due {
                        at_ns,
                        service_ns,
                        within_ns,
                    }
                })
                .collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        #[test]
        fn the_fewest_are_late_where_deadlines_are_in_order(
            mut drawn in requests(Just(0)), within_ns in 1_u64..30, workers in 1_usize..4
        ) {
            drawn.iter_mut().for_each(|due| due.within_ns = within_ns);
            prop_assert_eq!(least_late(&drawn, workers), by_brute_force(&drawn, workers as u64));
        }

        #[test]
        fn never_more_than_the_fewest_where_they_are_not(drawn in requests(1_u64..40), workers in 1_usize..4) {
            prop_assert!(least_late(&drawn, workers) <= by_brute_force(&drawn, workers as u64));
        }
    }

    fn poisson(workload: &str, load: f64, within_ns: u64) -> Vec<Due> {
        let workload = Workload::named(workload).unwrap();
        let offered = Offered::Load { load, workers: 1 };
        Generator::new(&workload, offered, 5)
            .take(200_000)
            .map(|a: headway_workload::Arrival| Due {
                at_ns: a.at_ns,
                service_ns: a.service_ns,
                within_ns,
            })
            .collect()
    }

    #[test]
    fn who_may_not_wait_is_lost_as_erlang_says() {
        // Equal requests that must begin at once: M/D/1/1 loses ρ ÷ (1 + ρ) (Erlang's B for one server).
        for load in [0.3, 0.9, 2.0] {
            let lost = least_late(&poisson("fixed-1us", load, 1_000), 1) as f64 / 200_000.0;
            assert!(
                (lost / (load / (1.0 + load)) - 1.0).abs() < 0.02,
                "{load}: {lost}"
            );
        }
    }

    #[test]
    fn of_more_than_can_be_done_the_surplus_is_late() {
        // Equal requests, and time to queue: all but 1 ÷ ρ.
        let lost = least_late(&poisson("fixed-1us", 1.5, 20_000), 1) as f64 / 200_000.0;
        assert!((lost - (1.0 - 1.0 / 1.5)).abs() < 0.005, "{lost}");
        // With some shorter requests, the algorithm gives up the long ones: fewer are late.
        let fewer = least_late(&poisson("exponential-1us", 1.5, 20_000), 1) as f64 / 200_000.0;
        assert!(fewer < 0.5 * lost, "{fewer} {lost}");
    }
}
