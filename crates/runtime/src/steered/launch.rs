//! From parts to running threads.

use std::sync::Arc;

use headway_machine::Clock;
use headway_net::classify::Classifier;
use headway_net::datapath::Datapath;
use headway_net::pool::Pool;
use headway_policy::WorkerId;
use headway_policy::role::Local;

use super::peers::Peers;
use super::view::View;
use super::worker::Worker;
use crate::control::Control;
use crate::crew::{Crew, Seats, cores};
use crate::error::StartError;
use crate::executor::Executor;
use crate::intake::Intake;
use crate::park::Patience;
use crate::parts::{Engine, Parts, kernel_drops, tallies};
use crate::service::Service;

/// Starts a server whose workers each serve a receive queue.
pub(crate) fn launch<L, D, C, S>(
    (locals, shared_queues): (Vec<L>, usize),
    parts: Parts<D, C, S>,
) -> Result<Engine, StartError>
where
    L: Local + Send + 'static,
    D: Datapath,
    D::Rx: 'static,
    D::Tx: 'static,
    C: Classifier + 'static,
    S: Service,
{
    let count = parts.shape.workers;
    let config = &parts.config;
    let mut crew = Crew::new(Seats::choose(&config.pin, count)?);
    let tallies = tallies(count, parts.shape.queues());
    let (pool, mut free) = Pool::new(config.slots)?;
    let pool = Arc::new(pool);
    let (rxs, txs) = Parts::<D, C, S>::split(parts.datapath, count, count)?;
    let peers = Arc::new(Peers::new(&rxs, shared_queues, config.slots));
    let control = Arc::new(Control::new(count, None, config.stalls));
    let sleepers = Arc::clone(&peers);
    control.set_wake_all(Box::new(move || sleepers.wake_all()));
    let journals = control.open_journal(count, config.journal);
    let mut started = Ok(());
    for (index, ((local, tx), journal)) in locals.into_iter().zip(txs).zip(journals).enumerate() {
        let partition = free.split_off(config.slots / count);
        let tally = &tallies[index];
        let intake = Intake::new(
            &*rxs[index],
            Arc::clone(&parts.classifier),
            parts.shape.unknown().0,
            (Arc::clone(&pool), partition, free.split_off(0)),
            Arc::clone(tally),
        );
        let executor = Executor::new(
            Arc::clone(&parts.service),
            tx,
            WorkerId(index as u16),
            Arc::clone(&pool),
            Arc::clone(tally),
            journal,
        );
        let setup = executor.setup();
        let worker = Worker {
            index,
            local,
            view: View::new(index, intake, Arc::clone(&peers), L::STEALS),
            executor,
            peers: Arc::clone(&peers),
            control: Arc::clone(&control),
            patience: Patience::new(config.idle, count > cores(), control.stalls()),
            clock: Clock::global(),
        };
        let name = format!("hw-worker-{index}");
        started = started.and_then(|()| crew.spawn(name, &control, Some(setup), || worker.run()));
    }
    let engine = Engine {
        crew,
        control,
        tallies,
        kernel_drops: kernel_drops(&rxs),
        layout: None,
    };
    engine.settled(started)
}
