//! From parts to running threads.

use std::sync::Arc;

use headway_fiber::Stacks;
use headway_machine::Clock;
use headway_net::classify::Classifier;
use headway_net::datapath::{Datapath, Rx, Tx};
use headway_net::pool::{MAX_SLOTS, Pool};
use headway_policy::WorkerId;
use headway_policy::role::{Ingress, Local, Monitor};

use super::dedicated::{self, Beds};
use super::desk::Desk;
use super::dispatcher::Dispatcher;
use super::hands::Spare;
use super::watch::{Seat, Watch};
use super::{inline, sharing};
use crate::bell::Bell;
use crate::control::Control;
use crate::crew::{Crew, Seats, cores};
use crate::error::StartError;
use crate::executor::Executor;
use crate::fibers::{Shelf, Weft};
use crate::heed::Heed;
use crate::intake::{BATCH, Intake};
use crate::leader::Leadership;
use crate::overflow;
use crate::park::{Parker, Patience};
use crate::parts::{Config, Engine, Layout, Parts, kernel_drops, tallies};
use crate::service::Service;
use crate::sync::Padded;
use crate::tally::Tally;

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
    workers: Vec<(Desk, Executor<S, T>)>,
    /// What the dispatcher would work with.
    spare: Option<Executor<S, T>>,
    seats: Vec<Arc<Seat>>,
    bell: Arc<Bell<R>>,
    control: Arc<Control>,
    config: Config,
    crowded: bool,
}

