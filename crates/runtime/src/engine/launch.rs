//! From settings to running threads, as far as all engines do it alike.

use std::sync::Arc;

use headway_machine::Clock;
use headway_net::datapath::{DatapathEnds, Rx, Tx};
use headway_policy::server::change;
use headway_policy::server::role::{Ingress, Local, Monitor};
use headway_policy::server::systems::System;
use headway_policy::{Shape, WorkerId};

use super::fiber_context::fiber_context;
use super::parts::{EngineParts, LiveEngine, ReadDepths, ServerConfig, SetRules};
use crate::engine::layout::Layout;
use crate::error::StartError;
use crate::queue::look::usual_look_ns;
use crate::request::classifier::ServerClassifier;
use crate::request::executor::{Executor, ThreadSetup};
use crate::request::intake::{Buffers, Intake};
use crate::request::shared_fibers::FiberContext;
use crate::request::suspended_stacks::SuspendedStacks;
use crate::stats::overruns::Overruns;
use crate::stats::tally::Tally;
use crate::threads::control::ServerControl;
use crate::threads::hosted::HostedCores;
use crate::threads::park::Backoff;
use crate::threads::rack::SetDuty;
use crate::threads::rescuer::Rescuer;
use crate::threads::server_threads::{Pinning, ServerThreads, cores};

/// What an engine asks for.
pub(crate) struct EngineDemands {
    /// Receive queues.
    pub(crate) queues: usize,
    /// Threads that run requests: the workers, then dispatchers that run requests.
    pub(crate) runners: usize,
    /// Senders beside the runners' own, which send refusals.
    pub(crate) refusers: usize,
    /// Receivers that need buffers for refusals while all others are in use.
    pub(crate) spare: usize,
    /// Interrupted requests that are to hold no receiver's buffer, as far as there are more.
    pub(crate) rooms: usize,
    /// Whether requests are interrupted.
    pub(crate) interrupts: bool,
    /// Whether the policy goes by requests that say that they are long.
    pub(crate) heeds_length: bool,
    /// One for each tally after the workers': the workers that its thread watches.
    pub(crate) watched: Vec<usize>,
}

/// What every engine is launched with, and its threads as they start.
pub(crate) struct EngineBase {
    pub(crate) classifier: ServerClassifier,
    pub(crate) shape: Shape,
    pub(crate) config: ServerConfig,
    pub(crate) control: Arc<ServerControl>,
    pub(crate) hosted: Option<Arc<HostedCores>>,
    pub(crate) threads: ServerThreads,
    /// The workers' first.
    pub(crate) tallies: Vec<Arc<Tally>>,
    pub(crate) overruns: Arc<Overruns>,
    pub(crate) fiber_context: Option<FiberContext>,
    pub(crate) rxs: Vec<Arc<dyn Rx>>,
    /// Threads share the cores that there are.
    pub(crate) oversubscribed: bool,
    /// Of the threads so far; after a failure no other thread starts.
    started: Result<(), StartError>,
}

/// What the threads of an engine own, one each.
pub(crate) struct EngineEnds {
    /// One for each runner.
    pub(crate) executors: Vec<Executor>,
    pub(crate) refusal_txs: Vec<Box<dyn Tx>>,
    pub(crate) buffers: Buffers,
}

/// In what a running engine differs from others.
pub(crate) struct EngineTraits {
    /// The layout chosen; none where there is no dispatcher.
    pub(crate) layout: Option<Layout>,
    /// Who carries the monitor of a steered system out; none where there is no such monitor.
    pub(crate) monitor_layout: Option<Layout>,
    pub(crate) dispatchers: usize,
    pub(crate) set_rules: SetRules,
    pub(crate) set_duty: Option<SetDuty>,
    pub(crate) queue_depths: ReadDepths,
}

