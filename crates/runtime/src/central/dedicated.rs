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
use crate::request::verdict::SliceVerdict;
use crate::threads::control::{ServerControl, ServerPhase};
use crate::threads::park::Backoff;
use headway_sync::park::Parkers;

/// The dispatcher thread: until everything is answered after a drain, or given up.
pub(super) fn dispatch<I, M>(
    mut dispatcher: Dispatcher<I, M>,
    worker_parts: Option<DispatcherWorkerParts>,
    control: &ServerControl,
    parkers: &Parkers,
    mut backoff: Backoff,
) where
    I: Ingress,
    M: Monitor,
{
    let attached = worker_parts.is_some().then(Attached::new);
    let mut dispatcher_worker = attached
        .as_ref()
        .zip(worker_parts)
        .map(|(attached, parts)| DispatcherWorker::new(parts, attached));
    while control.phase() != ServerPhase::Stopped {
        let progress = dispatcher.step();
        backoff.saw(dispatcher.now_ns());
        if backoff.may_sleep() {
            dispatcher.wake_given(None, |worker| {
                parkers.wake(worker);
            });
        }
        let ran_ns = dispatcher_worker
            .as_mut()
            .filter(|_| control.phase() < ServerPhase::Abandoning)
            .and_then(|worker| worker.work(&mut dispatcher));
        if let Some(ran_ns) = ran_ns {
            backoff.reset();
            backoff.ran(&ran_ns);
        } else if progress > 0 || dispatcher.is_wakeful() {
            backoff.reset();
        } else if backoff.exhausted() {
            dispatcher.sleep();
            backoff.slept();
        }
    }
    dispatcher.close();
}

/// A worker thread beside the dispatcher's.
pub(super) struct DedicatedWorker {
    pub(super) worker: CentralWorker,
    pub(super) parkers: Parkers,
}

impl DedicatedWorker {
    /// Runs what it is given until the server stops.
    pub(super) fn run(mut self) {
        while self.worker.control.phase() != ServerPhase::Stopped {
            if self.worker.turn() {
                self.worker.backoff.reset();
            } else if self.worker.backoff.exhausted() {
                self.sleep();
            }
        }
        self.worker.give_up();
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
                serve(worker, &parkers, &mut LocalSlices);
            }),
            Some(worker_slot) => parts.run(true, |worker| {
                serve(worker, &parkers, &mut ClockSlices::of(worker_slot));
            }),
        }
    }
}

fn serve<L: Local>(mut worker: FiberWorker<'_, L>, parkers: &Parkers, slices: &mut impl Slices<L>) {
    let mut read = None;
    while worker.control.phase() != ServerPhase::Stopped {
        let now = read.take().unwrap_or_else(|| worker.fibers.now());
        match worker.turn(now, slices) {
            WorkerTurn::Idle if worker.backoff.exhausted() => {
                let FiberWorker { view, control, .. } = &worker;
                parkers.park_unless(view.me.index(), || control.wants_worker(!view.is_empty()));
                worker.backoff.slept();
            }
            WorkerTurn::Idle => continue,
            WorkerTurn::Ran => {}
            WorkerTurn::Interrupted(now) => read = Some(now),
        }
        worker.backoff.reset();
    }
    worker.give_up();
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
