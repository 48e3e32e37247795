//! One dispatcher and its workers, before their threads run.

use std::sync::Arc;

use headway_fiber::Mechanism;
use headway_net::datapath::{Rx, Tx};
use headway_policy::Shape;
use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_policy::server::systems::System;

use super::dispatched::Dispatched;
use super::dispatcher::{Dispatcher, DispatcherParts, DispatcherRules};
use super::fiber_worker::WorkerLocal;
use super::presence::Presence;
use super::rack::RackSide;
use super::watch::{CentralWatch, CentralWorkerSlot, Telling};
use super::worker::CentralWorker;
use super::worker_link::worker_link;
use crate::engine::launch::EngineBase;
use crate::queue::rx_waker::RxWaker;
use crate::request::executor::Executor;
use crate::request::intake::Buffers;
use crate::request::server_queue::ServerQueue;
use crate::stats::tally::Tally;
use crate::threads::control::ServerControl;
use crate::threads::park::Backoff;
use crate::threads::rack::PreparedOrder;
use crate::threads::rules::{RulesSender, rules};

/// What one dispatcher and its workers get of the server.
pub(super) struct GroupParts<I, L, M> {
    pub(super) number: usize,
    pub(super) is_one_of_several: bool,
    /// The first of its workers, among all of the server.
    pub(super) first: usize,
    pub(super) system: Dispatched<I, L, M>,
    pub(super) control: Arc<ServerControl>,
    pub(super) tx: Box<dyn Tx>,
    pub(super) buffers: Buffers,
    /// One for each worker.
    pub(super) executors: Vec<Executor>,
    /// Of a dispatcher that runs requests.
    pub(super) dispatcher_executor: Option<Executor>,
}

/// What the threads of one dispatcher and its workers are made of, in every layout.
pub(super) struct DispatcherGroup<I, L, M> {
    /// Of the threads' names: the dispatcher's number, where there are several.
    pub(super) number: Option<usize>,
    /// The first of its workers, among all of the server.
    pub(super) first: usize,
    pub(super) control: Arc<ServerControl>,
    pub(super) rx_waker: Arc<RxWaker>,
    pub(super) dispatcher: Dispatcher<I, M>,
    pub(super) dispatcher_backoff: Backoff,
    /// Of a dispatcher that runs requests.
    pub(super) dispatcher_executor: Option<Executor>,
    pub(super) workers: Vec<CentralWorker>,
    pub(super) worker_slots: Vec<Arc<CentralWorkerSlot>>,
    pub(super) locals: Vec<WorkerLocal<L>>,
    /// How often a worker that interrupts itself polls for arrivals, unless [`Builder::look_every`](crate::Builder::look_every) says otherwise, ns.
    pub(super) look_ns: u64,
}

/// The orders of a rack's control plane: where the dispatchers find them, and the queue's length that workers tell the switch.
pub(super) struct RackOrders {
    queue: Arc<ServerQueue>,
    /// One for each dispatcher.
    pub(super) senders: Vec<RulesSender<PreparedOrder>>,
}

impl RackOrders {
    /// Of a server whose dispatchers have these receive queues.
    pub(super) fn new(rxs: &[Arc<dyn Rx>]) -> Self {
        let (dispatchers, rxs) = (rxs.len(), rxs.to_vec());
        let backlog = move || rxs.iter().map(|rx| rx.backlog_hint()).sum();
        Self {
            queue: Arc::new(ServerQueue::new(dispatchers, backlog)),
            senders: Vec::new(),
        }
    }

    /// A dispatcher's side of the rack, which has so many buffers.
    fn side(&mut self, shape: &Shape, buffers: usize, number: usize) -> Box<RackSide> {
        let (sender, receiver) = rules();
        self.senders.push(sender);
        RackSide::new(shape, buffers, receiver, Arc::clone(&self.queue), number)
    }

    /// Has the executors tell the switch how many requests the server has.
    pub(super) fn told_by(&self, executors: &mut [Executor]) {
        for executor in executors {
            executor.tells_queue(&self.queue);
        }
    }
}

/// Where a dispatcher and its workers find new rules.
pub(super) struct GroupMailboxes<I, L, M> {
    dispatcher: RulesSender<DispatcherRules<I, M>>,
    locals: Vec<RulesSender<L>>,
}

