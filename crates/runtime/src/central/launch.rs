//! From parts to running threads.

use std::sync::Arc;

use headway_fiber::Mechanism;
use headway_net::classify::Classifier;
use headway_net::datapath::{Datapath, Rx};
use headway_net::pool::{MAX_SLOTS, Pool};
use headway_policy::WorkerId;
use headway_policy::role::{Ingress, Local, Monitor};

use super::dedicated::{DedicatedFiberWorker, DedicatedWorker, dispatch};
use super::dispatcher::{Dispatcher, DispatcherParts};
use super::dispatcher_worker::DispatcherWorkerParts;
use super::fiber_worker::FiberWorkerParts;
use super::inline::InlineWorker;
use super::inline_fibers::InlineFiberWorker;
use super::watch::{Watch, WorkerSlot};
use super::worker::Worker;
use super::worker_link::worker_link;
use crate::control::Control;
use crate::error::StartError;
use crate::executor::Executor;
use crate::fibers::FiberContext;
use crate::intake::{BATCH, Buffers, Intake};
use crate::leader::Leadership;
use crate::overruns::Overruns;
use crate::park::{Backoff, Parkers};
use crate::parts::{Config, Engine, Layout, Parts, executors, kernel_drops, tallies};
use crate::rx_waker::RxWaker;
use crate::service::Service;
use crate::tally::Tally;
use crate::threads::{Pinning, Threads, cores};

/// How often a worker that interrupts itself polls for arrivals, unless [`Builder::look_every`](crate::Builder::look_every) says otherwise, ns.
pub const LOOK_NS: u64 = 5_000;

/// The same where a poll is a system call: one in vain takes 0.84 µs (EPYC 9004, `recvmmsg` of an empty UDP socket), 3 % of this.
const LOOK_BY_SYSTEM_CALL_NS: u64 = 25_000;

/// A system whose ingress is a dispatcher.
pub(crate) struct Dispatched<I, L, M> {
    pub(crate) ingress: I,
    pub(crate) locals: Vec<L>,
    pub(crate) monitor: M,
    /// Requests a worker may hold.
    pub(crate) depth: usize,
}

/// Starts a server whose ingress is a dispatcher.
pub(crate) fn launch<I, L, M, D, C, S>(
    system: Dispatched<I, L, M>,
    parts: Parts<D, C, S>,
) -> Result<Engine, StartError>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
    D: Datapath,
    D::Rx: 'static,
    D::Tx: 'static,
    C: Classifier + 'static,
    S: Service,
{
    let interrupts = M::PREEMPTS || L::SLICES;
    let count = parts.shape.workers;
    let layout = choose_layout(&parts.config, count, interrupts)?;
    let thread_count = count + usize::from(layout == Layout::Dedicated);
    let mut threads = Threads::new(Pinning::choose(&parts.config.pin, thread_count)?);
    let tallies = tallies(count + 1, parts.shape.queues());
    let config = &parts.config;
    let overruns = Overruns::new(&tallies, &config.class_names, config.feedback);
    let overruns = Arc::new(overruns);
    let buffers = buffers(config.slots)?;
    let fiber_context = interrupts
        .then(|| FiberContext::new(&parts, &buffers.pool, &overruns))
        .transpose()?;
    let prepared = prepare(system, parts, buffers, &tallies, overruns, layout)?;
    let control = Arc::clone(&prepared.control);
    let kernel_drops = kernel_drops(&prepared.rxs);
    let started = if layout == Layout::Dedicated {
        start_dedicated(prepared, fiber_context, &mut threads)
    } else {
        start_inline(prepared, fiber_context, &mut threads)
    };
    let engine = Engine {
        threads,
        control,
        tallies,
        kernel_drops,
        layout: Some(layout),
        monitor_layout: None,
    };
    engine.ready(started)
}

/// A dispatcher that shares a core with a worker costs more than it brings.
fn choose_layout(config: &Config, workers: usize, interrupts: bool) -> Result<Layout, StartError> {
    let by_signal = interrupts && config.mechanism == Mechanism::Signal;
    match config.layout {
        Layout::Inline if by_signal => Err(StartError::InlineSignals),
        Layout::Auto if by_signal || cores() > workers => Ok(Layout::Dedicated),
        Layout::Auto => Ok(Layout::Inline),
        chosen => Ok(chosen),
    }
}

