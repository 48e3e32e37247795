//! From parts to running threads.

use std::marker::PhantomData;
use std::sync::Arc;

use headway_net::datapath::Tx;
use headway_policy::WorkerId;
use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_policy::server::systems::SharedQueues;
use headway_sync::leader::Leadership;

use super::arrivals::LeaderIntake;
use super::common::Common;
use super::view::UnplacedQueues;
use super::worker::{Receiving, WorkerParts};
use crate::engine::launch::{EngineBase, EngineDemands, EngineTraits, set_rules};
use crate::engine::parts::{EngineParts, LiveEngine};
use crate::error::StartError;
use crate::queue::run_queue::request_queue;
use crate::queue::rx_waker::RxWaker;
use crate::request::intake::Buffers;
use crate::threads::control::ServerControl;
use crate::threads::door::Door;
use crate::threads::rules::rules;

/// A system whose workers help themselves.
pub(crate) struct UnplacedSystem<I, L, M> {
    /// Its other roles have nothing to do.
    pub(crate) others: PhantomData<(I, M)>,
    pub(crate) locals: Vec<L>,
    pub(crate) shared_queues: SharedQueues,
}

/// Starts a server whose workers help themselves from one receive queue.
pub(crate) fn launch<I, L, M>(
    system: UnplacedSystem<I, L, M>,
    parts: EngineParts,
) -> Result<LiveEngine, StartError>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    let count = parts.shape.workers;
    let control = Arc::new(ServerControl::new(count, None, parts.config.stalls));
    let (mut base, mut ends) = EngineBase::new(parts, control, &demands(count))?;
    let slots = ends.buffers.pool.len();
    let rx_waker = Arc::new(RxWaker::new(Arc::clone(&base.rxs[0])));
    let (queues, thieves): (Vec<_>, Vec<_>) =
        (0..count).map(|_| request_queue(slots, L::STEALS)).unzip();
    let (shared_queues, cores) = (system.shared_queues, base.hosted.clone());
    let common = Common::new(thieves, shared_queues, slots, base.look_ns(), cores);
    let common = Arc::new(common);
    let tx = ends.refusal_txs.remove(0);
    let receiving = receiving(&base, ends.buffers, tx, &rx_waker, &common);
    let (mailboxes, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| rules()).unzip();
    let locals = system.locals.into_iter().zip(receivers);
    let workers = locals.zip(ends.executors).zip(queues);
    for (index, (((local, rules), executor), run_queue)) in workers.enumerate() {
        let me = WorkerId(index as u16);
        let tally = Arc::clone(&base.tallies[index]);
        let setup = executor.setup();
        let worker = WorkerParts {
            me,
            local,
            rules,
            view: UnplacedQueues::new(me, Arc::clone(&common), run_queue, slots, tally),
            executor,
            fiber_context: base.shared_fibers(),
            common: Arc::clone(&common),
            receiving: Arc::clone(&receiving),
            rx_waker: Arc::clone(&rx_waker),
            control: Arc::clone(&base.control),
            backoff: base.backoff(),
        };
        base.spawn_worker(index, setup, || worker.run());
    }
    let (looks, clock) = (base.config.feedback, base.clock());
    base.spawn_door("hw-door".to_owned(), move |cores| {
        Door::new(cores, 0, &rx_waker, looks, clock).watch();
    });
    base.ready(EngineTraits {
        layout: None,
        monitor_layout: None,
        dispatchers: 0,
        // Each worker adopts the rules of its part of a new system.
        set_rules: set_rules::<I, L, M>(move |_, system| {
            for (mailbox, local) in mailboxes.iter().zip(system.locals) {
                mailbox.put(local);
            }
        }),
        set_duty: None,
        queue_depths: Arc::new(move || common.depths()),
    })
}

/// What the engine asks of its buffers, receive queues and threads.
fn demands(workers: usize) -> EngineDemands {
    EngineDemands {
        queues: 1,
        runners: workers,
        refusers: 1,
        spare: 1,
        rooms: 0,
        interrupts: true,
        heeds_length: false,
        // Whoever receives counts in the last tally.
        watched: vec![0],
    }
}

/// What the workers lead by turns: the way from the receive queue to the queue that they share.
fn receiving(
    base: &EngineBase,
    buffers: Buffers,
    tx: Box<dyn Tx>,
    rx_waker: &Arc<RxWaker>,
    common: &Arc<Common>,
) -> Arc<Receiving> {
    let workers = base.shape.workers;
    let arrivals = LeaderIntake::new(
        base.intake(0, buffers, &base.tallies[workers]),
        Arc::clone(rx_waker),
        tx,
        Arc::clone(common),
        Arc::clone(&base.control),
        base.shape.queue_limit,
    );
    let receiving = Arc::new(Leadership::new(arrivals, workers));
    // The arrivals have the control: a strong reference back would keep both for ever.
    let (sleeper, followers) = (Arc::clone(rx_waker), Arc::downgrade(&receiving));
    base.control.set_wake_all(Box::new(move || {
        sleeper.wake();
        if let Some(followers) = followers.upgrade() {
            followers.wake_all();
        }
    }));
    receiving
}