impl<I, L, M> GroupMailboxes<I, L, M> {
    /// Puts the parts of a system there.
    pub(super) fn put(&self, system: System<I, L, M>) {
        self.dispatcher.put(DispatcherRules {
            ingress: system.ingress,
            monitor: system.monitor,
        });
        for (mailbox, local) in self.locals.iter().zip(system.locals) {
            mailbox.put(local);
        }
    }
}

/// Makes a dispatcher and its workers.
pub(super) fn prepare<I, L, M>(
    base: &EngineBase,
    parts: GroupParts<I, L, M>,
    orders: Option<&mut RackOrders>,
) -> (DispatcherGroup<I, L, M>, GroupMailboxes<I, L, M>)
where
    I: Ingress,
    L: Local,
    M: Monitor,
{
    let (number, control, system) = (parts.number, parts.control, parts.system);
    let (size, rx) = (system.locals.len(), &base.rxs[number]);
    let tally = &base.tallies[base.shape.workers + number];
    let depth = system.depth.min(parts.buffers.pool.len());
    let rx_waker = Arc::new(RxWaker::new(Arc::clone(rx)));
    let worker_slots: Vec<Arc<CentralWorkerSlot>> = (0..size).map(|_| Arc::default()).collect();
    let (links, worker_ends): (Vec<_>, Vec<_>) = (0..size).map(|_| worker_link(depth)).unzip();
    let buffers = parts.buffers.free.len();
    let rack = orders.map(|orders| orders.side(&base.shape, buffers, number));
    let (dispatcher_rules, rules) = rules();
    let (local_rules, locals) = worker_locals(system.locals);
    let presence = base.hosted.as_ref();
    let presence = presence.map(|cores| Box::new(Presence::new(Arc::clone(cores), size)));
    let watch = watch(base, system.monitor, &worker_slots, tally);
    let dispatcher = Dispatcher::new(DispatcherParts {
        ingress: system.ingress,
        rules,
        rack,
        presence,
        watch,
        intake: base.intake(number, parts.buffers, tally),
        rx_waker: Arc::clone(&rx_waker),
        tx: parts.tx,
        control: Arc::clone(&control),
        clock: base.clock(),
        links,
    });
    let workers = worker_ends.into_iter().zip(parts.executors);
    let group = DispatcherGroup {
        number: parts.is_one_of_several.then_some(number),
        first: parts.first,
        workers: workers
            .enumerate()
            .map(|(index, (link, executor))| CentralWorker {
                index,
                link,
                executor,
                rx_waker: Arc::clone(&rx_waker),
                control: Arc::clone(&control),
                backoff: base.backoff(),
            })
            .collect(),
        control,
        rx_waker,
        dispatcher,
        dispatcher_backoff: base.backoff(),
        dispatcher_executor: parts.dispatcher_executor,
        worker_slots,
        locals,
        look_ns: base.look_ns(),
    };
    let mailboxes = GroupMailboxes {
        dispatcher: dispatcher_rules,
        locals: local_rules,
    };
    (group, mailboxes)
}

/// How a dispatcher watches what its workers run, and by what it tells them that a request yields.
fn watch<M: Monitor>(
    base: &EngineBase,
    monitor: M,
    worker_slots: &[Arc<CentralWorkerSlot>],
    tally: &Arc<Tally>,
) -> CentralWatch<M> {
    let dedicated = base.config.layout.is_dedicated();
    let telling = match base.config.mechanism {
        Mechanism::Tsc if dedicated => Telling::Verdicts,
        _ if dedicated => Telling::AskedWithHint,
        _ => Telling::Asked,
    };
    let (overruns, tally) = (Arc::clone(&base.overruns), Arc::clone(tally));
    CentralWatch::new(monitor, telling, worker_slots, overruns, tally)
}

/// The local policies, each with its mailbox.
fn worker_locals<L>(locals: Vec<L>) -> (Vec<RulesSender<L>>, Vec<WorkerLocal<L>>) {
    locals
        .into_iter()
        .map(|local| {
            let (sender, rules) = rules();
            (sender, WorkerLocal { local, rules })
        })
        .unzip()
}
