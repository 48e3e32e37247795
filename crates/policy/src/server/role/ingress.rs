//! Which waiting request goes to which worker.

use super::assignable::{Assignable, WithoutAssignment};
use super::dispatcher_work::{DispatcherWork, WithoutDispatcherWork};
use super::inspect::{Inspect, WithoutInspection};
use crate::server::{Job, JobId, WorkerId};

/// "Hand this request to this worker."
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dispatch {
    /// Who runs it, or queues it.
    pub worker: WorkerId,
    /// What to run.
    pub job: JobId,
}

/// The request's queue was full; it was not accepted and must be answered as shed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shed;

/// Who carries an [`Ingress`] out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A dispatcher thread, which pays for every decision.
    Dispatcher,
    /// The network: RSS, or a kernel's reuse-port group. It costs nothing and decides at once.
    Steering,
    /// Nobody: what arrives, or is given back, is in the shared queue at once, and the workers
    /// help themselves ([`Unplaced`]).
    Nobody,
}

/// Decides which waiting request goes to which worker. What only some can do is in three traits of their own, of which an ingress
/// has each or says that it is [without](super#what-a-role-can-do-more).
pub trait Ingress: Inspect + DispatcherWork + Assignable {
    /// Who carries this ingress out.
    const OWNER: Owner;

    /// A request came in. On `Err` it was not accepted.
    ///
    /// # Errors
    /// [`Shed`] when its queue is full.
    fn arrived(&mut self, now_ns: u64, job: Job) -> Result<(), Shed>;

    /// The next decision; `None` when nothing can be dispatched.
    fn poll(&mut self, now_ns: u64) -> Option<Dispatch>;

    /// A worker gave the request back unfinished; the job says how much service it attained so far.
    fn yielded(&mut self, now_ns: u64, worker: WorkerId, job: Job);

    /// A worker finished the request, which took it `cpu_ns` of its time.
    fn finished(&mut self, now_ns: u64, worker: WorkerId, job: JobId, cpu_ns: u64);

    /// The server gained this worker.
    fn worker_added(&mut self, now_ns: u64, worker: WorkerId);

    /// The server loses this worker: nothing more is sent to it; what it runs, it finishes.
    fn worker_removed(&mut self, now_ns: u64, worker: WorkerId);

    /// Makes room for job ids below `capacity`; for engines in virtual time.
    fn grow(&mut self, capacity: usize);

    /// Takes over the rules of one that was just built, and keeps what it holds and has learned. They differ in parameters that may
    /// change [while serving](crate::spec::Param::while_serving) only.
    fn adopt(&mut self, fresh: &Self);

    /// Requests waiting here.
    fn waiting(&self) -> usize;

    /// Whether something waits that could run on this worker instead of what runs there.
    fn wants(&self, worker: WorkerId) -> bool;
}

/// Nobody places requests: they lie in the shared queue (Tardis).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unplaced;

impl Ingress for Unplaced {
    const OWNER: Owner = Owner::Nobody;

    fn arrived(&mut self, _now_ns: u64, _job: Job) -> Result<(), Shed> {
        Ok(())
    }

    fn poll(&mut self, _now_ns: u64) -> Option<Dispatch> {
        None
    }

    fn yielded(&mut self, _now_ns: u64, _worker: WorkerId, _job: Job) {}

    fn finished(&mut self, _now_ns: u64, _worker: WorkerId, _job: JobId, _cpu_ns: u64) {}

    fn worker_added(&mut self, _now_ns: u64, _worker: WorkerId) {}

    fn worker_removed(&mut self, _now_ns: u64, _worker: WorkerId) {}

    fn grow(&mut self, _capacity: usize) {}

    fn adopt(&mut self, _fresh: &Self) {}

    fn waiting(&self) -> usize {
        0
    }

    fn wants(&self, _worker: WorkerId) -> bool {
        false
    }
}

impl WithoutInspection for Unplaced {}
impl WithoutDispatcherWork for Unplaced {}
impl WithoutAssignment for Unplaced {}
