//! From parts to running threads.

use std::sync::Arc;

use headway_fiber::Mechanism;
use headway_net::datapath::{DatapathEnds, Rx};
use headway_policy::server::change;
use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_policy::server::systems::System;

use super::dedicated::{DedicatedFiberWorker, DedicatedWorker, dispatch};
use super::dispatcher::{Dispatcher, DispatcherParts, DispatcherRules};
use super::dispatcher_worker::DispatcherWorkerParts;
use super::fiber_worker::{FiberWorkerParts, WorkerLocal};
use super::inline::InlineWorker;
use super::inline_fibers::InlineFiberWorker;
use super::presence::Presence;
use super::rack::RackSide;
use super::watch::{CentralWatch, CentralWorkerSlot, Telling};
use super::worker::CentralWorker;
use super::worker_link::worker_link;
use crate::engine::fiber_context::fiber_context;
use crate::engine::parts::{
    EngineParts, LiveEngine, QueueDepths, SetRules, executors, kernel_drops, split, tallies,
};
use crate::error::StartError;
use crate::queue::look::usual_look_ns;
use crate::queue::rx_waker::RxWaker;
use crate::request::executor::Executor;
use crate::request::fibers::FiberContext;
use crate::request::intake::{Buffers, Intake};
use crate::request::server_queue::ServerQueue;
use crate::stats::overruns::Overruns;
use crate::stats::tally::Tally;
use crate::threads::control::ServerControl;
use crate::threads::groups::controls_of;
use crate::threads::hosted::HostedCores;
use crate::threads::park::Backoff;
use crate::threads::rack::{SetDuty, set_duty};
use crate::threads::rules::{RulesSender, rules};
use crate::threads::server_threads::{Pinning, ServerThreads, cores};
use headway_sync::leader::Leadership;
use headway_sync::park::Parkers;

/// A system whose ingress is a dispatcher.
pub(crate) struct Dispatched<I, L, M> {
    pub(crate) ingress: I,
    pub(crate) locals: Vec<L>,
    pub(crate) monitor: M,
    /// Requests a worker may hold.
    pub(crate) depth: usize,
}

impl<I, L, M> Dispatched<I, L, M> {
    /// What a dispatcher and its workers need of a system.
    pub(crate) fn of(system: System<I, L, M>) -> Self {
        Self {
            ingress: system.ingress,
            locals: system.locals,
            monitor: system.monitor,
            depth: system.depth,
        }
    }
}

/// Starts a server whose ingress is a dispatcher, or several with workers of their own: a system each.
pub(crate) fn launch<I, L, M>(
    systems: Vec<Dispatched<I, L, M>>,
    parts: EngineParts,
) -> Result<LiveEngine, StartError>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    let interrupts = M::PREEMPTS || L::SLICES;
    let (count, dispatchers) = (parts.shape.workers, systems.len());
    let clock = parts.config.clock;
    let layout = parts.config.layout;
    let thread_count = count + layout.threads_beside;
    let config = &parts.config;
    let hosted = config.cores.as_ref();
    let hosted = hosted.map(|source| Arc::new(HostedCores::new(source, count, 1, config.clock)));
    let mut threads = match hosted {
        Some(_) => ServerThreads::new(Pinning::by_arbiter()),
        None => ServerThreads::new(Pinning::choose(&parts.config.pin, thread_count)?),
    };
    let classes = parts.shape.queues();
    let mut tallies = tallies(count, classes);
    tallies.extend(systems.iter().map(|system| {
        let watched = system.locals.len();
        Arc::new(Tally::of_watcher(classes, watched))
    }));
    let config = &parts.config;
    let overruns = Overruns::new(&tallies, &config.class_names, config.feedback);
    let overruns = Arc::new(overruns);
    let buffers = Buffers::with_spare(config.slots, dispatchers)?;
    let fiber_context = interrupts
        .then(|| fiber_context(&parts, &buffers.pool, &overruns))
        .transpose()?;
    let Prepared {
        rxs,
        control,
        groups,
        set_rules,
        set_duty,
    } = prepare(
        systems,
        parts,
        buffers,
        &tallies,
        &overruns,
        hosted.as_ref(),
    )?;
    if let Some(hosted) = &hosted {
        control.set_hosted(hosted);
    }
    let mut started = Ok(());
    for group in groups {
        let fiber_context = fiber_context.clone();
        started = started.and_then(|()| {
            if layout.is_dedicated() {
                start_dedicated(group, &control, fiber_context, &mut threads)
            } else {
                start_inline(
                    group,
                    &control,
                    fiber_context,
                    &mut threads,
                    hosted.as_ref(),
                )
            }
        });
    }
    let engine = LiveEngine {
        threads,
        control,
        tallies,
        kernel_drops: kernel_drops(&rxs),
        layout: layout.layout,
        set_rules,
        set_duty,
        queue_depths: Arc::new(QueueDepths::default),
        dispatchers,
        monitor_layout: None,
    };
    engine.ready(started, clock)
}

