//! What the workers of a steered system share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;
use headway_net::datapath::Rx;
use headway_net::pool::SlotId;

use crate::bell::Bell;
use crate::sync::Padded;

/// Receive queues, the shared wait queue, and who may have to be woken.
pub(super) struct Peers<R> {
    bells: Box<[Bell<R>]>,
    shared: ArrayQueue<SlotId>,
    taken: Padded<AtomicU64>,
    put: Padded<AtomicU64>,
    /// Workers that have not yet answered all they accepted.
    undrained: AtomicUsize,
}

impl<R: Rx> Peers<R> {
    /// `shared_capacity`: as many requests as there can be.
    pub(super) fn new(queues: &[Arc<R>], shared_capacity: usize) -> Self {
        Self {
            bells: queues.iter().cloned().map(Bell::new).collect(),
            shared: ArrayQueue::new(shared_capacity),
            taken: Padded(AtomicU64::new(0)),
            put: Padded(AtomicU64::new(0)),
            undrained: AtomicUsize::new(queues.len()),
        }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.bells.len()
    }

    #[inline]
    pub(super) fn bell(&self, worker: usize) -> &Bell<R> {
        &self.bells[worker]
    }

    #[inline]
    pub(super) fn rx(&self, worker: usize) -> &R {
        self.bells[worker].rx()
    }

    /// Wakes one worker that sleeps, for it to look what there is to steal.
    pub(super) fn wake_one(&self) {
        let _ = self.bells.iter().any(Bell::ring_announced);
    }

    pub(super) fn wake_all(&self) {
        self.bells.iter().for_each(Bell::ring);
    }

    pub(super) fn all_asleep_but(&self, me: usize) -> bool {
        let others = self.bells.iter().enumerate();
        others
            .filter(|(worker, _)| *worker != me)
            .all(|(_, bell)| bell.is_asleep())
    }

    /// One more worker has answered all it accepted; whether it is the last.
    pub(super) fn drained(&self) -> bool {
        self.undrained.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(super) fn push_shared(&self, slot: SlotId) {
        self.shared
            .push(slot)
            .expect("the shared queue has room for all requests there are");
        self.put.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn pop_shared(&self) -> Option<SlotId> {
        let slot = self.shared.pop()?;
        self.taken.fetch_add(1, Ordering::Relaxed);
        Some(slot)
    }

    pub(super) fn shared_counters(&self) -> (u64, u64) {
        (
            self.taken.load(Ordering::Relaxed),
            self.put.load(Ordering::Relaxed),
        )
    }
}
