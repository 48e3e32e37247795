//! From parts to running threads.

use std::sync::Arc;

use headway_net::classify::Classifier;
use headway_net::datapath::{Datapath, Rx, Tx};
use headway_net::pool::Pool;
use headway_policy::WorkerId;
use headway_policy::role::Ingress;

use super::dedicated::{self, Beds};
use super::desk::Desk;
use super::dispatcher::Dispatcher;
use super::inline;
use crate::bell::Bell;
use crate::control::Control;
use crate::crew::{Crew, Seats, cores};
use crate::error::StartError;
use crate::executor::Executor;
use crate::intake::Intake;
use crate::leader::Leadership;
use crate::park::{Parker, Patience};
use crate::parts::{Config, Engine, Layout, Parts, kernel_drops, tallies};
use crate::service::Service;
use crate::sync::Padded;
use crate::tally::Tally;

/// Everything but the layout's own: what one thread needs, by worker.
struct Bench<I, R: Rx, T, C, S> {
    dispatcher: Dispatcher<I, R, T, C>,
    workers: Vec<(Desk, Executor<S, T>)>,
    bell: Arc<Bell<R>>,
    control: Arc<Control>,
    config: Config,
    crowded: bool,
}

/// Starts a server whose ingress is a dispatcher; workers hold at most `depth` requests each.
pub(crate) fn launch<I, D, C, S>(
    ingress: I,
    depth: usize,
    parts: Parts<D, C, S>,
) -> Result<Engine, StartError>
where
    I: Ingress + Send + 'static,
    D: Datapath,
    D::Rx: 'static,
    D::Tx: 'static,
    C: Classifier + 'static,
    S: Service,
{
    let count = parts.shape.workers;
    let layout = settle(parts.config.layout, count);
    let threads = count + usize::from(layout == Layout::Dedicated);
    let mut crew = Crew::new(Seats::choose(&parts.config.pin, threads)?);
    let tallies = tallies(count + 1, parts.shape.queues());
    let (rxs, bench) = prepare(ingress, depth, parts, &tallies, threads)?;
    let engine = |crew, bell: Arc<Bell<D::Rx>>, control| Engine {
        crew,
        control,
        tallies,
        wake: Arc::new(move || bell.ring()),
        kernel_drops: kernel_drops(&rxs),
        layout: Some(layout),
    };
    let (bell, control) = (Arc::clone(&bench.bell), Arc::clone(&bench.control));
    let started = match layout {
        Layout::Dedicated => start_dedicated(bench, &mut crew),
        Layout::Inline | Layout::Auto => start_inline(bench, &mut crew),
    };
    let engine = engine(crew, bell, control);
    engine.settled(started)
}

/// A dispatcher that shares a core with a worker costs more than it brings.
fn settle(layout: Layout, workers: usize) -> Layout {
    match layout {
        Layout::Auto if cores() > workers => Layout::Dedicated,
        Layout::Auto => Layout::Inline,
        chosen => chosen,
    }
}

type Prepared<I, D, C, S> = (
    Vec<Arc<<D as Datapath>::Rx>>,
    Bench<I, <D as Datapath>::Rx, <D as Datapath>::Tx, C, S>,
);

fn prepare<I, D, C, S>(
    ingress: I,
    depth: usize,
    parts: Parts<D, C, S>,
    tallies: &[Arc<Tally>],
    threads: usize,
) -> Result<Prepared<I, D, C, S>, StartError>
where
    I: Ingress,
    D: Datapath,
    C: Classifier,
    S: Service,
{
    let count = parts.shape.workers;
    let (pool, free) = Pool::new(parts.config.slots)?;
    let pool = Arc::new(pool);
    let (rxs, mut txs) = Parts::<D, C, S>::split(parts.datapath, 1, count + 1)?;
    let control = Arc::new(Control::new(count, ingress.plan(), parts.config.stalls));
    let bell = Arc::new(Bell::new(Arc::clone(&rxs[0])));
    let intake = Intake::new(
        &*rxs[0],
        parts.classifier,
        parts.shape.unknown().0,
        (Arc::clone(&pool), free),
        Arc::clone(&tallies[count]),
    );
    let tx = txs.pop().expect("a way out for each thread was asked for");
    let (dispatcher, desks) = Dispatcher::new(
        ingress,
        intake,
        (Arc::clone(&bell), tx),
        Arc::clone(&control),
        (count, depth),
    );
    let executor = |(worker, tx)| {
        let service = Arc::clone(&parts.service);
        let tally = Arc::clone(&tallies[worker]);
        Executor::new(
            service,
            tx,
            WorkerId(worker as u16),
            Arc::clone(&pool),
            tally,
        )
    };
    let executors = txs.into_iter().enumerate().map(executor);
    let bench = Bench {
        dispatcher,
        workers: desks.into_iter().zip(executors).collect(),
        bell,
        control,
        config: parts.config,
        crowded: threads > cores(),
    };
    Ok((rxs, bench))
}

fn start_dedicated<I, R, T, C, S>(
    bench: Bench<I, R, T, C, S>,
    crew: &mut Crew,
) -> Result<(), StartError>
where
    I: Ingress + Send + 'static,
    R: Rx + 'static,
    T: Tx + 'static,
    C: Classifier + 'static,
    S: Service,
{
    let Bench {
        dispatcher,
        workers,
        bell,
        control,
        config,
        crowded,
    } = bench;
    let patience = || Patience::new(config.idle, crowded, control.stalls());
    let beds: Beds = (0..workers.len()).map(|_| Padded(Parker::new())).collect();
    let (watched, woken, idle) = (Arc::clone(&control), Arc::clone(&beds), patience());
    crew.spawn("hw-dispatch".to_owned(), &control, move || {
        dedicated::dispatch(dispatcher, &watched, &woken, idle);
    })?;
    for (index, (desk, executor)) in workers.into_iter().enumerate() {
        let worker = dedicated::Worker {
            index,
            desk,
            executor,
            bell: Arc::clone(&bell),
            control: Arc::clone(&control),
            beds: Arc::clone(&beds),
            patience: patience(),
        };
        crew.spawn(format!("hw-worker-{index}"), &control, || worker.run())?;
    }
    Ok(())
}

fn start_inline<I, R, T, C, S>(
    bench: Bench<I, R, T, C, S>,
    crew: &mut Crew,
) -> Result<(), StartError>
where
    I: Ingress + Send + 'static,
    R: Rx + 'static,
    T: Tx + 'static,
    C: Classifier + 'static,
    S: Service,
{
    let shared = Arc::new(Leadership::new(bench.dispatcher, bench.workers.len()));
    for (index, (desk, executor)) in bench.workers.into_iter().enumerate() {
        let worker = inline::Worker {
            index,
            desk,
            executor,
            shared: Arc::clone(&shared),
            bell: Arc::clone(&bench.bell),
            control: Arc::clone(&bench.control),
            patience: Patience::new(bench.config.idle, bench.crowded, bench.control.stalls()),
        };
        crew.spawn(format!("hw-worker-{index}"), &bench.control, || {
            worker.run();
        })?;
    }
    Ok(())
}
