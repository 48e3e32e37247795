//! From parts to running threads.

use std::sync::Arc;

use headway_fiber::Stacks;
use headway_machine::Clock;
use headway_net::classify::Classifier;
use headway_net::datapath::{Datapath, Rx, Tx};
use headway_net::pool::{MAX_SLOTS, Pool};
use headway_policy::WorkerId;
use headway_policy::role::{Ingress, Local, Monitor};

use super::dedicated;
use super::dispatcher::Dispatcher;
use super::dispatcher_worker::DispatcherWorkerParts;
use super::watch::{Watch, WorkerSlot};
use super::worker_link::WorkerEnd;
use super::{inline, sharing};
use crate::control::Control;
use crate::error::StartError;
use crate::executor::Executor;
use crate::fibers::{FiberContext, SuspendedRequests};
use crate::intake::{BATCH, Intake};
use crate::leader::Leadership;
use crate::overflow;
use crate::overruns::Overruns;
use crate::park::{Backoff, Parkers};
use crate::parts::{Config, Engine, Layout, Parts, kernel_drops, tallies};
use crate::rx_waker::RxWaker;
use crate::service::Service;
use crate::tally::Tally;
use crate::threads::{Pinning, Threads, cores};

/// A system whose ingress is a dispatcher.
pub(crate) struct Dispatched<I, L, M> {
    pub(crate) ingress: I,
    pub(crate) locals: Vec<L>,
    pub(crate) monitor: M,
    /// Requests a worker may hold.
    pub(crate) depth: usize,
}

/// Everything but the layout's own: what one thread needs, by worker.
struct Bench<I, M, R: Rx, T, C, S> {
    dispatcher: Dispatcher<I, M, R, T, C>,
    workers: Vec<(WorkerEnd, Executor<S, T>)>,
    /// What the dispatcher would work with.
    spare: Option<Executor<S, T>>,
    worker_slots: Vec<Arc<WorkerSlot>>,
    rx_waker: Arc<RxWaker<R>>,
    control: Arc<Control>,
    config: Config,
    oversubscribed: bool,
}

impl<I, M, R: Rx + 'static, T, C, S> Bench<I, M, R, T, C, S> {
    /// Where the workers sleep. Whoever stops the server wakes them, and the dispatcher at its queue.
    fn parkers(&self) -> Parkers {
        let parkers = Parkers::new(self.workers.len());
        let (rx_waker, sleepers) = (Arc::clone(&self.rx_waker), parkers.clone());
        self.control.set_wake_all(Box::new(move || {
            // This announces the change to the workers as well.
            rx_waker.wake();
            sleepers.wake_all();
        }));
        parkers
    }
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
    let layout = settle(parts.config.layout, count, interrupts)?;
    let thread_count = count + usize::from(layout == Layout::Dedicated);
    let mut threads = Threads::new(Pinning::choose(&parts.config.pin, thread_count)?);
    let tallies = tallies(count + 1, parts.shape.queues());
    let config = &parts.config;
    let overruns = Arc::new(Overruns::new(
        &tallies,
        &config.class_names,
        config.feedback,
    ));
    let fiber_context = interrupts
        .then(|| fiber_context(&parts, &overruns))
        .transpose()?;
    let (rxs, pool, bench) = prepare(
        (system.ingress, system.monitor),
        system.depth,
        parts,
        (&tallies, overruns),
        thread_count,
    )?;
    let control = Arc::clone(&bench.control);
    let started = match (layout, fiber_context) {
        (Layout::Dedicated, Some(fiber_context)) => {
            start_sharing(bench, system.locals, &fiber_context(pool), &mut threads)
        }
        (Layout::Dedicated, None) => start_dedicated(bench, &mut threads),
        (Layout::Inline | Layout::Auto, _) => start_inline(bench, &mut threads),
    };
    let engine = Engine {
        threads,
        control,
        tallies,
        kernel_drops: kernel_drops(&rxs),
        layout: Some(layout),
    };
    engine.ready(started)
}

/// A dispatcher that shares a core with a worker costs more than it brings; but somebody must have time to interrupt those who run.
fn settle(layout: Layout, workers: usize, interrupts: bool) -> Result<Layout, StartError> {
    match layout {
        Layout::Inline if interrupts => Err(StartError::Inline),
        Layout::Auto if interrupts || cores() > workers => Ok(Layout::Dedicated),
        Layout::Auto => Ok(Layout::Inline),
        chosen => Ok(chosen),
    }
}

/// Stacks that are there from the start, a page each: as many requests may be interrupted before one has to wait 10 µs for a mapping.
const READY_STACKS: usize = 256;