/// What a server is made of before its threads run.
struct Prepared<I, L, M> {
    rxs: Vec<Arc<dyn Rx>>,
    control: Arc<ServerControl>,
    groups: Vec<DispatcherGroup<I, L, M>>,
    set_rules: SetRules,
    set_duty: Option<SetDuty>,
}

/// What the threads of one dispatcher and its workers are made of, in every layout.
struct DispatcherGroup<I, L, M> {
    /// Of the threads' names: the dispatcher's number, where there are several.
    number: Option<usize>,
    /// The first of its workers, among all of the server.
    first: usize,
    control: Arc<ServerControl>,
    rx_waker: Arc<RxWaker>,
    dispatcher: Dispatcher<I, M>,
    dispatcher_backoff: Backoff,
    /// Of a dispatcher that runs requests.
    dispatcher_executor: Option<Executor>,
    workers: Vec<CentralWorker>,
    worker_slots: Vec<Arc<CentralWorkerSlot>>,
    locals: Vec<WorkerLocal<L>>,
    /// How often a worker that interrupts itself polls for arrivals, unless [`Builder::look_every`](crate::Builder::look_every) says otherwise, ns.
    look_ns: u64,
}

/// The server's control, and that of each dispatcher, which is the same where there is one.
fn controls<I: Ingress, L, M>(
    systems: &[Dispatched<I, L, M>],
    stalls: usize,
) -> (Arc<ServerControl>, Vec<Arc<ServerControl>>) {
    if let [system] = systems {
        let (workers, plan) = (system.locals.len(), system.ingress.plan());
        let control = Arc::new(ServerControl::new(workers, plan, stalls));
        return (Arc::clone(&control), vec![control]);
    }
    let sizes: Vec<usize> = systems.iter().map(|system| system.locals.len()).collect();
    controls_of(&sizes, stalls)
}

