//! From parts to running threads.

use std::marker::PhantomData;
use std::sync::Arc;

use headway_policy::BitSet;
use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_policy::server::systems::SharedQueues;

use super::monitor::{MonitorParts, MonitorThread};
use super::peers::Peers;
use super::preemptive::{PreemptiveWorker, Timekeeper, Timer};
use super::view::SteeredQueues;
use super::worker::{SteeredWorker, ToTheEnd, WorkerDrain};
use super::worker_slot::SteeredWorkerSlot;
use crate::engine::launch::{EngineBase, EngineDemands, EngineTraits, set_rules};
use crate::engine::parts::{EngineParts, LiveEngine, SetRules};
use crate::error::StartError;
use crate::queue::run_queue::{RequestQueue, request_queue};
use crate::request::intake::Buffers;
use crate::threads::control::ServerControl;
use crate::threads::door::Door;
use crate::threads::park::Idle;
use crate::threads::rules::{RulesSender, rules};

/// A system whose workers each serve a receive queue. Its ingress is the network's: the type tells which system is built anew to change rules.
pub(crate) struct SteeredSystem<I, L, M> {
    pub(crate) ingress: PhantomData<fn() -> I>,
    pub(crate) locals: Vec<L>,
    pub(crate) monitor: M,
    pub(crate) shared_queues: SharedQueues,
    /// The classes that are refused first as buffers run out, until a worker says otherwise.
    pub(crate) sheds_first: BitSet,
}

/// Starts a server whose workers each serve a receive queue.
pub(crate) fn launch<I, L, M>(
    system: SteeredSystem<I, L, M>,
    parts: EngineParts,
) -> Result<LiveEngine, StartError>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    let (count, layout) = (parts.shape.workers, parts.config.layout);
    let has_thread = layout.is_dedicated();
    let control = Arc::new(ServerControl::new(count, None, parts.config.stalls));
    let rooms = system.shared_queues.most(parts.config.slots);
    let demands = demands::<L, M>(count, rooms, has_thread);
    let (mut base, mut ends) = EngineBase::new(parts, control, &demands)?;
    let steals = L::STEALS || base.hosted.is_some();
    let (peers, queues) = peers(&base, &mut ends.buffers, system.shared_queues, steals);
    let (locals, local_mailboxes): (Vec<_>, Vec<_>) = (0..count).map(|_| rules()).unzip();
    let (timekeepers, monitors) = if has_thread {
        start_monitor(&mut base, system.monitor, &peers)
    } else {
        timekeepers(&system.monitor, count)
    };
    let mailboxes = SteeredMailboxes { locals, monitors };
    let siblings = base.threads.siblings(usize::from(has_thread), count);
    let locals = system.locals.into_iter().zip(local_mailboxes);
    let threads = ends.executors.into_iter().zip(queues);
    let threads = threads.zip(ends.buffers.divided(count)).zip(timekeepers);
    for (index, ((local, rules), thread)) in locals.zip(threads).enumerate() {
        let (((executor, run_queue), buffers), timekeeper) = thread;
        let intake = base.intake(index, buffers, &base.tallies[index]);
        let (sibling, cores) = (siblings[index], base.hosted.clone());
        let worker = SteeredWorker {
            index,
            local,
            rules,
            view: SteeredQueues::new(
                index,
                sibling,
                intake,
                Arc::clone(&peers),
                run_queue,
                cores,
                base.look_ns(),
            )
            .shedding_first(system.sheds_first),
            executor,
            peers: Arc::clone(&peers),
            control: Arc::clone(&base.control),
            backoff: base.backoff(),
            clock: base.clock(),
            stopped_ns: None,
            cores: base.hosted.clone(),
            core: None,
            drain: WorkerDrain::NotBegun,
        };
        start_worker(&mut base, worker, timekeeper);
    }
    start_doors(&mut base, &peers);
    base.ready(EngineTraits {
        layout: None,
        monitor_layout: layout.layout,
        dispatchers: 0,
        set_rules: mailboxes.set_rules::<I>(),
        set_duty: None,
        queue_depths: Arc::new(move || peers.depths()),
    })
}

/// What the engine asks of its buffers, receive queues and threads.
fn demands<L: Local, M: Monitor>(workers: usize, rooms: usize, has_thread: bool) -> EngineDemands {
    let interrupts = M::PREEMPTS || L::SLICES;
    EngineDemands {
        queues: workers,
        runners: workers,
        refusers: 0,
        spare: workers,
        rooms: if interrupts { rooms } else { 0 },
        interrupts,
        heeds_length: M::HEEDS,
        watched: has_thread.then_some(workers).into_iter().collect(),
    }
}