impl<I, M, R: Rx + 'static, T, C, S> Bench<I, M, R, T, C, S> {
    /// Where the workers sleep. Whoever stops the server wakes them, and the dispatcher at its queue.
    fn beds(&self) -> Beds {
        let beds: Beds = (0..self.workers.len())
            .map(|_| Padded(Parker::new()))
            .collect();
        let (bell, sleepers) = (Arc::clone(&self.bell), Arc::clone(&beds));
        self.control.set_wake_all(Box::new(move || {
            // This announces the change to the workers as well.
            bell.ring();
            sleepers.iter().for_each(|bed| {
                bed.wake();
            });
        }));
        beds
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
    let threads = count + usize::from(layout == Layout::Dedicated);
    let mut crew = Crew::new(Seats::choose(&parts.config.pin, threads)?);
    let tallies = tallies(count + 1, parts.shape.queues());
    let config = &parts.config;
    let heed = Arc::new(Heed::new(&tallies, &config.class_names, config.feedback));
    let weft = interrupts.then(|| weft(&parts, &heed)).transpose()?;
    let (rxs, pool, bench) = prepare(
        (system.ingress, system.monitor),
        system.depth,
        parts,
        (&tallies, heed),
        threads,
    )?;
    let control = Arc::clone(&bench.control);
    let started = match (layout, weft) {
        (Layout::Dedicated, Some(weft)) => {
            start_sharing(bench, system.locals, &weft(pool), &mut crew)
        }
        (Layout::Dedicated, None) => start_dedicated(bench, &mut crew),
        (Layout::Inline | Layout::Auto, _) => start_inline(bench, &mut crew),
    };
    let engine = Engine {
        crew,
        control,
        tallies,
        kernel_drops: kernel_drops(&rxs),
        layout: Some(layout),
    };
    engine.settled(started)
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
fn weft<D, C, S>(
    parts: &Parts<D, C, S>,
    heed: &Arc<Heed>,
) -> Result<impl FnOnce(Arc<Pool>) -> Weft<S> + use<D, C, S>, StartError> {
    if !Clock::global().is_tsc() {
        return Err(StartError::NoTsc);
    }
    overflow::report(&parts.config.class_names);
    let bytes = parts.config.stack_bytes;
    let stacks =
        Stacks::new(bytes, READY_STACKS).map_err(|source| StartError::Stacks { bytes, source })?;
    let service = Arc::clone(&parts.service);
    let (resume, feedback) = (parts.shape.resume, parts.config.feedback);
    let heed = Arc::clone(heed);
    Ok(move |pool: Arc<Pool>| Weft {
        service,
        stacks: Arc::new(stacks),
        shelf: Arc::new(Shelf::new(pool.len())),
        pool,
        resume,
        feedback,
        heed,
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
    (tallies, heed): (&[Arc<Tally>], Arc<Heed>),
    threads: usize,
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
    let bell = Arc::new(Bell::new(Arc::clone(&rxs[0])));
    let intake = Intake::new(
        &*rxs[0],
        parts.classifier,
        parts.shape.unknown().0,
        (Arc::clone(&pool), free, spare),
        Arc::clone(&tallies[count]),
    );
    let seats: Vec<Arc<Seat>> = (0..count).map(|_| Arc::default()).collect();
    let tx = txs.pop().expect("a way out for each thread was asked for");
    let watch = Watch::new(monitor, &seats, (heed, Arc::clone(&tallies[count])));
    let (dispatcher, desks) = Dispatcher::new(
        (ingress, watch),
        intake,
        (Arc::clone(&bell), tx),
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
        workers: desks.into_iter().zip(executors).collect(),
        spare,
        seats,
        bell,
        control,
        config: parts.config,
        crowded: threads > cores(),
    };
    Ok((rxs, pool, bench))
}

/// A dispatcher, and workers that may be interrupted.
fn start_sharing<I, L, M, R, T, C, S>(
    bench: Bench<I, M, R, T, C, S>,
    locals: Vec<L>,
    weft: &Weft<S>,
    crew: &mut Crew,
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
    let patience = || Patience::new(bench.config.idle, bench.crowded, &stalls);
    let beds = bench.beds();
    let control = Arc::clone(&bench.control);
    let spare = bench.spare.map(|executor| Spare {
        weft: weft.clone(),
        me: WorkerId(bench.workers.len() as u16),
        executor,
    });
    start_dispatcher(bench.dispatcher, spare, (&control, &beds), patience(), crew)?;
    let workers = bench.workers.into_iter().zip(locals).zip(bench.seats);
    for (index, (((desk, executor), local), seat)) in workers.enumerate() {
        let setup = executor.setup();
        let worker = sharing::Worker {
            index,
            desk,
            local,
            executor,
            weft: weft.clone(),
            watched: M::PREEMPTS,
            mechanism: bench.config.mechanism,
            seat,
            bell: Arc::clone(&bench.bell),
            control: Arc::clone(&control),
            beds: Arc::clone(&beds),
            patience: patience(),
        };
        let name = format!("hw-worker-{index}");
        crew.spawn(name, &control, Some(setup), || worker.run())?;
    }
    Ok(())
}

fn start_dispatcher<I, M, R, T, C, S>(
    dispatcher: Dispatcher<I, M, R, T, C>,
    spare: Option<Spare<S, T>>,
    (control, beds): (&Arc<Control>, &Beds),
    patience: Patience,
    crew: &mut Crew,
) -> Result<(), StartError>
where
    I: Ingress + Send + 'static,
    M: Monitor + Send + 'static,
    R: Rx + 'static,
    T: Tx + 'static,
    C: Classifier + 'static,
    S: Service,
{
    let (watched, woken) = (Arc::clone(control), Arc::clone(beds));
    let setup = spare.as_ref().map(|spare| spare.executor.setup());
    crew.spawn("hw-dispatch".to_owned(), control, setup, move || {
        dedicated::dispatch(dispatcher, spare, &watched, &woken, patience);
    })
}

fn start_dedicated<I, M, R, T, C, S>(
    bench: Bench<I, M, R, T, C, S>,
    crew: &mut Crew,
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
    let patience = || Patience::new(bench.config.idle, bench.crowded, &stalls);
    let beds = bench.beds();
    let control = Arc::clone(&bench.control);
    let nobody = None::<Spare<S, T>>;
    start_dispatcher(
        bench.dispatcher,
        nobody,
        (&control, &beds),
        patience(),
        crew,
    )?;
    for (index, (desk, executor)) in bench.workers.into_iter().enumerate() {
        let setup = executor.setup();
        let worker = dedicated::Worker {
            index,
            desk,
            executor,
            bell: Arc::clone(&bench.bell),
            control: Arc::clone(&control),
            beds: Arc::clone(&beds),
            patience: patience(),
        };
        let name = format!("hw-worker-{index}");
        crew.spawn(name, &control, Some(setup), || worker.run())?;
    }
    Ok(())
}

fn start_inline<I, M, R, T, C, S>(
    bench: Bench<I, M, R, T, C, S>,
    crew: &mut Crew,
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
    let (bell, sleepers) = (Arc::clone(&bench.bell), Arc::downgrade(&shared));
    bench.control.set_wake_all(Box::new(move || {
        bell.ring();
        if let Some(sleepers) = sleepers.upgrade() {
            sleepers.wake_all();
        }
    }));
    for (index, (desk, executor)) in bench.workers.into_iter().enumerate() {
        let setup = executor.setup();
        let worker = inline::Worker {
            index,
            desk,
            executor,
            shared: Arc::clone(&shared),
            bell: Arc::clone(&bench.bell),
            control: Arc::clone(&bench.control),
            patience: Patience::new(bench.config.idle, bench.crowded, bench.control.stalls()),
        };
        let name = format!("hw-worker-{index}");
        crew.spawn(name, &bench.control, Some(setup), || worker.run())?;
    }
    Ok(())
}
