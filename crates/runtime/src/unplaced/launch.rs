//! From parts to running threads.

use std::marker::PhantomData;
use std::sync::Arc;

use headway_net::datapath::DatapathEnds;
use headway_policy::WorkerId;
use headway_policy::server::change;
use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_policy::server::systems::SharedQueues;

use super::arrivals::LeaderIntake;
use super::common::Common;
use super::view::UnplacedQueues;
use super::worker::{Receiving, WorkerParts};
use crate::engine::fiber_context::fiber_context;
use crate::engine::parts::{
    EngineParts, LiveEngine, SetRules, executors, kernel_drops, split, tallies,
};
use crate::error::StartError;
use crate::queue::look::usual_look_ns;
use crate::queue::rx_waker::RxWaker;
use crate::queue::token::request_queue;
use crate::request::intake::{Buffers, Intake};
use crate::stats::overruns::Overruns;
use crate::threads::control::ServerControl;
use crate::threads::hosted::HostedCores;
use crate::threads::park::Backoff;
use crate::threads::rules::{RulesSender, rules};
use crate::threads::server_threads::{Pinning, ServerThreads, cores};
use headway_sync::leader::Leadership;

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
    let (count, clock) = (parts.shape.workers, parts.config.clock);
    let config = &parts.config;
    let hosted = config.cores.as_ref();
    let hosted = hosted.map(|source| Arc::new(HostedCores::new(source, count, 1, config.clock)));
    let mut threads = match hosted {
        Some(_) => ServerThreads::new(Pinning::by_arbiter()),
        None => ServerThreads::new(Pinning::choose(&config.pin, count)?),
    };
    // The last is that of whoever receives.
    let tallies = tallies(count + 1, parts.shape.queues());
    let overruns = Arc::new(Overruns::new(
        &tallies,
        &config.class_names,
        config.feedback,
    ));
    let buffers = Buffers::with_spare(config.slots, 1)?;
    let pool = Arc::clone(&buffers.pool);
    let fiber_context = fiber_context(&parts, &pool, &overruns)?;
    let DatapathEnds { rxs, mut txs } = split(parts.datapath, 1, count + 1)?;
    let tx = txs.pop().expect("a way out for each thread was asked for");
    let control = Arc::new(ServerControl::new(count, None, config.stalls));
    let rx_waker = Arc::new(RxWaker::new(Arc::clone(&rxs[0])));
    let (queues, thieves): (Vec<_>, Vec<_>) = (0..count)
        .map(|_| request_queue(pool.len(), L::STEALS))
        .unzip();
    let look_ns = config.look_ns.unwrap_or(usual_look_ns(&*rxs[0]));
    let slots = pool.len();
    let common = Common::new(
        thieves,
        system.shared_queues,
        slots,
        look_ns,
        hosted.clone(),
    );
    let common = Arc::new(common);
    let intake = Intake::new(
        &*rxs[0],
        parts.classifier,
        parts.shape.unknown().0,
        buffers,
        Arc::clone(&tallies[count]),
    );
    let arrivals = LeaderIntake::new(
        intake,
        Arc::clone(&rx_waker),
        tx,
        Arc::clone(&common),
        Arc::clone(&control),
        parts.shape.queue_limit,
    );
    let receiving: Arc<Receiving> = Arc::new(Leadership::new(arrivals, count));
    // The arrivals have the control: a strong reference back would keep both for ever.
    let (sleeper, followers) = (Arc::clone(&rx_waker), Arc::downgrade(&receiving));
    control.set_wake_all(Box::new(move || {
        sleeper.wake();
        if let Some(followers) = followers.upgrade() {
            followers.wake_all();
        }
    }));
    if let Some(hosted) = &hosted {
        control.set_hosted(hosted);
    }
    let journals = control.open_journal(count, config.journal);
    let oversubscribed = hosted.is_none() && count > cores();
    let mut started = Ok(());
    let executors = executors(&parts.service, txs, journals, &pool, &tallies, config.clock);
    let (mailboxes, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| rules()).unzip();
    let locals = system.locals.into_iter().zip(receivers);
    let workers = locals.zip(executors).zip(queues);
    for (index, (((local, rules), executor), run_queue)) in workers.enumerate() {
        let me = WorkerId(index as u16);
        let tally = Arc::clone(&tallies[index]);
        let setup = executor.setup();
        let worker = WorkerParts {
            me,
            local,
            rules,
            view: UnplacedQueues::new(me, Arc::clone(&common), run_queue, pool.len(), tally),
            executor,
            fiber_context: fiber_context.clone(),
            common: Arc::clone(&common),
            receiving: Arc::clone(&receiving),
            rx_waker: Arc::clone(&rx_waker),
            control: Arc::clone(&control),
            backoff: Backoff::new(config.idle, oversubscribed, control.stalls(), config.clock),
        };
        started =
            started.and_then(|()| threads.spawn_worker(index, &control, setup, || worker.run()));
    }
    if let Some(cores) = hosted {
        started = started.and_then(|()| {
            threads.spawn("hw-door".to_owned(), &control, None, move || {
                cores.watch(0, &rx_waker, false);
            })
        });
    }
    let engine = LiveEngine {
        threads,
        control,
        tallies,
        kernel_drops: kernel_drops(&rxs),
        layout: None,
        set_duty: None,
        monitor_layout: None,
        set_rules: set_rules::<I, L, M>(mailboxes),
        queue_depths: Arc::new(move || common.depths()),
        dispatchers: 0,
    };
    engine.ready(started, clock)
}

/// Gives each worker the part of a new system that it is to adopt the rules of.
fn set_rules<I, L, M>(mailboxes: Vec<RulesSender<L>>) -> SetRules
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    Arc::new(move |spec, shape| {
        for system in change::rebuild::<I, L, M>(spec, shape)? {
            for (mailbox, local) in mailboxes.iter().zip(system.locals) {
                mailbox.put(local);
            }
        }
        Ok(())
    })
}
