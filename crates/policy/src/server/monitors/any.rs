//! Any monitor of a dispatcher, chosen while running: for systems that are put together by name.

use super::{Outranked, Overtake, Quantum, Ticks};
use crate::server::role::{
    Backlog, Heeding, Ingress, Monitor, Polling, Preempt, PreemptionDecision, Ticking,
};
use crate::server::{Job, WorkerId};

/// One of the monitors. A match costs a predicted branch per call, and all these systems share
/// one compiled type.
#[derive(Clone)]
pub enum AnyMonitor {
    /// At the end of a quantum.
    Quantum(Quantum),
    /// For what is more urgent.
    Overtake(Overtake),
    /// By levels.
    Ticks(Ticks),
    /// By the order of the queue.
    Outranked(Outranked),
}

macro_rules! each {
    ($any:expr, $monitor:ident => $call:expr) => {
        match $any {
            AnyMonitor::Quantum($monitor) => $call,
            AnyMonitor::Overtake($monitor) => $call,
            AnyMonitor::Ticks($monitor) => $call,
            AnyMonitor::Outranked($monitor) => $call,
        }
    };
}

impl Monitor for AnyMonitor {
    const PREEMPTS: bool = true;
    const ON_DISPATCHER: bool = true;

    fn keeps_times(&self) -> bool {
        each!(self, monitor => monitor.keeps_times())
    }

    #[inline]
    fn started<Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        job: &Job,
        epoch: u64,
        queues: &Q,
    ) -> Option<u64> {
        each!(self, monitor => monitor.started(now_ns, worker, job, epoch, queues))
    }

    #[inline]
    fn expired<I: Ingress, Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        ingress: &I,
        queues: &Q,
    ) -> PreemptionDecision {
        each!(self, monitor => monitor.expired(now_ns, worker, ingress, queues))
    }

    #[inline]
    fn stopped(&mut self, now_ns: u64, worker: WorkerId, epoch: u64) {
        each!(self, monitor => monitor.stopped(now_ns, worker, epoch));
    }

    fn adopt(&mut self, fresh: &Self) {
        match (self, fresh) {
            (Self::Quantum(own), Self::Quantum(fresh)) => own.adopt(fresh),
            (Self::Overtake(own), Self::Overtake(fresh)) => own.adopt(fresh),
            (Self::Ticks(own), Self::Ticks(fresh)) => own.adopt(fresh),
            (Self::Outranked(own), Self::Outranked(fresh)) => own.adopt(fresh),
            // Which monitor it is does not change while it watches.
            _ => {}
        }
    }
}

impl Heeding for AnyMonitor {
    const HEEDS: bool = Quantum::HEEDS || Overtake::HEEDS || Ticks::HEEDS || Outranked::HEEDS;

    #[inline]
    fn said_long<Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        job: &Job,
        epoch: u64,
        queues: &Q,
    ) -> Option<u64> {
        each!(self, monitor => monitor.said_long(now_ns, worker, job, epoch, queues))
    }
}

impl Polling for AnyMonitor {
    const POLLS: bool = true;

    #[inline]
    fn poll<I: Ingress, Q: Backlog>(
        &mut self,
        now_ns: u64,
        ingress: &I,
        queues: &Q,
    ) -> Option<Preempt> {
        each!(self, monitor => monitor.poll(now_ns, ingress, queues))
    }
}

impl Ticking for AnyMonitor {
    #[inline]
    fn next_deadline_ns(&self) -> Option<u64> {
        each!(self, monitor => monitor.next_deadline_ns())
    }

    fn tick<Q: Backlog>(&mut self, now_ns: u64, queues: &Q) -> u64 {
        each!(self, monitor => monitor.tick(now_ns, queues))
    }
}
