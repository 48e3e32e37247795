//! The quantum of Shinjuku and Concord: over, and something waits.

use super::Lateness;
use crate::Rng;
use crate::server::role::{
    Backlog, Ingress, Monitor, PreemptionDecision, WithoutFeedback, WithoutPolls, WithoutTicks,
};
use crate::server::{Job, WorkerId};

/// Interrupts whoever has run for a quantum while something waits that could run there instead,
/// at the ingress or at the worker itself; renews the quantum in full otherwise.
#[derive(Clone)]
pub struct Quantum {
    quantum_ns: u64,
    lateness: Lateness,
    rng: Rng,
}

impl Quantum {
    /// Quanta of `quantum_ns`, above 0, each as late as `lateness` says.
    #[must_use]
    pub fn new(quantum_ns: u64, lateness: Lateness, seed: u64) -> Self {
        Self {
            quantum_ns,
            lateness,
            rng: Rng::new(seed),
        }
    }

    #[inline]
    fn draw_ns(&mut self) -> u64 {
        self.quantum_ns + self.lateness.draw_ns(&mut self.rng)
    }
}

impl Monitor for Quantum {
    const PREEMPTS: bool = true;
    const ON_DISPATCHER: bool = true;

    fn keeps_times(&self) -> bool {
        true
    }

    #[inline]
    fn started<Q: Backlog>(
        &mut self,
        _now_ns: u64,
        _worker: WorkerId,
        _job: &Job,
        _epoch: u64,
        _queues: &Q,
    ) -> Option<u64> {
        Some(self.draw_ns())
    }

    #[inline]
    fn expired<I: Ingress, Q: Backlog>(
        &mut self,
        _now_ns: u64,
        worker: WorkerId,
        ingress: &I,
        queues: &Q,
    ) -> PreemptionDecision {
        if queues.len(worker) > 0 || ingress.wants(worker) {
            PreemptionDecision::Preempt
        } else {
            PreemptionDecision::Renew(self.draw_ns())
        }
    }

    fn stopped(&mut self, _now_ns: u64, _worker: WorkerId, _epoch: u64) {}

    /// How late interruptions come is a model of the machine, not a rule.
    fn adopt(&mut self, fresh: &Self) {
        self.quantum_ns = fresh.quantum_ns;
    }
}

impl WithoutFeedback for Quantum {}
impl WithoutPolls for Quantum {}
impl WithoutTicks for Quantum {}