/// Spare buffers lie at the end of the pool, so that the numbers of the others are below the policy's bound.
fn buffers(slots: usize) -> Result<Buffers, StartError> {
    let (pool, mut spare) = Pool::new(slots.max(MAX_SLOTS.min(slots + BATCH)))?;
    let free = spare.split_off(slots);
    Ok(Buffers {
        pool: Arc::new(pool),
        free,
        spare,
    })
}

/// What threads of every layout are made of.
struct Prepared<I, L, M, D: Datapath, C, S> {
    rxs: Vec<Arc<D::Rx>>,
    rx_waker: Arc<RxWaker<D::Rx>>,
    control: Arc<Control>,
    dispatcher: Dispatcher<I, M, D::Rx, D::Tx, C>,
    dispatcher_backoff: Backoff,
    /// Of a dispatcher that runs requests.
    dispatcher_executor: Option<Executor<S, D::Tx>>,
    workers: Vec<Worker<S, D::Tx, D::Rx>>,
    worker_slots: Vec<Arc<WorkerSlot>>,
    locals: Vec<L>,
    /// How often a worker that interrupts itself polls for arrivals, unless [`Builder::look_every`](crate::Builder::look_every) says otherwise, ns.
    look_ns: u64,
}

fn prepare<I, L, M, D, C, S>(
    system: Dispatched<I, L, M>,
    parts: Parts<D, C, S>,
    buffers: Buffers,
    tallies: &[Arc<Tally>],
    overruns: Arc<Overruns>,
    layout: Layout,
) -> Result<Prepared<I, L, M, D, C, S>, StartError>
where
    I: Ingress,
    M: Monitor,
    D: Datapath,
    C: Classifier,
    S: Service,
{
    let Parts { shape, config, .. } = parts;
    let count = shape.workers;
    let pool = Arc::clone(&buffers.pool);
    let dedicated = layout == Layout::Dedicated;
    // Workers that take turns as the dispatcher run requests anyway.
    let dispatcher_works = I::WORKS && dedicated;
    let senders = count + 1 + usize::from(dispatcher_works);
    let (rxs, mut txs) = Parts::<D, C, S>::split(parts.datapath, 1, senders)?;
    let tx = txs.pop().expect("a way out for each thread was asked for");
    let control = Arc::new(Control::new(count, system.ingress.plan(), config.stalls));
    let rx_waker = Arc::new(RxWaker::new(Arc::clone(&rxs[0])));
    let dispatcher_tally = &tallies[count];
    let intake = Intake::new(
        &*rxs[0],
        parts.classifier,
        shape.unknown().0,
        buffers,
        Arc::clone(dispatcher_tally),
    );
    let worker_slots: Vec<Arc<WorkerSlot>> = (0..count).map(|_| Arc::default()).collect();
    let watch = Watch::new(
        system.monitor,
        dedicated,
        &worker_slots,
        overruns,
        Arc::clone(dispatcher_tally),
    );
    let (links, worker_ends): (Vec<_>, Vec<_>) = (0..count)
        .map(|_| worker_link(system.depth.min(pool.len())))
        .unzip();
    let dispatcher = Dispatcher::new(DispatcherParts {
        ingress: system.ingress,
        watch,
        intake,
        rx_waker: Arc::clone(&rx_waker),
        tx,
        control: Arc::clone(&control),
        links,
    });
    let journals = control.open_journal(txs.len(), config.journal);
    let mut executors = executors(&parts.service, txs, journals, &pool, tallies);
    let dispatcher_executor = dispatcher_works.then(|| executors.pop()).flatten();
    let oversubscribed = count + usize::from(dedicated) > cores();
    let usual_look_ns = if D::Rx::POLL_IS_SYSTEM_CALL {
        LOOK_BY_SYSTEM_CALL_NS
    } else {
        LOOK_NS
    };
    let backoff = || Backoff::new(config.idle, oversubscribed, control.stalls());
    let workers = worker_ends
        .into_iter()
        .zip(executors)
        .enumerate()
        .map(|(index, (link, executor))| Worker {
            index,
            link,
            executor,
            rx_waker: Arc::clone(&rx_waker),
            control: Arc::clone(&control),
            backoff: backoff(),
        })
        .collect();
    Ok(Prepared {
        dispatcher_backoff: backoff(),
        rxs,
        rx_waker,
        control,
        dispatcher,
        dispatcher_executor,
        workers,
        worker_slots,
        locals: system.locals,
        look_ns: config.look_ns.unwrap_or(usual_look_ns),
    })
}

