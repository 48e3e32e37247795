//! Earliest deadline first (Liu and Layland, JACM 20, 1973).

use super::heap::{ByKey, Key};
use crate::ClassId;
use crate::server::{Job, Shape};
use alloc::vec::Vec;

/// Ordered by deadline.
pub type Earliest = ByKey<Deadlines>;

/// When a request is to be done: at its arrival plus the SLO of its class.
#[derive(Clone, Debug)]
pub struct Deadlines {
    /// By class, ns.
    slo_ns: Vec<u64>,
}

impl Deadlines {
    /// The SLOs declared, else so many mean service times of the class. UNKNOWN has none: it comes
    /// after everything else, in order of arrival.
    #[must_use]
    pub fn new(shape: &Shape, means: f64) -> Self {
        /// Later than any SLO, and an arrival still fits on top.
        const NONE_NS: u64 = 1 << 62;
        let slo_ns = shape.slos_ns(means).chain([NONE_NS]);
        Self {
            slo_ns: slo_ns.collect(),
        }
    }

    /// When the request is to be done, ns.
    #[inline]
    #[must_use]
    pub fn of(&self, job: &Job) -> u64 {
        job.arrived_ns
            .saturating_add(self.slo_ns[job.class.index()])
    }
}

impl Earliest {
    /// One queue, with the shape's limit for each class.
    #[must_use]
    pub fn by_deadline(deadlines: Deadlines, shape: &Shape) -> Self {
        Self::new(
            deadlines,
            shape.queues(),
            shape.queue_limit,
            shape.job_capacity,
        )
    }
}

impl Key for Deadlines {
    #[inline]
    fn of(&self, job: &mut Job) -> u64 {
        Self::of(self, job)
    }

    fn completed(&mut self, _class: ClassId, _cpu_ns: u64) {}

    /// What waits already keeps the deadline that it came with.
    fn adopt(&mut self, fresh: &Self) {
        self.slo_ns.clone_from(&fresh.slo_ns);
    }
}
