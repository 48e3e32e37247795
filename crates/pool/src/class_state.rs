//! One class of a pool: its limits, its queue, what became of its jobs.

use crate::class_queue::ClassQueue;
use crate::stats::{ClassCounts, ClassRuns};

/// One job in so many moves the mean by which the pool predicts waits.
const MEAN_OVER: f64 = 32.0;

/// The limits of a class, in the units of the pool.
#[derive(Clone, Debug)]
pub(crate) struct ClassLimits {
    pub(crate) name: String,
    pub(crate) mean_ns: f64,
    pub(crate) slo_ns: Option<u64>,
    pub(crate) workers_at_most: usize,
    pub(crate) queue_limit: usize,
    pub(crate) begin_within_ns: Option<u64>,
    pub(crate) uninterrupted: bool,
}

/// What the pool knows of a class.
pub(crate) struct ClassState {
    pub(crate) limits: ClassLimits,
    pub(crate) queue: ClassQueue,
    /// Tokens of the class that the policy has and no worker began: as many as jobs wait, or more where jobs left, or fewer where the class may
    /// not have as many workers.
    pub(crate) unbegun: usize,
    /// All tokens of the class.
    pub(crate) tokens: usize,
    pub(crate) running: usize,
    pub(crate) asleep: usize,
    pub(crate) mean_ns: f64,
    pub(crate) counts: ClassCounts,
    pub(crate) runs: ClassRuns,
    /// Whether it was named as one whose jobs meet no probe.
    pub(crate) is_named: bool,
}

impl ClassState {
    pub(crate) fn new(limits: ClassLimits) -> Self {
        Self {
            queue: ClassQueue::default(),
            unbegun: 0,
            tokens: 0,
            running: 0,
            asleep: 0,
            mean_ns: limits.mean_ns,
            counts: ClassCounts::default(),
            runs: ClassRuns::default(),
            is_named: false,
            limits,
        }
    }

    /// A run took so long, ns.
    #[inline]
    pub(crate) fn ran(&mut self, cpu_ns: u64) {
        self.runs.service.record(cpu_ns);
        let off_ns = cpu_ns as f64 - self.mean_ns;
        self.mean_ns += if self.mean_ns > 0.0 {
            off_ns / MEAN_OVER
        } else {
            off_ns
        };
    }
}
