//! The handler of a trial: a calibrated spin that records the time taken from it.
//!
//! A watching thread would take a core from the run. The handlers spin anyway, so they write the gap log: when two
//! readings of the clock are more than a few µs apart, other work ran between them. The server itself records the time
//! that its threads lost outside of handlers.

use crate::gaps::{GAP_NS, Gap};
use headway_machine::Clock;
use headway_runtime::{Call, NoPreempt, Service, WorkMeter, alive, checkpoint};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const SHOWN_GAP_NS: u64 = 10_000;

/// Capacity for a worker's gaps, allocated at the start.
const ROOM: usize = 1 << 16;

/// The time taken from the handlers of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Disturbance {
    /// Time the handlers ran, gaps included, ns.
    pub observed_ns: u64,
    /// Time in gaps, ns.
    pub lost_ns: u64,
    /// Gaps over 10 µs.
    pub gaps_over_10us: u64,
    /// Length of the longest gap, ns.
    pub longest_ns: u64,
}

impl Disturbance {
    /// Fraction of the handlers' time that was lost.
    #[must_use]
    pub fn lost_fraction(&self) -> f64 {
        self.lost_ns as f64 / self.observed_ns.max(1) as f64
    }

    fn add(&mut self, gap: &Gap) {
        let gap_ns = gap.end - gap.start;
        self.lost_ns += gap_ns;
        self.gaps_over_10us += u64::from(gap_ns > SHOWN_GAP_NS);
        self.longest_ns = self.longest_ns.max(gap_ns);
    }
}

/// One worker's part of the log, on cache lines of its own. A worker locks it after a loss of several µs only.
#[repr(align(128))]
struct Log {
    observed_ns: AtomicU64,
    gaps: Mutex<Vec<Gap>>,
}

/// Spins for as long as each request asks.
#[derive(Clone)]
pub(crate) struct SpinProbe {
    clock: Clock,
    logs: Arc<[Log]>,
}

impl SpinProbe {
    /// Creates the log for a number of workers, and for a dispatcher that runs requests.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            clock: Clock::global(),
            logs: (0..=workers)
                .map(|_| Log {
                    observed_ns: AtomicU64::new(0),
                    gaps: Mutex::new(Vec::with_capacity(ROOM)),
                })
                .collect(),
        }
    }

    /// The sums over all workers so far, and every gap on the clock's scale.
    pub(crate) fn noticed(&self) -> (Disturbance, Vec<Gap>) {
        let mut all = Disturbance::default();
        let mut gaps = Vec::new();
        for log in self.logs.iter() {
            all.observed_ns += log.observed_ns.load(Ordering::Relaxed);
            gaps.extend_from_slice(&log.gaps.lock().unwrap_or_else(PoisonError::into_inner));
        }
        gaps.iter().for_each(|gap| all.add(gap));
        (all, gaps)
    }
}

impl SpinProbe {
    /// Reads the time, in ticks, and records the time taken from the thread since it was last known to run. Gaps between two readings of the
    /// spin alone would miss most losses: a loss usually ends the quantum, so an interruption follows it at once.
    #[inline(always)]
    fn look(&self, log: &Log) -> u64 {
        let now = self.clock.ticks();
        let now_ns = self.clock.to_ns(now);
        let before_ns = alive(now_ns);
        if now_ns.saturating_sub(before_ns) > GAP_NS {
            log.note(before_ns..now_ns);
        }
        now
    }
}

impl Service for SpinProbe {
    #[inline]
    fn handle(&self, call: &mut Call<'_>) {
        let log = &self.logs[call.worker().index()];
        // A request from a network says in its header how long it is.
        let work_ns = match call.service_hint_ns() {
            0 => u64::from(call.header_time_ns()),
            hint_ns => hint_ns,
        };
        let work = self.clock.ticks_in(work_ns);
        let mut meter = WorkMeter::begin(self.look(log));
        while meter.done() < work {
            checkpoint();
            meter.look(self.look(log));
        }
        // The worker that began the request may run another one by now.
        let ran_ns = self.clock.ns_in(meter.done());
        log.observed_ns.fetch_add(ran_ns, Ordering::Relaxed);
    }
}

impl Log {
    #[cold]
    fn note(&self, gap: Gap) {
        let _whole = NoPreempt::enter();
        self.gaps
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(gap);
    }
}
