//! What the workers share, beside the right to receive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;
use headway_net::pool::{FreeList, SlotId};
use headway_policy::server::systems::SharedQueues;

use crate::engine::parts::QueueDepths;
use crate::queue::run_queue::RequestThief;
use crate::queue::shared_queue::SharedQueue;
use crate::queue::token::RequestWord;
use crate::stats::tally::WaitQueueStats;
use crate::threads::hosted::HostedCores;
use headway_sync::Padded;

/// The shared queue that arrivals and interrupted requests join.
pub(super) const ARRIVALS: usize = 0;

/// Shared queues, run queues, and the buffers that workers are done with.
pub(super) struct Common {
    pub(super) queues: Box<[SharedQueue<RequestWord>]>,
    /// The run queue of each worker.
    pub(super) thieves: Box<[RequestThief]>,
    /// Buffers of answered requests, on their way back to whoever receives.
    free: ArrayQueue<SlotId>,
    /// When a worker last polled for arrivals, ns.
    polled_ns: Padded<AtomicU64>,
    /// How old the last poll may be while all workers run requests, ns.
    look_ns: u64,
    /// Of a server whose workers come and go.
    pub(super) cores: Option<Arc<HostedCores>>,
}

impl Common {
    /// `slots`: buffers in the pool, which all queues have room for.
    pub(super) fn new(
        thieves: Vec<RequestThief>,
        shared: SharedQueues,
        slots: usize,
        look_ns: u64,
        cores: Option<Arc<HostedCores>>,
    ) -> Self {
        let queues = (0..shared.count).map(|_| SharedQueue::new(shared.room.min(slots)));
        Self {
            queues: queues.collect(),
            thieves: thieves.into(),
            free: ArrayQueue::new(slots),
            polled_ns: Padded(AtomicU64::new(0)),
            look_ns,
            cores,
        }
    }

    /// Tells the arbiter how many requests came into the shared queues and left them.
    #[inline]
    pub(super) fn moved(&self, came: usize, left: usize) {
        if let Some(cores) = &self.cores {
            cores.moved(came as u64, left as u64, came > 0);
        }
    }

    /// Whether a request waits in a shared queue.
    #[inline]
    pub(super) fn shares_work(&self) -> bool {
        self.queues.iter().any(|queue| !queue.is_empty())
    }

    /// Whether a request waits anywhere behind the receive queue.
    pub(super) fn has_work(&self) -> bool {
        self.shares_work() || self.thieves.iter().any(|thief| thief.len() > 0)
    }

    /// What waits in the queues, roughly: they are read one after the other.
    pub(super) fn depths(&self) -> QueueDepths {
        let wait_queues = self.queues.iter().map(|queue| WaitQueueStats {
            waiting: queue.len(),
            congested: false,
        });
        QueueDepths {
            workers: self.thieves.iter().map(RequestThief::len).collect(),
            wait_queues: wait_queues.collect(),
        }
    }

    /// Takes everything out of the shared queues.
    pub(super) fn drain_shared(&self) -> impl Iterator<Item = RequestWord> {
        self.queues
            .iter()
            .flat_map(|queue| std::iter::from_fn(|| queue.pop()))
    }

    /// A request was answered, and its buffer is free.
    #[inline]
    pub(super) fn release(&self, slot: SlotId) {
        let refused = self.free.push(slot);
        refused.expect("the list has room for every buffer of the pool");
    }

    /// Moves free buffers to `free` until it has `wanted` of them, as far as there are any.
    #[inline]
    pub(super) fn provide(&self, wanted: usize, free: &mut FreeList) {
        while free.len() < wanted
            && let Some(slot) = self.free.pop()
        {
            free.give(slot);
        }
    }

    /// Buffers on their way back to whoever receives.
    pub(super) fn free_buffers(&self) -> usize {
        self.free.len()
    }

    /// Whether it is time to poll, although requests may wait already.
    #[inline]
    pub(super) fn poll_is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.polled_ns.load(Ordering::Relaxed) + self.look_ns
    }

    /// A worker polls at this time.
    #[inline]
    pub(super) fn polled(&self, now_ns: u64) {
        self.polled_ns.store(now_ns, Ordering::Relaxed);
        if let Some(cores) = &self.cores {
            cores.polled(0, now_ns);
        }
    }
}
