//! From parts to running threads.

use std::sync::Arc;

use headway_machine::Clock;
use headway_net::classify::Classifier;
use headway_net::datapath::Datapath;
use headway_net::pool::Pool;
use headway_policy::role::Local;

use super::peers::Peers;
use super::view::View;
use super::worker::Worker;
use crate::control::Control;
use crate::error::StartError;
use crate::intake::{Buffers, Intake};
use crate::park::Backoff;
use crate::parts::{Engine, Parts, executors, kernel_drops, tallies};
use crate::service::Service;
use crate::threads::{Pinning, Threads, cores};

/// Starts a server whose workers each serve a receive queue.
pub(crate) fn launch<L, D, C, S>(
    locals: Vec<L>,
    shared_queues: usize,
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
    let mut threads = Threads::new(Pinning::choose(&config.pin, count)?);
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
    let executors = executors(&parts.service, txs, journals, &pool, &tallies);
    for (index, (local, executor)) in locals.into_iter().zip(executors).enumerate() {
        let buffers = Buffers {
            pool: Arc::clone(&pool),
            free: free.split_off(config.slots / count),
            spare: free.split_off(0),
        };
        let intake = Intake::new(
            &*rxs[index],
            Arc::clone(&parts.classifier),
            parts.shape.unknown().0,
            buffers,
            Arc::clone(&tallies[index]),
        );
        let setup = executor.setup();
        let worker = Worker {
            index,
            local,
            view: View::new(index, intake, Arc::clone(&peers), L::STEALS),
            executor,
            peers: Arc::clone(&peers),
            control: Arc::clone(&control),
            backoff: Backoff::new(config.idle, count > cores(), control.stalls()),
            clock: Clock::global(),
        };
        started =
            started.and_then(|()| threads.spawn_worker(index, &control, setup, || worker.run()));
    }
    let engine = Engine {
        threads,
        control,
        tallies,
        kernel_drops: kernel_drops(&rxs),
        layout: None,
    };
    engine.ready(started)
}
