//! The handler of a trial: a calibrated spin that notices what is taken from it.
//!
//! Watching the machine from a thread of its own would take a core from the run; the handlers
//! spin anyway, so they are the gap log: two readings of the clock further apart than a few µs
//! were separated by somebody else's work.

use crate::compare::{ADDED_MAX, LOST_MAX};
use headway_machine::Clock;
use headway_runtime::{Call, Service};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Readings of a spin's clock further apart than this count as a gap.
const GAP_NS: u64 = 5_000;
const SHOWN_GAP_NS: u64 = 10_000;

/// What was taken from the handlers of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Disturbance {
    /// Time the handlers ran, gaps included, ns.
    pub observed_ns: u64,
    /// Time in gaps, ns.
    pub lost_ns: u64,
    /// Gaps over 10 µs.
    pub gaps_over_10us: u64,
    /// Sum of the gaps' squares, µs².
    pub squares_us2: u64,
    /// Length of the longest, ns.
    pub longest_ns: u64,
}

impl Disturbance {
    /// Part of the handlers' time that was lost.
    #[must_use]
    pub fn lost_fraction(&self) -> f64 {
        self.lost_ns as f64 / self.observed_ns.max(1) as f64
    }

    /// Notes that a thread waited for a core for so long in all. How it was spread is not known;
    /// the worst is assumed: one gap. This is how the dispatcher's gaps count, which has no spin to
    /// notice them by.
    pub(crate) fn waited(&mut self, waited_ns: u64) {
        self.squares_us2 += (waited_ns / 1_000).pow(2);
    }

    /// Whether the machine left a run at this load alone: what is lost is below
    /// [`LOST_MAX`](crate::compare::LOST_MAX), and gaps move the mean by little of the mean
    /// service time.
    #[must_use]
    pub fn is_quiet(&self, load: f64, mean_service_us: f64) -> bool {
        self.lost_fraction() <= LOST_MAX && self.added_mean_us(load) <= ADDED_MAX * mean_service_us
    }

    /// What the gaps add to the mean latency of a server at this load, µs: who arrives in a gap of
    /// length `g` waits `g/2` on average, and the backlog drains at `1 − ρ`, so
    /// `Σ g² / 2(1 − ρ)T`.
    #[must_use]
    pub fn added_mean_us(&self, load: f64) -> f64 {
        let observed_us = self.observed_ns.max(1) as f64 / 1e3;
        self.squares_us2 as f64 / (2.0 * (1.0 - load).max(0.05) * observed_us)
    }
}

/// One worker's part of the log, on lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Log {
    observed_ns: AtomicU64,
    lost_ns: AtomicU64,
    gaps_over_10us: AtomicU64,
    squares_us2: AtomicU64,
    longest_ns: AtomicU64,
}

/// Spins for as long as each request asks.
#[derive(Clone)]
pub(crate) struct Probe {
    clock: Clock,
    logs: Arc<[Log]>,
}

impl Probe {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            clock: Clock::global(),
            logs: (0..workers).map(|_| Log::default()).collect(),
        }
    }

    /// What was noticed so far, over all workers.
    pub(crate) fn disturbance(&self) -> Disturbance {
        let mut all = Disturbance::default();
        for log in self.logs.iter() {
            all.observed_ns += log.observed_ns.load(Ordering::Relaxed);
            all.lost_ns += log.lost_ns.load(Ordering::Relaxed);
            all.gaps_over_10us += log.gaps_over_10us.load(Ordering::Relaxed);
            all.squares_us2 += log.squares_us2.load(Ordering::Relaxed);
            all.longest_ns = all.longest_ns.max(log.longest_ns.load(Ordering::Relaxed));
        }
        all
    }
}

impl Service for Probe {
    #[inline]
    fn handle(&self, call: &mut Call<'_>) {
        let log = &self.logs[call.worker().index()];
        let (work, gap) = (
            self.clock.ticks_in(call.service_hint_ns()),
            self.clock.ticks_in(GAP_NS),
        );
        let start = self.clock.ticks();
        let mut last = start;
        while last.wrapping_sub(start) < work {
            std::hint::spin_loop();
            let now = self.clock.ticks();
            if now.wrapping_sub(last) > gap {
                log.note(self.clock.to_ns(now) - self.clock.to_ns(last));
            }
            last = now;
        }
        add(
            &log.observed_ns,
            self.clock.to_ns(last) - self.clock.to_ns(start),
        );
    }
}

impl Log {
    #[cold]
    fn note(&self, gap_ns: u64) {
        add(&self.lost_ns, gap_ns);
        add(&self.gaps_over_10us, u64::from(gap_ns > SHOWN_GAP_NS));
        add(&self.squares_us2, (gap_ns / 1_000).pow(2));
        self.longest_ns.fetch_max(gap_ns, Ordering::Relaxed);
    }
}

/// Each log has one writer: a load and a store, no read-modify-write.
#[inline]
fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}