fn prepare<I, L, M>(
    systems: Vec<Dispatched<I, L, M>>,
    parts: EngineParts,
    buffers: Buffers,
    tallies: &[Arc<Tally>],
    overruns: &Arc<Overruns>,
    hosted: Option<&Arc<HostedCores>>,
) -> Result<Prepared<I, L, M>, StartError>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    let EngineParts { shape, config, .. } = parts;
    let (count, dispatchers) = (shape.workers, systems.len());
    let pool = Arc::clone(&buffers.pool);
    let dedicated = config.layout.is_dedicated();
    // Workers that take turns as the dispatcher run requests anyway.
    let dispatchers_work = I::WORKS && dedicated;
    let runners = count + if dispatchers_work { dispatchers } else { 0 };
    let DatapathEnds { rxs, mut txs } = split(parts.datapath, dispatchers, runners + dispatchers)?;
    let dispatcher_txs = txs.split_off(runners);
    let (control, controls) = controls(&systems, config.stalls);
    let journals = control.open_journal(runners, config.journal);
    let mut executors = executors(&parts.service, txs, journals, &pool, tallies, config.clock);
    let queue = config.behind_switch.then(|| {
        let rxs = rxs.clone();
        let backlog = move || rxs.iter().map(|rx| rx.backlog_hint()).sum();
        Arc::new(ServerQueue::new(dispatchers, backlog))
    });
    if let Some(queue) = &queue {
        let executors = executors.iter_mut();
        executors.for_each(|executor| executor.tells_queue(queue));
    }
    let mut dispatcher_executors = executors.split_off(count).into_iter();
    let mut executors = executors.into_iter();
    let threads = count + config.layout.threads_beside;
    let backoff = || {
        Backoff::new(
            config.idle,
            hosted.is_none() && threads > cores(),
            control.stalls(),
            config.clock,
        )
    };
    let telling = match config.mechanism {
        Mechanism::Tsc if dedicated => Telling::Verdicts,
        _ if dedicated => Telling::AskedWithHint,
        _ => Telling::Asked,
    };
    let look_ns = config.look_ns.unwrap_or(usual_look_ns(&*rxs[0]));
    let ends = rxs
        .iter()
        .zip(dispatcher_txs)
        .zip(buffers.divided(dispatchers));
    let mut groups: Vec<DispatcherGroup<I, L, M>> = Vec::with_capacity(dispatchers);
    let mut mailboxes = Vec::with_capacity(dispatchers);
    let mut orders = Vec::new();
    let mut first = 0;
    for (number, ((system, control), ((rx, tx), buffers))) in
        systems.into_iter().zip(controls).zip(ends).enumerate()
    {
        let size = system.locals.len();
        let tally = &tallies[count + number];
        let rx_waker = Arc::new(RxWaker::new(Arc::clone(rx)));
        let worker_slots: Vec<Arc<CentralWorkerSlot>> = (0..size).map(|_| Arc::default()).collect();
        let (links, worker_ends): (Vec<_>, Vec<_>) = (0..size)
            .map(|_| worker_link(system.depth.min(pool.len())))
            .unzip();
        let rack = queue.as_ref().map(|queue| {
            let (sender, receiver) = rules();
            orders.push(sender);
            let buffers = buffers.free.len();
            RackSide::new(&shape, buffers, receiver, Arc::clone(queue), number)
        });
        let (dispatcher_rules, rules) = rules();
        let (local_rules, locals) = locals(system.locals);
        mailboxes.push(Mailboxes {
            dispatcher: dispatcher_rules,
            locals: local_rules,
        });
        let dispatcher = Dispatcher::new(DispatcherParts {
            ingress: system.ingress,
            rules,
            rack,
            presence: hosted.map(|cores| Box::new(Presence::new(Arc::clone(cores), size))),
            watch: CentralWatch::new(
                system.monitor,
                telling,
                &worker_slots,
                Arc::clone(overruns),
                Arc::clone(tally),
            ),
            intake: Intake::new(
                &**rx,
                Arc::clone(&parts.classifier),
                shape.unknown().0,
                buffers,
                Arc::clone(tally),
            ),
            rx_waker: Arc::clone(&rx_waker),
            tx,
            control: Arc::clone(&control),
            clock: config.clock,
            links,
        });
        let workers = worker_ends
            .into_iter()
            .zip(executors.by_ref())
            .enumerate()
            .map(|(index, (link, executor))| CentralWorker {
                index,
                link,
                executor,
                rx_waker: Arc::clone(&rx_waker),
                control: Arc::clone(&control),
                backoff: backoff(),
            })
            .collect();
        groups.push(DispatcherGroup {
            number: (dispatchers > 1).then_some(number),
            first,
            control,
            rx_waker,
            dispatcher,
            dispatcher_backoff: backoff(),
            dispatcher_executor: dispatcher_executors.next(),
            workers,
            worker_slots,
            locals,
            look_ns,
        });
        first += size;
    }
    Ok(Prepared {
        rxs,
        control,
        groups,
        set_rules: set_rules::<I, L, M>(mailboxes),
        set_duty: config.behind_switch.then(|| set_duty(orders)),
    })
}

/// The local policies, each with its mailbox.
fn locals<L>(locals: Vec<L>) -> (Vec<RulesSender<L>>, Vec<WorkerLocal<L>>) {
    locals
        .into_iter()
        .map(|local| {
            let (sender, rules) = rules();
            (sender, WorkerLocal { local, rules })
        })
        .unzip()
}

/// Where a dispatcher and its workers find new rules.
struct Mailboxes<I, L, M> {
    dispatcher: RulesSender<DispatcherRules<I, M>>,
    locals: Vec<RulesSender<L>>,
}