/// What fibers need; the pool is known later.
fn fiber_context<D, C, S>(
    parts: &Parts<D, C, S>,
    overruns: &Arc<Overruns>,
) -> Result<impl FnOnce(Arc<Pool>) -> FiberContext<S> + use<D, C, S>, StartError> {
    if !Clock::global().is_tsc() {
        return Err(StartError::NoTsc);
    }
    overflow::report(&parts.config.class_names);
    let bytes = parts.config.stack_bytes;
    let stacks =
        Stacks::new(bytes, READY_STACKS).map_err(|source| StartError::Stacks { bytes, source })?;
    let service = Arc::clone(&parts.service);
    let (resume, feedback) = (parts.shape.resume, parts.config.feedback);
    let overruns = Arc::clone(overruns);
    Ok(move |pool: Arc<Pool>| FiberContext {
        service,
        stacks: Arc::new(stacks),
        suspended: Arc::new(SuspendedRequests::new(pool.len())),
        pool,
        resume,
        feedback,
        overruns,
    })
}

type Prepared<I, M, D, C, S> = (
    Vec<Arc<<D as Datapath>::Rx>>,
    Arc<Pool>,
    Bench<I, M, <D as Datapath>::Rx, <D as Datapath>::Tx, C, S>,
);

fn prepare<I, M, D, C, S>(
    (ingress, monitor): (I, M),
    depth: usize,
    parts: Parts<D, C, S>,
    (tallies, overruns): (&[Arc<Tally>], Arc<Overruns>),
    thread_count: usize,
) -> Result<Prepared<I, M, D, C, S>, StartError>
where
    I: Ingress,
    M: Monitor,
    D: Datapath,
    C: Classifier,
    S: Service,
{
    let count = parts.shape.workers;
    let slots = parts.config.slots;
    // At the end of the pool, so that the numbers of the others are below the policy's bound.
    let (pool, mut spare) = Pool::new(slots.max(MAX_SLOTS.min(slots + BATCH)))?;
    let (pool, free) = (Arc::new(pool), spare.split_off(slots));
    let senders = count + 1 + usize::from(I::WORKS);
    let (rxs, mut txs) = Parts::<D, C, S>::split(parts.datapath, 1, senders)?;
    let control = Arc::new(Control::new(count, ingress.plan(), parts.config.stalls));
    let rx_waker = Arc::new(RxWaker::new(Arc::clone(&rxs[0])));
    let intake = Intake::new(
        &*rxs[0],
        parts.classifier,
        parts.shape.unknown().0,
        (Arc::clone(&pool), free, spare),
        Arc::clone(&tallies[count]),
    );
    let worker_slots: Vec<Arc<WorkerSlot>> = (0..count).map(|_| Arc::default()).collect();
    let tx = txs.pop().expect("a way out for each thread was asked for");
    let watch = Watch::new(
        monitor,
        &worker_slots,
        (overruns, Arc::clone(&tallies[count])),
    );
    let (dispatcher, worker_ends) = Dispatcher::new(
        (ingress, watch),
        intake,
        (Arc::clone(&rx_waker), tx),
        Arc::clone(&control),
        (count, depth),
    );
    let journals = control.open_journal(txs.len(), parts.config.journal);
    let executor = |(worker, (tx, journal))| {
        let service = Arc::clone(&parts.service);
        let tally = Arc::clone(&tallies[worker]);
        Executor::new(
            service,
            tx,
            WorkerId(worker as u16),
            Arc::clone(&pool),
            tally,
            journal,
        )
    };
    let mut executors: Vec<_> = txs
        .into_iter()
        .zip(journals)
        .enumerate()
        .map(executor)
        .collect();
    let spare = I::WORKS.then(|| executors.pop()).flatten();
    let bench = Bench {
        dispatcher,
        workers: worker_ends.into_iter().zip(executors).collect(),
        spare,
        worker_slots,
        rx_waker,
        control,
        config: parts.config,
        oversubscribed: thread_count > cores(),
    };
    Ok((rxs, pool, bench))
}

