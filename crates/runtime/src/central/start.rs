//! Starts the threads of a dispatcher and its workers.

use std::sync::Arc;

use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_sync::leader::Leadership;
use headway_sync::park::Parkers;

use super::dedicated::{DedicatedFiberWorker, DedicatedWorker, dispatch};
use super::dispatcher_worker::DispatcherWorkerParts;
use super::fiber_worker::{FiberWorkerParts, WorkerLocal};
use super::group::DispatcherGroup;
use super::inline::InlineWorker;
use super::inline_fibers::InlineFiberWorker;
use super::watch::CentralWorkerSlot;
use super::worker::CentralWorker;
use crate::engine::launch::EngineBase;
use crate::request::shared_fibers::FiberContext;
use crate::threads::door::Door;

/// Starts a thread for the dispatcher, and workers; where there is a fiber context they may be interrupted.
pub(super) fn start_dedicated<I, L, M>(group: DispatcherGroup<I, L, M>, base: &mut EngineBase)
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    let control = group.control;
    let parkers = Parkers::new(group.workers.len());
    let (rx_waker, sleepers) = (group.rx_waker, parkers.clone());
    control.set_wake_all(Box::new(move || {
        // This announces the change to the workers as well.
        rx_waker.wake();
        sleepers.wake_all();
    }));
    let fiber_context = base.fiber_context.clone();
    let dispatcher_worker =
        fiber_context
            .clone()
            .zip(group.dispatcher_executor)
            .map(|(fiber_context, executor)| DispatcherWorkerParts {
                fiber_context,
                executor,
            });
    let setup = dispatcher_worker
        .as_ref()
        .map(|parts| parts.executor.setup());
    let (dispatcher, backoff) = (group.dispatcher, group.dispatcher_backoff);
    let woken = parkers.clone();
    let name = match group.number {
        None => "hw-dispatch".to_owned(),
        Some(number) => format!("hw-dispatch-{number}"),
    };
    base.spawn(name, setup, move || {
        dispatch(dispatcher, dispatcher_worker, &control, &woken, backoff);
    });
    let Some(fiber_context) = fiber_context else {
        for worker in group.workers {
            let (index, setup) = (group.first + worker.index, worker.executor.setup());
            let parkers = parkers.clone();
            let worker = DedicatedWorker { worker, parkers };
            base.spawn_worker(index, setup, || worker.run());
        }
        return;
    };
    let workers = group.workers.into_iter().zip(group.locals);
    for ((worker, local), worker_slot) in workers.zip(group.worker_slots) {
        let (index, setup) = (group.first + worker.index, worker.executor.setup());
        let worker = DedicatedFiberWorker {
            parts: fiber_parts::<L, M>(worker, local, &fiber_context, worker_slot),
            parkers: parkers.clone(),
        };
        base.spawn_worker(index, setup, || worker.run());
    }
}

/// Starts workers that take turns as the dispatcher; where there is a fiber context they interrupt themselves.
pub(super) fn start_inline<I, L, M>(group: DispatcherGroup<I, L, M>, base: &mut EngineBase)
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    let fiber_context = base.fiber_context.clone();
    let looks = fiber_context.is_none() || base.config.feedback;
    let watched = Arc::clone(&group.rx_waker);
    let clock = base.clock();
    base.spawn_door("hw-door".to_owned(), move |cores| {
        Door::new(cores, 0, &watched, looks, clock).watch();
    });
    let shared = Arc::new(Leadership::new(group.dispatcher, group.workers.len()));
    // The dispatcher has the control: a strong reference back would keep both for ever.
    let (rx_waker, sleepers) = (group.rx_waker, Arc::downgrade(&shared));
    group.control.set_wake_all(Box::new(move || {
        rx_waker.wake();
        if let Some(sleepers) = sleepers.upgrade() {
            sleepers.wake_all();
        }
    }));
    let cores = base.hosted.clone();
    let Some(fiber_context) = fiber_context else {
        for worker in group.workers {
            let (index, setup) = (group.first + worker.index, worker.executor.setup());
            let worker = InlineWorker {
                worker,
                shared: Arc::clone(&shared),
                cores: cores.clone(),
            };
            base.spawn_worker(index, setup, || worker.run());
        }
        return;
    };
    let workers = group.workers.into_iter().zip(group.locals);
    for ((worker, local), worker_slot) in workers.zip(group.worker_slots) {
        let (index, setup) = (group.first + worker.index, worker.executor.setup());
        let worker = InlineFiberWorker {
            parts: fiber_parts::<L, M>(worker, local, &fiber_context, worker_slot),
            shared: Arc::clone(&shared),
            look_ns: group.look_ns,
            cores: cores.clone(),
        };
        base.spawn_worker(index, setup, || worker.run());
    }
}

fn fiber_parts<L, M: Monitor>(
    worker: CentralWorker,
    local: WorkerLocal<L>,
    fiber_context: &FiberContext,
    worker_slot: Arc<CentralWorkerSlot>,
) -> FiberWorkerParts<L> {
    FiberWorkerParts {
        worker,
        local,
        fiber_context: fiber_context.clone(),
        worker_slot: M::PREEMPTS.then_some(worker_slot),
    }
}
