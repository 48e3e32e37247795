//! Preemption by the order of the queue, where what runs has a place in it too: who runs is looked at once a quantum.

use crate::ClassId;
use crate::server::role::{
    Backlog, Ingress, Monitor, PreemptionDecision, WithoutFeedback, WithoutPolls, WithoutTicks,
};
use crate::server::{Job, WorkerId};
use alloc::vec;
use alloc::vec::Vec;

/// At each tick, a request yields to what waits and has a lower [index](crate::server::role::Inspect::index) than it has by now.
#[derive(Clone)]
pub struct Outranked {
    quantum_ns: u64,
    /// By worker.
    running: Vec<RankedRequest>,
}

#[derive(Clone, Copy)]
struct RankedRequest {
    class: ClassId,
    since_ns: u64,
    /// Its service until then, ns.
    attained_ns: u64,
}

impl Outranked {
    /// Watches `workers` workers.
    ///
    /// # Panics
    /// When the quantum is 0.
    #[must_use]
    pub fn new(quantum_ns: u64, workers: usize) -> Self {
        assert!(quantum_ns > 0, "a request needs a turn to get on");
        let nothing = RankedRequest {
            class: ClassId(0),
            since_ns: 0,
            attained_ns: 0,
        };
        Self {
            quantum_ns,
            running: vec![nothing; workers],
        }
    }
}

impl Monitor for Outranked {
    const PREEMPTS: bool = true;
    const ON_DISPATCHER: bool = true;

    fn keeps_times(&self) -> bool {
        true
    }

    #[inline]
    fn started<Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        job: &Job,
        _epoch: u64,
        _queues: &Q,
    ) -> Option<u64> {
        self.running[worker.index()] = RankedRequest {
            class: job.class,
            since_ns: now_ns,
            attained_ns: job.attained_ns,
        };
        Some(self.quantum_ns)
    }

    #[inline]
    fn expired<I: Ingress, Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        ingress: &I,
        _queues: &Q,
    ) -> PreemptionDecision {
        let each_ns = self.quantum_ns;
        let Some(head) = ingress.peek(0) else {
            let holds_ns = u64::MAX;
            return PreemptionDecision::RenewWhileQuiet { each_ns, holds_ns };
        };
        let running = &self.running[worker.index()];
        let attained_ns = running.attained_ns + now_ns.saturating_sub(running.since_ns);
        let indices = ingress
            .index(head.class, head.attained_ns)
            .zip(ingress.index(running.class, attained_ns));
        match indices {
            Some((waiting, runs)) if waiting.ns < runs.ns => PreemptionDecision::Preempt,
            Some((_, runs)) => PreemptionDecision::RenewWhileQuiet {
                each_ns,
                holds_ns: runs.until_ns - attained_ns,
            },
            None => PreemptionDecision::Renew(each_ns),
        }
    }

    fn stopped(&mut self, _now_ns: u64, _worker: WorkerId, _epoch: u64) {}

    fn adopt(&mut self, fresh: &Self) {
        self.quantum_ns = fresh.quantum_ns;
    }
}

impl WithoutFeedback for Outranked {}
impl WithoutPolls for Outranked {}
impl WithoutTicks for Outranked {}
