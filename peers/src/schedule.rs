//! The arrivals of a round, and when each request was answered.
//!
//! Every peer plays the same schedule: it claims requests in their order, none before it is due, and serves each by spinning on the
//! clock for as long as the request asks. Latency counts from the intended arrival, however late the peer looks.

use anyhow::{Result, bail};
use headway_bench::Disturbance;
use headway_bench::gaps::GAP_NS;
use headway_machine::Clock;
use headway_workload::Arrival;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Time for a peer's threads to settle before the first arrival.
const LEAD_NS: u64 = 5_000_000;
/// How long a peer may take for what it has not answered when the last request has arrived.
const DRAIN: Duration = Duration::from_secs(30);
/// How often the main thread looks whether all is answered, once all has arrived.
const LOOK: Duration = Duration::from_millis(5);
/// Gaps from this length on are counted as such in a report.
const SHOWN_GAP_NS: u64 = 10_000;
/// In place of the latency of a request without an answer.
const UNANSWERED: u64 = u64::MAX;

/// The cursor that all workers move, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Cursor(AtomicUsize);

/// Time that the machine took from requests while they ran.
#[derive(Default)]
#[repr(align(128))]
struct Lost {
    total_ns: AtomicU64,
    /// Part of it: after the service time was over.
    overrun_ns: AtomicU64,
    longest_ns: AtomicU64,
    gaps_over_10us: AtomicU64,
}

/// The requests of a round. Peers play it one after the other; [`start`](Self::start) begins it anew.
pub(crate) struct Schedule {
    clock: Clock,
    gap_ticks: u64,
    arrivals: Vec<Arrival>,
    /// By request; a relaxed store each, so that no worker waits for another's line.
    latencies_ns: Vec<AtomicU64>,
    start_ns: AtomicU64,
    next: Cursor,
    lost: Lost,
}

