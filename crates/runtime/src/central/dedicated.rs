//! The layout with a dispatcher on a core of its own.

use std::sync::Arc;

use headway_fiber::{Attached, Mechanism};
use headway_policy::server::role::{Ingress, Local, Monitor};

use super::dispatcher::Dispatcher;
use super::dispatcher_worker::{DispatcherWorker, DispatcherWorkerParts};
use super::fiber_worker::{
    Expiry, FiberWorker, FiberWorkerParts, SHORT_SLICE_NS, Slices, WorkerTurn,
};
use super::view::CentralQueues;
use super::watch::CentralWorkerSlot;
use super::worker::CentralWorker;
use crate::request::slice::ClockReading;
use crate::request::verdict::SliceVerdict;
use crate::threads::control::{ServerControl, ServerPhase};
use crate::threads::park::Backoff;
use headway_sync::park::Parkers;

/// The dispatcher thread: until everything is answered after a drain, or given up.
pub(super) fn dispatch<I, M>(
    dispatcher: Dispatcher<I, M>,
    worker_parts: Option<DispatcherWorkerParts>,
    control: &ServerControl,
    parkers: &Parkers,
    backoff: Backoff,
) where
    I: Ingress,
    M: Monitor,
{
    let attached = worker_parts.is_some().then(Attached::new);
    let worker = attached
        .as_ref()
        .zip(worker_parts)
        .map(|(attached, parts)| DispatcherWorker::new(parts, attached));
    let mut thread = DispatcherThread {
        worker,
        dispatcher,
        control,
        parkers,
        backoff,
    };
    while thread.step() {}
    thread.dispatcher.close();
}

/// A dispatcher whose thread can run fibers, if it runs requests.
struct DispatcherThread<'a, I, M> {
    /// Of a dispatcher that runs requests.
    worker: Option<DispatcherWorker<'a>>,
    dispatcher: Dispatcher<I, M>,
    control: &'a ServerControl,
    parkers: &'a Parkers,
    backoff: Backoff,
}

impl<I: Ingress, M: Monitor> DispatcherThread<'_, I, M> {
    /// One turn as the dispatcher, and one as a worker; with nothing to do it waits a little. `false` once the server has stopped.
    #[inline]
    fn step(&mut self) -> bool {
        if self.control.phase() == ServerPhase::Stopped {
            return false;
        }
        let Self {
            worker,
            dispatcher,
            control,
            parkers,
            backoff,
        } = self;
        let progress = dispatcher.step();
        backoff.saw(dispatcher.now_ns());
        if backoff.may_sleep() {
            dispatcher.wake_given(None, |worker| {
                parkers.wake(worker);
            });
        }
        let ran_ns = worker
            .as_mut()
            .filter(|_| control.phase() < ServerPhase::Abandoning)
            .and_then(|worker| worker.work(dispatcher));
        if let Some(ran_ns) = ran_ns {
            backoff.reset();
            backoff.ran(&ran_ns);
        } else if progress > 0 || dispatcher.is_wakeful() {
            backoff.reset();
        } else if backoff.exhausted() {
            dispatcher.sleep();
            backoff.slept();
        }
        true
    }
}

/// A worker thread beside the dispatcher's.
pub(super) struct DedicatedWorker {
    pub(super) worker: CentralWorker,
    pub(super) parkers: Parkers,
}

impl DedicatedWorker {
    /// Runs what it is given until the server stops.
    pub(super) fn run(mut self) {
        while self.step() {}
        self.worker.give_up();
    }

    /// Runs one request; without one it waits a little. `false` once the server has stopped.
    #[inline]
    fn step(&mut self) -> bool {
        if self.worker.control.phase() == ServerPhase::Stopped {
            return false;
        }
        if self.worker.turn() {
            self.worker.backoff.reset();
        } else if self.worker.backoff.exhausted() {
            self.sleep();
        }
        true
    }

    fn sleep(&mut self) {
        let worker = &self.worker;
        self.parkers.park_unless(worker.index, || worker.has_news());
        self.worker.backoff.slept();
    }
}

/// A worker beside the dispatcher's thread whose requests may be interrupted.
pub(super) struct DedicatedFiberWorker<L> {
    pub(super) parts: FiberWorkerParts<L>,
    pub(super) parkers: Parkers,
}

impl<L: Local> DedicatedFiberWorker<L> {
    /// Runs what it is given until the server stops.
    pub(super) fn run(self) {
        let Self { parts, parkers } = self;
        let by_clock = parts.fiber_context.mechanism == Mechanism::Tsc;
        let watched = parts.worker_slot.as_ref().filter(|_| by_clock).cloned();
        match watched {
            None => parts.run(L::SLICES, |worker| {
                DedicatedFiberThread::new(worker, &parkers, LocalSlices).run();
            }),
            Some(worker_slot) => parts.run(true, |worker| {
                DedicatedFiberThread::new(worker, &parkers, ClockSlices::of(worker_slot)).run();
            }),
        }
    }
}

