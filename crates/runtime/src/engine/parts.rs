//! What an engine is made of, and what it is once it runs.

use std::sync::Arc;
use std::time::Duration;

use headway_fiber::Mechanism;
use headway_machine::Clock;
use headway_net::datapath::Datapath;
use headway_policy::Shape;
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::SpecError;

use crate::engine::layout::{Layout, ResolvedLayout};
use crate::error::StartError;
use crate::request::classifier::ServerClassifier;
use crate::request::rescue::Rescue;
use crate::request::service::Service;
use crate::request::suspended_stacks::SuspendedStacks;
use crate::stats::tally::{Tally, WaitQueueStats};
use crate::threads::control::{ServerControl, ServerPhase};
use crate::threads::hosted::ServerCores;
use crate::threads::park::Idle;
use crate::threads::rack::{RackLink, SetDuty};
use crate::threads::server_threads::{Pin, ServerThreads};

/// How long threads that were told to give up may take: as long as handlers run at most, for all we hope.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// How the server is to be laid out.
#[derive(Clone, Debug)]
pub(crate) struct ServerConfig {
    /// What all threads read the time from.
    pub(crate) clock: Clock,
    pub(crate) idle: Idle,
    pub(crate) layout: ResolvedLayout,
    pub(crate) pin: Pin,
    /// How many stalls are kept.
    pub(crate) stalls: usize,
    /// Requests for which each worker's part of the journal has room.
    pub(crate) journal: usize,
    /// Buffers, and so the most requests in the server at once.
    pub(crate) slots: usize,
    /// Of the classes, UNKNOWN last.
    pub(crate) class_names: Vec<String>,
    /// Of a fiber's stack.
    pub(crate) stack_bytes: usize,
    /// Whether handlers keep nothing in their threads.
    pub(crate) plain_fibers: bool,
    /// The most threads that lend requests their state.
    pub(crate) most_lent_threads: usize,
    /// By what a dispatcher interrupts.
    pub(crate) mechanism: Mechanism,
    /// How often a worker that takes turns as the dispatcher polls for arrivals while its request runs, ns, above 0; chosen by the datapath
    /// where it is `None`.
    pub(crate) look_ns: Option<u64>,
    /// Whether requests are interrupted only where they say that they are long.
    pub(crate) feedback: bool,
    /// Whether a rack's switch is before the server.
    pub(crate) behind_switch: bool,
    /// Where the workers' cores come from, if an arbiter grants them.
    pub(crate) cores: Option<ServerCores>,
}

/// What an engine is made of, the policy apart.
pub(crate) struct EngineParts {
    pub(crate) datapath: Box<dyn Datapath>,
    pub(crate) classifier: ServerClassifier,
    pub(crate) service: Arc<dyn Service>,
    pub(crate) shape: Shape,
    pub(crate) config: ServerConfig,
}

/// Reads how many requests wait in an engine's queues.
pub(crate) type ReadDepths = Arc<dyn Fn() -> QueueDepths + Send + Sync>;

/// Requests that wait in queues other threads may look at. Where a dispatcher places requests there are none.
#[derive(Default)]
pub(crate) struct QueueDepths {
    /// At each worker.
    pub(crate) workers: Vec<usize>,
    /// In each wait queue, and whether it is congested.
    pub(crate) wait_queues: Vec<WaitQueueStats>,
}

/// Builds the system of a spec and puts its parts into the mailboxes of the engine's threads.
pub(crate) type SetRules = Arc<dyn Fn(&ServerSpec, &Shape) -> Result<(), SpecError> + Send + Sync>;

/// An engine that runs.
pub(crate) struct LiveEngine {
    pub(crate) threads: ServerThreads,
    pub(crate) control: Arc<ServerControl>,
    pub(crate) tallies: Vec<Arc<Tally>>,
    /// Datagrams the kernel dropped.
    pub(crate) kernel_drops: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// The layout chosen; none where there is no dispatcher.
    pub(crate) layout: Option<Layout>,
    /// Who sends suspended requests home, where requests are interrupted.
    pub(crate) rescue: Option<Arc<Rescue>>,
    /// Where its suspended requests stand, where requests are interrupted.
    pub(crate) stacks: Option<SuspendedStacks>,
    /// How its policy's rules are changed.
    pub(crate) set_rules: SetRules,
    /// How its dispatchers are given orders; none unless it is behind a rack's switch.
    pub(crate) set_duty: Option<SetDuty>,
    /// How many requests wait in its queues, as far as other threads can tell.
    pub(crate) queue_depths: ReadDepths,
    /// Dispatchers, each of which has workers of its own.
    pub(crate) dispatchers: usize,
    /// Who carries the monitor of a steered system out; none where there is no such monitor.
    pub(crate) monitor_layout: Option<Layout>,
}

impl LiveEngine {
    /// The way of a rack's orders to the dispatchers, where there is one. `classes` includes UNKNOWN.
    pub(crate) fn rack_link(&self, classes: usize) -> Option<RackLink> {
        let watchers = self.tallies.len() - self.dispatchers;
        Some(RackLink {
            control: Arc::clone(&self.control),
            set_duty: Arc::clone(self.set_duty.as_ref()?),
            tallies: self.tallies[watchers..].to_vec(),
            classes,
        })
    }

    /// The engine once its threads are ready; else it is stopped again.
    pub(crate) fn ready(
        mut self,
        started: Result<(), StartError>,
        clock: Clock,
    ) -> Result<Self, StartError> {
        match started.and_then(|()| self.threads.wait_until_ready()) {
            Ok(()) => Ok(self),
            Err(error) => {
                // A thread that failed to set up leaves the others nobody to stop them in order.
                self.control.advance(ServerPhase::Stopped);
                self.threads
                    .wait(clock, clock.now_ns() + GRACE.as_nanos() as u64);
                Err(error)
            }
        }
    }
}
