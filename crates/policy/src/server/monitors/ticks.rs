//! The clock of a multi-level feedback queue: who runs is looked at once a quantum.

use crate::server::disciplines::Levels;
use crate::server::role::{
    Backlog, Ingress, Monitor, PreemptionDecision, WithoutFeedback, WithoutPolls, WithoutTicks,
};
use crate::server::{Job, WorkerId};
use alloc::vec;
use alloc::vec::Vec;

/// At each tick, a request yields to what waits at a lower level; and where its level's allotment
/// is over, also to what waits at the one it gets to.
#[derive(Clone)]
pub struct Ticks {
    levels: Levels,
    /// By worker.
    running: Vec<TickedRequest>,
}

#[derive(Clone, Copy, Default)]
struct TickedRequest {
    /// Service of the running request at the next tick, ns.
    attained_ns: u64,
}

impl Ticks {
    /// Watches `workers` workers.
    #[must_use]
    pub fn new(levels: Levels, workers: usize) -> Self {
        Self {
            levels,
            running: vec![TickedRequest::default(); workers],
        }
    }
}

impl Monitor for Ticks {
    const PREEMPTS: bool = true;
    const ON_DISPATCHER: bool = true;

    fn keeps_times(&self) -> bool {
        true
    }

    #[inline]
    fn started<Q: Backlog>(
        &mut self,
        _now_ns: u64,
        worker: WorkerId,
        job: &Job,
        _epoch: u64,
        _queues: &Q,
    ) -> Option<u64> {
        let quantum_ns = self.levels.quantum_ns;
        self.running[worker.index()] = TickedRequest {
            attained_ns: job.attained_ns + quantum_ns,
        };
        Some(quantum_ns)
    }

    #[inline]
    fn expired<I: Ingress, Q: Backlog>(
        &mut self,
        _now_ns: u64,
        worker: WorkerId,
        ingress: &I,
        _queues: &Q,
    ) -> PreemptionDecision {
        let quantum_ns = self.levels.quantum_ns;
        let running = &mut self.running[worker.index()];
        let before_ns = running.attained_ns.saturating_sub(quantum_ns);
        let allotments = |attained_ns| self.levels.allotments(attained_ns);
        let level = self.levels.at(running.attained_ns);
        let over = allotments(running.attained_ns) != allotments(before_ns);
        if ingress.peek(0).is_some_and(|head: &Job| {
            let head = self.levels.at(head.attained_ns);
            head < level || over && head == level
        }) {
            return PreemptionDecision::Preempt;
        }
        running.attained_ns += quantum_ns;
        PreemptionDecision::Renew(quantum_ns)
    }

    fn stopped(&mut self, _now_ns: u64, _worker: WorkerId, _epoch: u64) {}

    fn adopt(&mut self, fresh: &Self) {
        self.levels.quantum_ns = fresh.levels.quantum_ns;
    }
}

impl WithoutFeedback for Ticks {}
impl WithoutPolls for Ticks {}
impl WithoutTicks for Ticks {}
