//! From parts to running threads.

use std::marker::PhantomData;
use std::sync::Arc;

use headway_net::datapath::DatapathEnds;
use headway_net::pool::Pool;
use headway_policy::server::change;
use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_policy::server::systems::SharedQueues;

use super::monitor::MonitorThread;
use super::peers::Peers;
use super::preemptive::{PreemptiveWorker, Timekeeper, Timer};
use super::view::SteeredQueues;
use super::worker::{SteeredWorker, ToTheEnd};
use super::worker_slot::SteeredWorkerSlot;
use crate::engine::fiber_context::fiber_context;
use crate::engine::parts::{
    EngineParts, LiveEngine, SetRules, executors, kernel_drops, split, tallies,
};
use crate::error::StartError;
use crate::queue::token::request_queue;
use crate::request::intake::{Buffers, Intake};
use crate::stats::overruns::Overruns;
use crate::stats::tally::Tally;
use crate::threads::control::ServerControl;
use crate::threads::hosted::HostedCores;
use crate::threads::park::{Backoff, Idle};
use crate::threads::rules::{RulesSender, rules};
use crate::threads::server_threads::{Pinning, ServerThreads, cores};

/// A system whose workers each serve a receive queue. Its ingress is the network's: the type tells which system is built anew to change rules.
pub(crate) struct SteeredSystem<I, L, M> {
    pub(crate) ingress: PhantomData<fn() -> I>,
    pub(crate) locals: Vec<L>,
    pub(crate) monitor: M,
    pub(crate) shared_queues: SharedQueues,
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
    let (count, clock) = (parts.shape.workers, parts.config.clock);
    let config = &parts.config;
    let hosted = config.cores.as_ref();
    let hosted =
        hosted.map(|source| Arc::new(HostedCores::new(source, count, count, config.clock)));
    let has_thread = config.layout.is_dedicated();
    let thread_count = count + config.layout.threads_beside;
    let mut threads = match hosted {
        Some(_) => ServerThreads::new(Pinning::by_arbiter()),
        None => ServerThreads::new(Pinning::choose(&config.pin, thread_count)?),
    };
    let siblings = threads.siblings(usize::from(has_thread), count);
    let classes = parts.shape.queues();
    let mut tallies = tallies(count, classes);
    tallies.extend(has_thread.then(|| Arc::new(Tally::of_watcher(classes, count))));
    let interrupts = M::PREEMPTS || L::SLICES;
    let oversubscribed = hosted.is_none() && thread_count > cores();
    let overruns = Overruns::new(&tallies, &config.class_names, config.feedback);
    let overruns = Arc::new(overruns);
    let (pool, mut free) = Pool::new(config.slots)?;
    let pool = Arc::new(pool);
    let fiber_context = interrupts
        .then(|| fiber_context(&parts, &pool, &overruns))
        .transpose()?;
    let DatapathEnds { rxs, txs } = split(parts.datapath, count, count)?;
    let (queues, thieves): (Vec<_>, Vec<_>) = (0..count)
        .map(|_| request_queue(config.slots, L::STEALS || hosted.is_some()))
        .unzip();
    let peers = Arc::new(Peers::new(
        &rxs,
        thieves,
        system.shared_queues,
        config.slots,
    ));
    let control = Arc::new(ServerControl::new(count, None, config.stalls));
    let sleepers = Arc::clone(&peers);
    control.set_wake_all(Box::new(move || sleepers.wake_all()));
    if let Some(hosted) = &hosted {
        control.set_hosted(hosted);
    }
    let journals = control.open_journal(count, config.journal);
    let mut started = Ok(());
    let executors = executors(&parts.service, txs, journals, &pool, &tallies, config.clock);
    let worker_slots: Vec<Arc<SteeredWorkerSlot>> = (0..count).map(|_| Arc::default()).collect();
    let watchers = if has_thread { 1 } else { count };
    let (monitor_rules, monitor_receivers): (Vec<_>, Vec<_>) =
        (0..watchers).map(|_| rules()).unzip();
    let mut monitor_receivers = monitor_receivers.into_iter();
    let mut next_monitor_rules = || {
        monitor_receivers
            .next()
            .expect("a mailbox for each monitor")
    };
    if has_thread {
        let monitor = MonitorThread {
            monitor: system.monitor.clone(),
            rules: next_monitor_rules(),
            worker_slots: worker_slots.clone(),
            peers: Arc::clone(&peers),
            control: Arc::clone(&control),
            overruns,
            tally: Arc::clone(&tallies[count]),
            clock: config.clock,
            may_sleep: config.idle != Idle::Spin,
            oversubscribed,
        };
        started = threads.spawn("hw-monitor".to_owned(), &control, None, || monitor.run());
    }
    let timer = Arc::new(Timer::new(system.monitor.clone()));
    let (local_rules, local_receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| rules()).unzip();
    let workers = system.locals.into_iter().zip(executors).zip(queues);
    for (index, (((local, executor), run_queue), rules)) in workers.zip(local_receivers).enumerate()
    {
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
        let worker = SteeredWorker {
            index,
            local,
            rules,
            view: SteeredQueues::new(
                index,
                siblings[index],
                intake,
                Arc::clone(&peers),
                run_queue,
                hosted.clone(),
            ),
            executor,
            peers: Arc::clone(&peers),
            control: Arc::clone(&control),
            backoff: Backoff::new(config.idle, oversubscribed, control.stalls(), config.clock),
            clock: config.clock,
            stopped_ns: None,
            cores: hosted.clone(),
            core: None,
        };
        let Some(fiber_context) = &fiber_context else {
            started = started.and_then(|()| {
                threads.spawn_worker(index, &control, setup, || worker.serve(ToTheEnd))
            });
            continue;
        };
        let timekeeper = if has_thread {
            Timekeeper::Thread(Arc::clone(&worker_slots[index]))
        } else {
            Timekeeper::Worker {
                monitor: system.monitor.clone(),
                rules: next_monitor_rules(),
                timer: Arc::clone(&timer),
            }
        };
        let worker = PreemptiveWorker {
            worker,
            timekeeper,
            fiber_context: fiber_context.clone(),
        };
        started =
            started.and_then(|()| threads.spawn_worker(index, &control, setup, || worker.run()));
    }
    for queue in 0..hosted.as_ref().map_or(0, |_| count) {
        let (cores, peers) = (hosted.clone().expect("it is hosted"), Arc::clone(&peers));
        let name = format!("hw-door-{queue}");
        started = started.and_then(|()| {
            threads.spawn(name, &control, None, move || {
                cores.watch(queue, peers.rx_waker(queue), true);
            })
        });
    }
    let monitor_layout = config.layout.layout;
    let engine = LiveEngine {
        threads,
        control,
        tallies,
        kernel_drops: kernel_drops(&rxs),
        layout: None,
        set_duty: None,
        set_rules: set_rules::<I, L, M>(local_rules, monitor_rules),
        queue_depths: Arc::new(move || peers.depths()),
        dispatchers: 0,
        monitor_layout,
    };
    engine.ready(started, clock)
}

/// Gives each worker the parts of a new system that it is to adopt the rules of.
fn set_rules<I, L, M>(locals: Vec<RulesSender<L>>, monitors: Vec<RulesSender<M>>) -> SetRules
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    Arc::new(move |spec, shape| {
        for system in change::rebuild::<I, L, M>(spec, shape)? {
            // The workers adopt both where they find the first new, so the second must lie there before any of them is told.
            for mailbox in &monitors {
                mailbox.put(system.monitor.clone());
            }
            for (mailbox, local) in locals.iter().zip(system.locals) {
                mailbox.put(local);
            }
        }
        Ok(())
    })
}