impl EngineBase {
    /// Prepares an engine: cores, counters, buffers, stacks, the datapath's ends, an executor for each runner.
    ///
    /// # Errors
    /// [`StartError`]: there are too few cores, buffers, stacks or receive queues.
    pub(crate) fn new(
        parts: EngineParts,
        control: Arc<ServerControl>,
        demands: &EngineDemands,
    ) -> Result<(Self, EngineEnds), StartError> {
        let config = &parts.config;
        let (workers, clock) = (parts.shape.workers, config.clock);
        let thread_count = workers + config.layout.threads_beside;
        let hosted = config.cores.as_ref();
        let hosted = hosted.map(|source| HostedCores::new(source, workers, demands.queues, clock));
        let hosted = hosted.map(Arc::new);
        let pinning = match hosted {
            Some(_) => Pinning::by_arbiter(),
            None => Pinning::choose(&config.pin, thread_count)?,
        };
        let tallies = tallies(workers, &demands.watched, parts.shape.queues());
        let overruns = Overruns::new(&tallies, &config.class_names, config.feedback);
        let overruns = Arc::new(overruns);
        let buffers = Buffers::new(config.slots, demands.spare, demands.rooms)?;
        let fiber_context = demands
            .interrupts
            .then(|| {
                let heeds_length = demands.heeds_length;
                fiber_context(&parts, &buffers.pool, &overruns, heeds_length)
            })
            .transpose()?;
        let (queues, senders) = (demands.queues, demands.runners + demands.refusers);
        let DatapathEnds { rxs, mut txs } = parts
            .datapath
            .split(queues, senders)
            .map_err(|source| StartError::Datapath { queues, source })?;
        let refusal_txs = txs.split_off(demands.runners);
        if let Some(hosted) = &hosted {
            control.set_hosted(hosted);
        }
        let journals = control.open_journal(demands.runners, config.journal);
        let ends = txs.into_iter().zip(journals).zip(&tallies).enumerate();
        let executors = ends.map(|(worker, ((tx, journal), tally))| {
            let (service, pool) = (Arc::clone(&parts.service), Arc::clone(&buffers.pool));
            let (worker, tally) = (WorkerId(worker as u16), Arc::clone(tally));
            Executor::new(service, tx, worker, pool, tally, journal, clock)
        });
        let ends = EngineEnds {
            executors: executors.collect(),
            refusal_txs,
            buffers,
        };
        let base = Self {
            classifier: parts.classifier,
            shape: parts.shape,
            oversubscribed: hosted.is_none() && thread_count > cores(),
            config: parts.config,
            control,
            hosted,
            threads: ServerThreads::new(pinning),
            tallies,
            overruns,
            fiber_context,
            rxs,
            started: Ok(()),
        };
        Ok((base, ends))
    }

    pub(crate) fn clock(&self) -> Clock {
        self.config.clock
    }

    /// What the fibers share, of an engine that demanded to interrupt.
    pub(crate) fn shared_fibers(&self) -> FiberContext {
        let context = self.fiber_context.clone();
        context.expect("the engine demanded fibers")
    }

    /// How often a busy worker polls the first receive queue, ns.
    pub(crate) fn look_ns(&self) -> u64 {
        let look_ns = self.config.look_ns;
        look_ns.unwrap_or(usual_look_ns(&*self.rxs[0]))
    }

    /// How often a busy worker asks what waits at a receive queue, ns; 0 for whenever it wants to know, which costs little where no system call tells.
    pub(crate) fn glance_ns(&self) -> u64 {
        let is_cheap = self.config.look_ns.is_none() && !self.rxs[0].poll_is_system_call();
        if is_cheap { 0 } else { self.look_ns() }
    }

    /// A way from this receive queue to classified requests.
    pub(crate) fn intake(&self, queue: usize, buffers: Buffers, tally: &Arc<Tally>) -> Intake {
        Intake::new(
            &*self.rxs[queue],
            self.classifier.clone(),
            self.shape.unknown().0,
            buffers,
            Arc::clone(tally),
        )
    }