/// A dispatcher, and workers that may be interrupted.
fn start_sharing<I, L, M, R, T, C, S>(
    bench: Bench<I, M, R, T, C, S>,
    locals: Vec<L>,
    fiber_context: &FiberContext<S>,
    threads: &mut Threads,
) -> Result<(), StartError>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
    R: Rx + 'static,
    T: Tx + 'static,
    C: Classifier + 'static,
    S: Service,
{
    let stalls = Arc::clone(bench.control.stalls());
    let backoff = || Backoff::new(bench.config.idle, bench.oversubscribed, &stalls);
    let parkers = bench.parkers();
    let control = Arc::clone(&bench.control);
    let spare = bench.spare.map(|executor| DispatcherWorkerParts {
        fiber_context: fiber_context.clone(),
        me: WorkerId(bench.workers.len() as u16),
        executor,
    });
    start_dispatcher(
        bench.dispatcher,
        spare,
        (&control, &parkers),
        backoff(),
        threads,
    )?;
    let workers = bench
        .workers
        .into_iter()
        .zip(locals)
        .zip(bench.worker_slots);
    for (index, (((link, executor), local), worker_slot)) in workers.enumerate() {
        let setup = executor.setup();
        let worker = sharing::Worker {
            index,
            link,
            local,
            executor,
            fiber_context: fiber_context.clone(),
            watched: M::PREEMPTS,
            mechanism: bench.config.mechanism,
            worker_slot,
            rx_waker: Arc::clone(&bench.rx_waker),
            control: Arc::clone(&control),
            parkers: parkers.clone(),
            backoff: backoff(),
        };
        let name = format!("hw-worker-{index}");
        threads.spawn(name, &control, Some(setup), || worker.run())?;
    }
    Ok(())
}

fn start_dispatcher<I, M, R, T, C, S>(
    dispatcher: Dispatcher<I, M, R, T, C>,
    spare: Option<DispatcherWorkerParts<S, T>>,
    (control, parkers): (&Arc<Control>, &Parkers),
    backoff: Backoff,
    threads: &mut Threads,
) -> Result<(), StartError>
where
    I: Ingress + Send + 'static,
    M: Monitor + Send + 'static,
    R: Rx + 'static,
    T: Tx + 'static,
    C: Classifier + 'static,
    S: Service,
{
    let (watched, woken) = (Arc::clone(control), parkers.clone());
    let setup = spare.as_ref().map(|spare| spare.executor.setup());
    threads.spawn("hw-dispatch".to_owned(), control, setup, move || {
        dedicated::dispatch(dispatcher, spare, &watched, &woken, backoff);
    })
}

fn start_dedicated<I, M, R, T, C, S>(
    bench: Bench<I, M, R, T, C, S>,
    threads: &mut Threads,
) -> Result<(), StartError>
where
    I: Ingress + Send + 'static,
    M: Monitor + Send + 'static,
    R: Rx + 'static,
    T: Tx + 'static,
    C: Classifier + 'static,
    S: Service,
{
    let stalls = Arc::clone(bench.control.stalls());
    let backoff = || Backoff::new(bench.config.idle, bench.oversubscribed, &stalls);
    let parkers = bench.parkers();
    let control = Arc::clone(&bench.control);
    let nobody = None::<DispatcherWorkerParts<S, T>>;
    start_dispatcher(
        bench.dispatcher,
        nobody,
        (&control, &parkers),
        backoff(),
        threads,
    )?;
    for (index, (link, executor)) in bench.workers.into_iter().enumerate() {
        let setup = executor.setup();
        let worker = dedicated::Worker {
            index,
            link,
            executor,
            rx_waker: Arc::clone(&bench.rx_waker),
            control: Arc::clone(&control),
            parkers: parkers.clone(),
            backoff: backoff(),
        };
        let name = format!("hw-worker-{index}");
        threads.spawn(name, &control, Some(setup), || worker.run())?;
    }
    Ok(())
}

fn start_inline<I, M, R, T, C, S>(
    bench: Bench<I, M, R, T, C, S>,
    threads: &mut Threads,
) -> Result<(), StartError>
where
    I: Ingress + Send + 'static,
    M: Monitor + Send + 'static,
    R: Rx + 'static,
    T: Tx + 'static,
    C: Classifier + 'static,
    S: Service,
{
    let shared = Arc::new(Leadership::new(bench.dispatcher, bench.workers.len()));
    // The dispatcher has the control: a strong reference back would keep both for ever.
    let (rx_waker, sleepers) = (Arc::clone(&bench.rx_waker), Arc::downgrade(&shared));
    bench.control.set_wake_all(Box::new(move || {
        rx_waker.wake();
        if let Some(sleepers) = sleepers.upgrade() {
            sleepers.wake_all();
        }
    }));
    for (index, (link, executor)) in bench.workers.into_iter().enumerate() {
        let setup = executor.setup();
        let worker = inline::Worker {
            index,
            link,
            executor,
            shared: Arc::clone(&shared),
            rx_waker: Arc::clone(&bench.rx_waker),
            control: Arc::clone(&bench.control),
            backoff: Backoff::new(
                bench.config.idle,
                bench.oversubscribed,
                bench.control.stalls(),
            ),
        };
        let name = format!("hw-worker-{index}");
        threads.spawn(name, &bench.control, Some(setup), || worker.run())?;
    }
    Ok(())
}