/// What the workers see of each other, and the run queue of each.
fn peers(
    base: &EngineBase,
    buffers: &mut Buffers,
    shared_queues: SharedQueues,
    steals: bool,
) -> (Arc<Peers>, Vec<RequestQueue>) {
    let requests = buffers.pool.len();
    let (queues, thieves): (Vec<_>, Vec<_>) = (0..base.shape.workers)
        .map(|_| request_queue(requests, steals))
        .unzip();
    let peers = Peers::new(&base.rxs, thieves, shared_queues, buffers);
    let peers = Arc::new(peers.looking_every(base.glance_ns()));
    let sleepers = Arc::clone(&peers);
    base.control
        .set_wake_all(Box::new(move || sleepers.wake_all()));
    (peers, queues)
}

/// Starts a worker; where there is a fiber context its requests may be interrupted.
fn start_worker<L, M>(base: &mut EngineBase, worker: SteeredWorker<L>, timekeeper: Timekeeper<M>)
where
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    let (index, setup) = (worker.index, worker.executor.setup());
    let Some(fiber_context) = base.fiber_context.clone() else {
        return base.spawn_worker(index, setup, || worker.serve(ToTheEnd));
    };
    let worker = PreemptiveWorker {
        worker,
        timekeeper,
        fiber_context,
    };
    base.spawn_worker(index, setup, || worker.run());
}

/// Starts the thread that carries the monitor out for all workers.
fn start_monitor<M: Monitor + Send + 'static>(
    base: &mut EngineBase,
    monitor: M,
    peers: &Arc<Peers>,
) -> (Vec<Timekeeper<M>>, Vec<RulesSender<M>>) {
    let workers = base.shape.workers;
    let worker_slots: Vec<Arc<SteeredWorkerSlot>> = (0..workers).map(|_| Arc::default()).collect();
    let (sender, rules) = rules();
    let monitor = MonitorParts {
        monitor,
        rules,
        worker_slots: worker_slots.clone(),
        peers: Arc::clone(peers),
        control: Arc::clone(&base.control),
        overruns: Arc::clone(&base.overruns),
        tally: Arc::clone(&base.tallies[workers]),
        clock: base.clock(),
        may_sleep: base.config.idle != Idle::Spin,
        oversubscribed: base.oversubscribed,
    };
    base.spawn("hw-monitor".to_owned(), None, || {
        MonitorThread::new(monitor).run();
    });
    let timekeepers = worker_slots.into_iter().map(Timekeeper::Thread);
    (timekeepers.collect(), vec![sender])
}

/// Starts the door of each receive queue, where an arbiter grants the workers' cores.
fn start_doors(base: &mut EngineBase, peers: &Arc<Peers>) {
    let clock = base.clock();
    for queue in 0..base.shape.workers {
        let peers = Arc::clone(peers);
        base.spawn_door(format!("hw-door-{queue}"), move |cores| {
            Door::new(cores, queue, peers.rx_waker(queue), true, clock).watch();
        });
    }
}

/// Has each worker carry the monitor out for itself.
fn timekeepers<M: Monitor>(
    monitor: &M,
    workers: usize,
) -> (Vec<Timekeeper<M>>, Vec<RulesSender<M>>) {
    let timer = Arc::new(Timer::new(monitor.clone()));
    (0..workers)
        .map(|_| {
            let (sender, rules) = rules();
            let timekeeper = Timekeeper::Worker {
                monitor: monitor.clone(),
                rules,
                timer: Arc::clone(&timer),
            };
            (timekeeper, sender)
        })
        .unzip()
}

/// Where the workers, and whoever carries the monitor out, find new rules.
struct SteeredMailboxes<L, M> {
    locals: Vec<RulesSender<L>>,
    monitors: Vec<RulesSender<M>>,
}

impl<L, M> SteeredMailboxes<L, M>
where
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    /// Gives each worker the parts of a new system that it is to adopt the rules of.
    fn set_rules<I: Ingress + Send + 'static>(self) -> SetRules {
        set_rules::<I, L, M>(move |_, system| {
            // The workers adopt both where they find the first new, so the second must lie there before any of them is told.
            for mailbox in &self.monitors {
                mailbox.put(system.monitor.clone());
            }
            for (mailbox, local) in self.locals.iter().zip(system.locals) {
                mailbox.put(local);
            }
        })
    }
}