/// Starts a thread for the dispatcher, and workers; with a `fiber_context` they may be interrupted.
fn start_dedicated<I, L, M, D, C, S>(
    prepared: Prepared<I, L, M, D, C, S>,
    fiber_context: Option<FiberContext<S>>,
    threads: &mut Threads,
) -> Result<(), StartError>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
    D: Datapath,
    D::Rx: 'static,
    D::Tx: 'static,
    C: Classifier + 'static,
    S: Service,
{
    let control = prepared.control;
    let parkers = Parkers::new(prepared.workers.len());
    let (rx_waker, sleepers) = (prepared.rx_waker, parkers.clone());
    control.set_wake_all(Box::new(move || {
        // This announces the change to the workers as well.
        rx_waker.wake();
        sleepers.wake_all();
    }));
    let dispatcher_worker =
        fiber_context
            .clone()
            .zip(prepared.dispatcher_executor)
            .map(|(fiber_context, executor)| DispatcherWorkerParts {
                fiber_context,
                me: WorkerId(prepared.workers.len() as u16),
                executor,
            });
    let setup = dispatcher_worker
        .as_ref()
        .map(|parts| parts.executor.setup());
    let (dispatcher, backoff) = (prepared.dispatcher, prepared.dispatcher_backoff);
    let (watched, woken) = (Arc::clone(&control), parkers.clone());
    threads.spawn("hw-dispatch".to_owned(), &control, setup, move || {
        dispatch(dispatcher, dispatcher_worker, &watched, &woken, backoff);
    })?;
    let Some(fiber_context) = fiber_context else {
        for worker in prepared.workers {
            let (index, setup) = (worker.index, worker.executor.setup());
            let parkers = parkers.clone();
            let worker = DedicatedWorker { worker, parkers };
            threads.spawn_worker(index, &control, setup, || worker.run())?;
        }
        return Ok(());
    };
    let workers = prepared.workers.into_iter().zip(prepared.locals);
    for ((worker, local), worker_slot) in workers.zip(prepared.worker_slots) {
        let (index, setup) = (worker.index, worker.executor.setup());
        let worker = DedicatedFiberWorker {
            parts: FiberWorkerParts {
                worker,
                local,
                fiber_context: fiber_context.clone(),
                worker_slot: M::PREEMPTS.then_some(worker_slot),
            },
            parkers: parkers.clone(),
        };
        threads.spawn_worker(index, &control, setup, || worker.run())?;
    }
    Ok(())
}

/// Starts workers that take turns as the dispatcher; with a `fiber_context` they interrupt themselves.
fn start_inline<I, L, M, D, C, S>(
    prepared: Prepared<I, L, M, D, C, S>,
    fiber_context: Option<FiberContext<S>>,
    threads: &mut Threads,
) -> Result<(), StartError>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
    D: Datapath,
    D::Rx: 'static,
    D::Tx: 'static,
    C: Classifier + 'static,
    S: Service,
{
    let control = prepared.control;
    let shared = Arc::new(Leadership::new(prepared.dispatcher, prepared.workers.len()));
    // The dispatcher has the control: a strong reference back would keep both for ever.
    let (rx_waker, sleepers) = (prepared.rx_waker, Arc::downgrade(&shared));
    control.set_wake_all(Box::new(move || {
        rx_waker.wake();
        if let Some(sleepers) = sleepers.upgrade() {
            sleepers.wake_all();
        }
    }));
    let Some(fiber_context) = fiber_context else {
        for worker in prepared.workers {
            let (index, setup) = (worker.index, worker.executor.setup());
            let shared = Arc::clone(&shared);
            let worker = InlineWorker { worker, shared };
            threads.spawn_worker(index, &control, setup, || worker.run())?;
        }
        return Ok(());
    };
    let workers = prepared.workers.into_iter().zip(prepared.locals);
    for ((worker, local), worker_slot) in workers.zip(prepared.worker_slots) {
        let (index, setup) = (worker.index, worker.executor.setup());
        let worker = InlineFiberWorker {
            parts: FiberWorkerParts {
                worker,
                local,
                fiber_context: fiber_context.clone(),
                worker_slot: M::PREEMPTS.then_some(worker_slot),
            },
            shared: Arc::clone(&shared),
            look_ns: prepared.look_ns,
        };
        threads.spawn_worker(index, &control, setup, || worker.run())?;
    }
    Ok(())
}
