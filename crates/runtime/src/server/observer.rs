//! A running server's counters, from any thread.

use std::io;
use std::sync::Arc;

use headway_fiber::StackCopy;
use headway_policy::{BitSet, Shape};

use crate::engine::parts::{LiveEngine, ReadDepths};
use crate::request::rescue::Rescue;
use crate::request::suspended_stacks::{SuspendedRequest, SuspendedStacks};
use crate::stats::journal::Journal;
use crate::stats::tally::{ClassStats, Stats, Tally};
use crate::threads::control::ServerControl;

/// Reads what a server has done so far, on any thread and after its end; see [`Server::observer`](crate::Server::observer).
#[derive(Clone)]
pub struct Observer {
    control: Arc<ServerControl>,
    tallies: Vec<Arc<Tally>>,
    kernel_drops: Arc<dyn Fn() -> u64 + Send + Sync>,
    queue_depths: ReadDepths,
    rescue: Option<Arc<Rescue>>,
    stacks: Option<SuspendedStacks>,
    workers: usize,
    dispatchers: usize,
    classes: Vec<String>,
    /// The classes that are short by their hints.
    shorts: BitSet,
}

impl Observer {
    /// `classes` names all of them, UNKNOWN last.
    pub(super) fn of(engine: &LiveEngine, shape: &Shape, classes: Vec<String>) -> Self {
        Self {
            control: Arc::clone(&engine.control),
            tallies: engine.tallies.clone(),
            kernel_drops: Arc::clone(&engine.kernel_drops),
            queue_depths: Arc::clone(&engine.queue_depths),
            rescue: engine.rescue.clone(),
            stacks: engine.stacks.clone(),
            workers: shape.workers,
            shorts: shape.hinted_shorts(),
            dispatchers: engine.dispatchers,
            classes,
        }
    }

    /// What the server has done so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let published = self.control.published();
        let mut stats = Stats {
            kernel_drops: (self.kernel_drops)(),
            plan_revisions: published.revisions,
            plan: published.plan,
            classes: self
                .classes
                .iter()
                .map(|name| ClassStats {
                    name: name.clone(),
                    ..ClassStats::default()
                })
                .collect(),
            ..Stats::default()
        };
        self.tallies
            .iter()
            .for_each(|tally| stats.add(tally, &self.shorts));
        stats.sum_up();
        stats.tell_apart(&self.tallies, self.workers, self.dispatchers);
        if let Some(rescue) = &self.rescue {
            for (class, rescued) in stats.classes.iter_mut().zip(rescue.sent_home()) {
                class.rescued = rescued;
            }
            for (class, count) in stats.classes.iter_mut().zip(rescue.without_thread()) {
                class.without_thread = count;
            }
        }
        let depths = (self.queue_depths)();
        for (worker, queued) in stats.workers.iter_mut().zip(depths.workers) {
            worker.queued = Some(queued);
        }
        stats.wait_queues = depths.wait_queues;
        stats
    }

    /// Tells each request that is suspended now, and a copy of its stack. Returns how many that were interrupted [go on in their own threads](crate::ClassStats::rescued)
    /// instead. No thread of the server waits for it; a request that goes on meanwhile is left out.
    ///
    /// # Errors
    /// The kernel does not let the process read its own memory by `process_vm_readv(2)`: a filter of system calls forbids it.
    pub fn suspended(&self, tell: impl FnMut(SuspendedRequest, &StackCopy)) -> io::Result<usize> {
        self.stacks
            .as_ref()
            .map_or(Ok(0), |stacks| stacks.each(tell))
    }

    /// The names of the classes, UNKNOWN's last.
    #[must_use]
    pub fn class_names(&self) -> &[String] {
        &self.classes
    }

    /// The journal that [`Builder::journal`](crate::Builder::journal) asked for; whoever asks first has it.
    #[must_use]
    pub fn take_journal(&self) -> Option<Journal> {
        self.control.take_journal()
    }
}
