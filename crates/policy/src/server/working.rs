//! A dispatcher that is also a worker (Concord § 3.3).
//!
//! When nothing can be dispatched it takes the first request that nobody began and runs it for a
//! slice at a time, by code that interrupts itself. What it began only it can finish: workers run
//! the other instrumentation.

use crate::ClassId;
use crate::server::controls::Control;
use crate::server::disciplines::Discipline;
use crate::server::placements::Placement;
use crate::server::role::{
    Assignable, Dispatch, DispatcherSlice, DispatcherWork, GroupShares, Ingress, Inspect, Owner,
    Shed, UrgencyIndex,
};
use crate::server::{Central, Job, JobId, Plan, WorkerId};

/// A central dispatcher that works while all workers' queues are full.
pub struct Working<D, P, C> {
    central: Central<D, P, C>,
    slice_ns: u64,
    /// What it began and has not finished: the dedicated buffer of § 3.3.
    begun: Option<JobId>,
}

impl<D, P, C> Working<D, P, C> {
    /// Slices of at most `slice_ns`; with 0 the dispatcher only dispatches.
    #[must_use]
    pub fn new(central: Central<D, P, C>, slice_ns: u64) -> Self {
        Self {
            central,
            slice_ns,
            begun: None,
        }
    }
}

impl<D: Discipline, P: Placement, C: Control> DispatcherWork for Working<D, P, C> {
    const WORKS: bool = true;

    fn work(&mut self, now_ns: u64) -> Option<DispatcherSlice> {
        if self.slice_ns == 0 {
            return None;
        }
        if self.begun.is_none() {
            self.begun = self.central.take_unstarted(now_ns).map(|job| job.id);
        }
        self.begun.map(|job| DispatcherSlice {
            job,
            slice_ns: self.slice_ns,
        })
    }

    fn worked(&mut self, now_ns: u64, job: Job, cpu_ns: Option<u64>) {
        if let Some(cpu_ns) = cpu_ns {
            self.begun = None;
            self.central.completed(now_ns, job.id, cpu_ns);
        }
    }
}

impl<D: Discipline, P: Placement, C: Control> Ingress for Working<D, P, C> {
    const OWNER: Owner = P::OWNER;

    #[inline]
    fn arrived(&mut self, now_ns: u64, job: Job) -> Result<(), Shed> {
        self.central.arrived(now_ns, job)
    }

    #[inline]
    fn poll(&mut self, now_ns: u64) -> Option<Dispatch> {
        self.central.poll(now_ns)
    }

    #[inline]
    fn yielded(&mut self, now_ns: u64, worker: WorkerId, job: Job) {
        self.central.yielded(now_ns, worker, job);
    }

    #[inline]
    fn finished(&mut self, now_ns: u64, worker: WorkerId, job: JobId, cpu_ns: u64) {
        self.central.finished(now_ns, worker, job, cpu_ns);
    }

    fn worker_added(&mut self, now_ns: u64, worker: WorkerId) {
        self.central.worker_added(now_ns, worker);
    }

    fn worker_removed(&mut self, now_ns: u64, worker: WorkerId) {
        self.central.worker_removed(now_ns, worker);
    }

    fn grow(&mut self, capacity: usize) {
        self.central.grow(capacity);
    }

    /// The next slice is as long as the new rules say; whether there are any does not change, since a request may be in the middle of one.
    fn adopt(&mut self, fresh: &Self) {
        self.central.adopt(&fresh.central);
        if self.slice_ns > 0 && fresh.slice_ns > 0 {
            self.slice_ns = fresh.slice_ns;
        }
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.central.waiting()
    }

    #[inline]
    fn wants(&self, worker: WorkerId) -> bool {
        self.central.wants(worker)
    }
}

impl<D: Discipline, P: Placement, C: Control> Inspect for Working<D, P, C> {
    fn peek(&self, others: usize) -> Option<&Job> {
        self.central.peek(others)
    }

    fn dispatched(&self, job: JobId) -> Option<&Job> {
        self.central.dispatched(job)
    }

    fn index(&self, class: ClassId, attained_ns: u64) -> Option<UrgencyIndex> {
        self.central.index(class, attained_ns)
    }

    fn plan(&self) -> Option<&Plan> {
        self.central.plan()
    }

    fn revisions(&self) -> u64 {
        self.central.revisions()
    }
}

impl<D: Discipline, P: Placement, C: Control> Assignable for Working<D, P, C> {
    fn assign(&mut self, now_ns: u64, shares: &GroupShares) {
        self.central.assign(now_ns, shares);
    }

    fn withdraw(&mut self, class: ClassId) -> Option<JobId> {
        self.central.withdraw(class)
    }

    /// What the dispatcher began itself keeps no worker from starting.
    fn would_start(&self, class: ClassId) -> bool {
        self.central.would_start(class)
    }
}