impl Schedule {
    /// The schedule of these arrivals, kept until the program ends: tasks hold plain references to it instead of counted ones.
    pub(crate) fn leaked(arrivals: Vec<Arrival>) -> &'static Self {
        let clock = Clock::global();
        let unanswered = || AtomicU64::new(UNANSWERED);
        Box::leak(Box::new(Self {
            clock,
            gap_ticks: clock.ticks_in(GAP_NS),
            latencies_ns: arrivals.iter().map(|_| unanswered()).collect(),
            arrivals,
            start_ns: AtomicU64::new(u64::MAX),
            next: Cursor::default(),
            lost: Lost::default(),
        }))
    }

    pub(crate) fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// Forgets what was played and lets the first request arrive in a few milliseconds.
    pub(crate) fn start(&self) {
        for latency_ns in &self.latencies_ns {
            latency_ns.store(UNANSWERED, Ordering::Relaxed);
        }
        let lost = &self.lost;
        for figure in [
            &lost.total_ns,
            &lost.overrun_ns,
            &lost.longest_ns,
            &lost.gaps_over_10us,
        ] {
            figure.store(0, Ordering::Relaxed);
        }
        let start_ns = self.clock.now_ns() + LEAD_NS;
        self.start_ns.store(start_ns, Ordering::Relaxed);
        self.next.0.store(0, Ordering::Release);
    }

    /// When a request is to arrive, on the clock's scale.
    fn due_ns(&self, index: usize) -> u64 {
        self.start_ns.load(Ordering::Relaxed) + self.arrivals[index].at_ns
    }

    /// Takes the next request, due or not; none when all are taken.
    pub(crate) fn claim(&self) -> Option<usize> {
        let index = self.next.0.fetch_add(1, Ordering::AcqRel);
        (index < self.arrivals.len()).then_some(index)
    }

    /// Takes the next request if it has arrived.
    pub(crate) fn claim_due(&self) -> Option<usize> {
        let now_ns = self.clock.now_ns();
        let mut index = self.next.0.load(Ordering::Acquire);
        while index < self.arrivals.len() && self.due_ns(index) <= now_ns {
            let claim = self.next.0.compare_exchange_weak(
                index,
                index + 1,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match claim {
                Ok(_) => return Some(index),
                Err(moved) => index = moved,
            }
        }
        None
    }

    /// Whether every request is taken.
    pub(crate) fn is_taken(&self) -> bool {
        self.next.0.load(Ordering::Acquire) >= self.arrivals.len()
    }

    /// Spins until a claimed request arrives.
    pub(crate) fn wait_for(&self, index: usize) {
        while self.clock.now_ns() < self.due_ns(index) {
            std::hint::spin_loop();
        }
    }

    /// Serves a request: spins for its service time, as the handler of `headway bench` does, and notes its latency.
    pub(crate) fn serve(&self, index: usize) {
        let work = self.clock.ticks_in(self.arrivals[index].service_ns);
        let begun = self.clock.ticks();
        let mut last = begun;
        while last.wrapping_sub(begun) < work {
            let now = self.clock.ticks();
            if now.wrapping_sub(last) > self.gap_ticks {
                self.note_gap(self.clock.ns_in(now - last));
            }
            last = now;
        }
        let overrun = last.wrapping_sub(begun) - work;
        if overrun > self.gap_ticks {
            self.note_lost(0, self.clock.ns_in(overrun));
        }
        let end_ns = self.clock.to_ns(last);
        self.answer(index, end_ns.saturating_sub(self.due_ns(index)));
    }

    /// Notes that a request was answered so long after its intended arrival.
    pub(crate) fn answer(&self, index: usize, latency_ns: u64) {
        self.latencies_ns[index].store(latency_ns, Ordering::Relaxed);
    }

    /// Notes a gap between two readings of the clock in a request that ran.
    #[cold]
    fn note_gap(&self, gap_ns: u64) {
        self.note_lost(gap_ns, 0);
        let lost = &self.lost;
        lost.longest_ns.fetch_max(gap_ns, Ordering::Relaxed);
        let is_shown = gap_ns > SHOWN_GAP_NS;
        lost.gaps_over_10us
            .fetch_add(u64::from(is_shown), Ordering::Relaxed);
    }

    /// Notes that requests lost so much time while they ran, and that they ran so much longer than their service times for it.
    #[cold]
    pub(crate) fn note_lost(&self, lost_ns: u64, overrun_ns: u64) {
        self.lost.total_ns.fetch_add(lost_ns, Ordering::Relaxed);
        self.lost
            .overrun_ns
            .fetch_add(overrun_ns, Ordering::Relaxed);
    }

    /// Waits until every request is answered.
    ///
    /// # Errors
    /// When requests stay without an answer.
    pub(crate) fn wait_until_answered(&self) -> Result<()> {
        let deadline = std::time::Instant::now() + DRAIN;
        loop {
            let missing = self.latencies_ns().filter(Option::is_none).count();
            if missing == 0 {
                return Ok(());
            }
            if std::time::Instant::now() > deadline {
                let total = self.arrivals.len();
                bail!(
                    "{missing} of {total} requests have no answer {} s after the last arrived; lower --load",
                    DRAIN.as_secs()
                );
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Each request's latency, in their order; none of one without an answer.
    pub(crate) fn latencies_ns(&self) -> impl Iterator<Item = Option<u64>> {
        let latencies_ns = self.latencies_ns.iter();
        latencies_ns.map(|latency_ns| {
            Some(latency_ns.load(Ordering::Relaxed)).filter(|&ns| ns != UNANSWERED)
        })
    }

    /// The service times of all requests, added up.
    pub(crate) fn service_ns(&self) -> u64 {
        self.arrivals.iter().map(|arrival| arrival.service_ns).sum()
    }

    /// What the machine took from the requests.
    pub(crate) fn disturbance(&self) -> Disturbance {
        Disturbance {
            observed_ns: self.service_ns() + self.lost.overrun_ns.load(Ordering::Relaxed),
            lost_ns: self.lost.total_ns.load(Ordering::Relaxed),
            gaps_over_10us: self.lost.gaps_over_10us.load(Ordering::Relaxed),
            longest_ns: self.lost.longest_ns.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests of a microsecond, so far apart.
    fn schedule(requests: u64, apart_ns: u64) -> &'static Schedule {
        let arrivals = (0..requests).map(|index| Arrival {
            at_ns: index * apart_ns,
            class: 0,
            service_ns: 1_000,
            flow: 0,
        });
        Schedule::leaked(arrivals.collect())
    }

    #[test]
    fn a_request_is_claimed_once_and_not_before_it_is_due() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let schedule = schedule(3, HOUR_NS);
        schedule.start();
        assert_eq!(schedule.claim_due(), None);
        schedule.wait_for(0);
        assert_eq!(schedule.claim_due(), Some(0));
        assert_eq!(schedule.claim_due(), None);
        assert!(!schedule.is_taken());
        assert_eq!(
            [schedule.claim(), schedule.claim(), schedule.claim()],
            [Some(1), Some(2), None]
        );
        assert!(schedule.is_taken());
    }

    #[test]
    fn latency_counts_from_the_intended_arrival_and_contains_the_service() {
        let schedule = schedule(2, 0);
        schedule.start();
        schedule.wait_for(0);
        schedule.serve(0);
        assert_eq!(schedule.latencies_ns().filter(Option::is_none).count(), 1);
        schedule.serve(1);
        schedule.wait_until_answered().unwrap();
        let latencies_ns: Vec<u64> = schedule.latencies_ns().flatten().collect();
        // Both arrived at once, so the second waited for the first. Service times are rounded to ticks of the clock.
        assert!(latencies_ns[0] >= 900, "{latencies_ns:?}");
        assert!(latencies_ns[1] >= latencies_ns[0] + 900, "{latencies_ns:?}");
    }

    #[test]
    fn a_schedule_starts_anew() {
        let schedule = schedule(1, 0);
        for _ in 0..2 {
            schedule.start();
            assert_eq!(schedule.latencies_ns().flatten().count(), 0);
            assert_eq!(schedule.disturbance().lost_ns, 0);
            let index = schedule.claim().unwrap();
            schedule.answer(index, 7);
            schedule.note_lost(3, 2);
            let disturbance = schedule.disturbance();
            assert_eq!((disturbance.lost_ns, disturbance.observed_ns), (3, 1_002));
            assert!(schedule.is_taken());
        }
    }
}