/// Gives each dispatcher and worker the part of a new system that it is to adopt the rules of.
fn set_rules<I, L, M>(mailboxes: Vec<Mailboxes<I, L, M>>) -> SetRules
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    Arc::new(move |spec, shape| {
        let systems = change::rebuild::<I, L, M>(spec, shape)?;
        for (group, system) in mailboxes.iter().zip(systems) {
            group.dispatcher.put(DispatcherRules {
                ingress: system.ingress,
                monitor: system.monitor,
            });
            for (mailbox, local) in group.locals.iter().zip(system.locals) {
                mailbox.put(local);
            }
        }
        Ok(())
    })
}

/// Starts a thread for the dispatcher, and workers; with a `fiber_context` they may be interrupted.
fn start_dedicated<I, L, M>(
    group: DispatcherGroup<I, L, M>,
    server: &Arc<ServerControl>,
    fiber_context: Option<FiberContext>,
    threads: &mut ServerThreads,
) -> Result<(), StartError>
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
    let (watched, woken) = (Arc::clone(&control), parkers.clone());
    let name = match group.number {
        None => "hw-dispatch".to_owned(),
        Some(number) => format!("hw-dispatch-{number}"),
    };
    threads.spawn(name, server, setup, move || {
        dispatch(dispatcher, dispatcher_worker, &watched, &woken, backoff);
    })?;
    let Some(fiber_context) = fiber_context else {
        for worker in group.workers {
            let (index, setup) = (group.first + worker.index, worker.executor.setup());
            let parkers = parkers.clone();
            let worker = DedicatedWorker { worker, parkers };
            threads.spawn_worker(index, server, setup, || worker.run())?;
        }
        return Ok(());
    };
    let workers = group.workers.into_iter().zip(group.locals);
    for ((worker, local), worker_slot) in workers.zip(group.worker_slots) {
        let (index, setup) = (group.first + worker.index, worker.executor.setup());
        let worker = DedicatedFiberWorker {
            parts: FiberWorkerParts {
                worker,
                local,
                fiber_context: fiber_context.clone(),
                worker_slot: M::PREEMPTS.then_some(worker_slot),
            },
            parkers: parkers.clone(),
        };
        threads.spawn_worker(index, server, setup, || worker.run())?;
    }
    Ok(())
}

/// Starts workers that take turns as the dispatcher; with a `fiber_context` they interrupt themselves.
fn start_inline<I, L, M>(
    group: DispatcherGroup<I, L, M>,
    server: &Arc<ServerControl>,
    fiber_context: Option<FiberContext>,
    threads: &mut ServerThreads,
    hosted: Option<&Arc<HostedCores>>,
) -> Result<(), StartError>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    let control = group.control;
    if let Some(cores) = hosted {
        let (cores, rx_waker) = (Arc::clone(cores), Arc::clone(&group.rx_waker));
        let looks = fiber_context.is_none();
        threads.spawn("hw-door".to_owned(), server, None, move || {
            cores.watch(0, &rx_waker, looks);
        })?;
    }
    let shared = Arc::new(Leadership::new(group.dispatcher, group.workers.len()));
    // The dispatcher has the control: a strong reference back would keep both for ever.
    let (rx_waker, sleepers) = (group.rx_waker, Arc::downgrade(&shared));
    control.set_wake_all(Box::new(move || {
        rx_waker.wake();
        if let Some(sleepers) = sleepers.upgrade() {
            sleepers.wake_all();
        }
    }));
    let Some(fiber_context) = fiber_context else {
        for worker in group.workers {
            let (index, setup) = (group.first + worker.index, worker.executor.setup());
            let shared = Arc::clone(&shared);
            let cores = hosted.cloned();
            let worker = InlineWorker {
                worker,
                shared,
                cores,
            };
            threads.spawn_worker(index, server, setup, || worker.run())?;
        }
        return Ok(());
    };
    let workers = group.workers.into_iter().zip(group.locals);
    for ((worker, local), worker_slot) in workers.zip(group.worker_slots) {
        let (index, setup) = (group.first + worker.index, worker.executor.setup());
        let worker = InlineFiberWorker {
            parts: FiberWorkerParts {
                worker,
                local,
                fiber_context: fiber_context.clone(),
                worker_slot: M::PREEMPTS.then_some(worker_slot),
            },
            shared: Arc::clone(&shared),
            look_ns: group.look_ns,
            cores: hosted.cloned(),
        };
        threads.spawn_worker(index, server, setup, || worker.run())?;
    }
    Ok(())
}