/// The worker, once its thread can run fibers.
struct DedicatedFiberThread<'a, L, S> {
    worker: FiberWorker<'a, L>,
    parkers: &'a Parkers,
    slices: S,
    /// When the last request was interrupted: the next begins then.
    interrupted_at: Option<ClockReading>,
}

impl<'a, L: Local, S: Slices<L>> DedicatedFiberThread<'a, L, S> {
    fn new(worker: FiberWorker<'a, L>, parkers: &'a Parkers, slices: S) -> Self {
        Self {
            worker,
            parkers,
            slices,
            interrupted_at: None,
        }
    }

    fn run(mut self) {
        while self.step() {}
        self.worker.give_up();
    }

    /// Runs one request for as long as it may; without one it waits a little. `false` once the server has stopped.
    #[inline(always)]
    fn step(&mut self) -> bool {
        let worker = &mut self.worker;
        if worker.control.phase() == ServerPhase::Stopped {
            return false;
        }
        let interrupted_at = self.interrupted_at.take();
        let now = interrupted_at.unwrap_or_else(|| worker.fibers.now());
        match worker.turn(now, &mut self.slices) {
            WorkerTurn::Idle if worker.backoff.exhausted() => {
                let FiberWorker { view, control, .. } = &*worker;
                self.parkers
                    .park_unless(view.me.index(), || control.wants_worker(!view.is_empty()));
                worker.backoff.slept();
            }
            WorkerTurn::Idle => return true,
            WorkerTurn::Ran => {}
            WorkerTurn::Interrupted(now) => self.interrupted_at = Some(now),
        }
        worker.backoff.reset();
        true
    }
}

/// A request's slices are those that its local policy gives: the dispatcher sees to the rest.
struct LocalSlices;

impl<L: Local> Slices<L> for LocalSlices {
    const TAKES_HINTS: bool = true;

    #[inline(always)]
    fn begin(&mut self, _now_ns: u64, own_ns: Option<u64>) -> Option<u64> {
        own_ns
    }

    #[inline(always)]
    fn renew(&mut self, expiry: Expiry, local: &mut L, view: &CentralQueues) -> Option<u64> {
        let for_ns = local.renew(expiry.now_ns, view)?;
        view.renewed();
        Some(for_ns)
    }
}

/// A request's slices are quanta, which the worker's own clock ends. The dispatcher, who watches them too, says beside it whether the request
/// goes on: no line crosses while a quantum lasts.
struct ClockSlices {
    worker_slot: Arc<CentralWorkerSlot>,
    /// The time after which the monitor wanted to look at the last request, ns: a request that the dispatcher has not seen yet gets as much.
    quantum_ns: u64,
    /// When the slice ends that the local policy gave.
    own_due_ns: u64,
}

impl ClockSlices {
    fn of(worker_slot: Arc<CentralWorkerSlot>) -> Self {
        Self {
            worker_slot,
            quantum_ns: SHORT_SLICE_NS,
            own_due_ns: u64::MAX,
        }
    }
}

impl<L: Local> Slices<L> for ClockSlices {
    const TAKES_HINTS: bool = false;

    #[inline]
    fn begin(&mut self, now_ns: u64, own_ns: Option<u64>) -> Option<u64> {
        let own_ns = own_ns.unwrap_or(u64::MAX);
        self.own_due_ns = now_ns.saturating_add(own_ns);
        Some(own_ns.min(self.quantum_ns))
    }

    #[inline]
    fn renew(&mut self, expiry: Expiry, local: &mut L, view: &CentralQueues) -> Option<u64> {
        let now_ns = expiry.now_ns;
        let until_ns = match self.worker_slot.verdict.read(expiry.epoch) {
            Some(SliceVerdict::Yields) => return None,
            Some(SliceVerdict::GoesOn {
                until_ns,
                quantum_ns,
            }) => {
                // A monitor that never wants to look at this one may want to at the next.
                if quantum_ns < u64::MAX {
                    self.quantum_ns = quantum_ns;
                }
                until_ns
            }
            None => 0,
        };
        if now_ns >= self.own_due_ns {
            self.own_due_ns = now_ns + local.renew(now_ns, view)?;
        }
        // The dispatcher, which decides when a quantum is over, may not have come to it yet.
        let for_ns = until_ns.saturating_sub(now_ns).max(SHORT_SLICE_NS);
        Some(for_ns.min(self.own_due_ns - now_ns).max(1))
    }
}
