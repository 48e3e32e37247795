//! The handler of a trial: a calibrated spin that notices what is taken from it.
//!
//! Watching the machine from a thread of its own would take a core from the run; the handlers
//! spin anyway, so they are the gap log: two readings of the clock further apart than a few µs
//! were separated by somebody else's work. The server notes by itself what its threads lost outside of handlers.

use crate::gaps::{GAP_NS, Gap};
use headway_machine::Clock;
use headway_runtime::{Call, NoPreempt, Service, alive, checkpoint, suspensions};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

const SHOWN_GAP_NS: u64 = 10_000;

/// Gaps of a worker for which there is room from the start.
const ROOM: usize = 1 << 16;

/// What was taken from the handlers of a run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Disturbance {
    /// Time the handlers ran, gaps included, ns.
    pub observed_ns: u64,
    /// Time in gaps, ns.
    pub lost_ns: u64,
    /// Gaps over 10 µs.
    pub gaps_over_10us: u64,
    /// Length of the longest, ns.
    pub longest_ns: u64,
}

impl Disturbance {
    /// Part of the handlers' time that was lost.
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

/// One worker's part of the log, on lines of its own. Locked by whoever has just lost several µs.
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
    /// For so many workers, and a dispatcher that works.
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

    /// What was noticed so far, over all workers, and every gap on the clock's scale.
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
    /// The time, in ticks. What was taken from the thread since it was last known to run is noted: most of what comes while a request runs is
    /// followed by an interruption, since its quantum is over then, so that times between two readings with none in between are too few.
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
        let work = self.clock.ticks_in(call.service_hint_ns());
        let (mut done, mut last, mut turns) = (0, self.look(log), suspensions());
        while done < work {
            checkpoint();
            let (now, seen) = (self.look(log), suspensions());
            // What passed while the request was interrupted was not its own.
            if seen == turns {
                done += now.wrapping_sub(last);
            }
            (last, turns) = (now, seen);
        }
        // Whoever began the request may have another one by now.
        let ran_ns = self.clock.ns_in(done);
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