    /// How a thread of this server waits.
    pub(crate) fn backoff(&self) -> Backoff {
        let stalls = self.control.stalls();
        Backoff::new(
            self.config.idle,
            self.oversubscribed,
            stalls,
            self.config.clock,
        )
    }

    /// Starts a thread, unless an earlier one did not start.
    pub(crate) fn spawn(
        &mut self,
        name: String,
        setup: Option<ThreadSetup>,
        body: impl FnOnce() + Send + 'static,
    ) {
        if self.started.is_ok() {
            self.started = self
                .threads
                .spawn(name, &self.control, setup, Box::new(body));
        }
    }

    /// Starts the thread of this worker, unless an earlier thread did not start.
    pub(crate) fn spawn_worker(
        &mut self,
        worker: usize,
        setup: ThreadSetup,
        body: impl FnOnce() + Send + 'static,
    ) {
        self.spawn(format!("hw-worker-{worker}"), Some(setup), body);
    }

    /// Starts the door of a receive queue, where an arbiter grants the workers' cores: a thread that `watch`es the queue for them.
    pub(crate) fn spawn_door(
        &mut self,
        name: String,
        watch: impl FnOnce(&HostedCores) + Send + 'static,
    ) {
        if let Some(cores) = self.hosted.clone() {
            self.spawn(name, None, move || watch(&cores));
        }
    }

    /// Starts the thread that sees to it that no worker waits for ever for what is suspended, where suspended requests have threads.
    fn spawn_rescue(&mut self) {
        let Some(FiberContext {
            donors: Some(_),
            rescue,
            suspended,
            ..
        }) = &self.fiber_context
        else {
            return;
        };
        let rescuer = Rescuer {
            rescue: Arc::clone(rescue),
            suspended: Arc::clone(suspended),
            control: Arc::clone(&self.control),
        };
        self.spawn("hw-rescue".to_owned(), None, || rescuer.run());
    }

    /// The engine once its threads are ready; else it is stopped again.
    pub(crate) fn ready(mut self, traits: EngineTraits) -> Result<LiveEngine, StartError> {
        self.spawn_rescue();
        let clock = self.clock();
        let queues = self.rxs;
        let engine = LiveEngine {
            threads: self.threads,
            control: self.control,
            tallies: self.tallies,
            kernel_drops: Arc::new(move || queues.iter().map(|queue| queue.dropped()).sum()),
            layout: traits.layout,
            stacks: self
                .fiber_context
                .as_ref()
                // Loops with stacks of their own run on them beside these fibers.
                .filter(|context| !context.service.has_own_stacks())
                .map(|context| SuspendedStacks {
                    requests: Arc::clone(&context.suspended),
                    rescue: Arc::clone(&context.rescue),
                    clock,
                }),
            rescue: self.fiber_context.map(|context| context.rescue),
            set_rules: traits.set_rules,
            set_duty: traits.set_duty,
            queue_depths: traits.queue_depths,
            dispatchers: traits.dispatchers,
            monitor_layout: traits.monitor_layout,
        };
        engine.ready(self.started, clock)
    }
}

/// One tally for each worker, and one for each thread that watches workers. `classes` includes UNKNOWN.
fn tallies(workers: usize, watched: &[usize], classes: usize) -> Vec<Arc<Tally>> {
    let own = (0..workers).map(|_| Tally::new(classes));
    let watchers = watched
        .iter()
        .map(|&watched| Tally::of_watcher(classes, watched));
    own.chain(watchers).map(Arc::new).collect()
}

/// Rebuilds the systems of a spec and has each of them, by number, `put` into the mailboxes of its threads.
pub(crate) fn set_rules<I, L, M>(
    put: impl Fn(usize, System<I, L, M>) + Send + Sync + 'static,
) -> SetRules
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    Arc::new(move |spec, shape| {
        for (number, system) in change::rebuild::<I, L, M>(spec, shape)?
            .into_iter()
            .enumerate()
        {
            put(number, system);
        }
        Ok(())
    })
}
