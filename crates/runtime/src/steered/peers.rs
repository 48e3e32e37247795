//! What the workers of a steered system share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;
use headway_net::datapath::Rx;
use headway_net::pool::SlotId;

use crate::rx_waker::RxWaker;
use crate::sync::Padded;

/// Receive queues, shared wait queues, and who may have to be woken.
pub(super) struct Peers<R> {
    rx_wakers: Box<[RxWaker<R>]>,
    shared: Box<[Shared]>,
    /// Workers that have not yet answered all they accepted.
    undrained: AtomicUsize,
}

/// A wait queue with its consumer and producer counters.
struct Shared {
    slots: ArrayQueue<SlotId>,
    taken: Padded<AtomicU64>,
    put: Padded<AtomicU64>,
}

impl Shared {
    fn new(capacity: usize) -> Self {
        Self {
            slots: ArrayQueue::new(capacity),
            taken: Padded(AtomicU64::new(0)),
            put: Padded(AtomicU64::new(0)),
        }
    }
}

impl<R: Rx> Peers<R> {
    /// So many wait queues; `shared_capacity`: as many requests as there can be, in each.
    pub(super) fn new(queues: &[Arc<R>], shared: usize, shared_capacity: usize) -> Self {
        Self {
            rx_wakers: queues.iter().cloned().map(RxWaker::new).collect(),
            shared: (0..shared).map(|_| Shared::new(shared_capacity)).collect(),
            undrained: AtomicUsize::new(queues.len()),
        }
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.rx_wakers.len()
    }

    #[inline]
    pub(super) fn rx_waker(&self, worker: usize) -> &RxWaker<R> {
        &self.rx_wakers[worker]
    }

    #[inline]
    pub(super) fn rx(&self, worker: usize) -> &R {
        self.rx_wakers[worker].rx()
    }

    /// Wakes one worker that sleeps, for it to look what there is to steal.
    pub(super) fn wake_one(&self) {
        let _ = self.rx_wakers.iter().any(RxWaker::wake_announced);
    }

    pub(super) fn wake_all(&self) {
        self.rx_wakers.iter().for_each(RxWaker::wake);
    }

    pub(super) fn all_asleep_but(&self, me: usize) -> bool {
        let others = self.rx_wakers.iter().enumerate();
        others
            .filter(|(worker, _)| *worker != me)
            .all(|(_, rx_waker)| rx_waker.is_asleep())
    }

    /// One more worker has answered all it accepted; whether it is the last.
    pub(super) fn drained(&self) -> bool {
        self.undrained.fetch_sub(1, Ordering::AcqRel) == 1
    }

    pub(super) fn push_shared(&self, queue: usize, slot: SlotId) {
        let shared = &self.shared[queue];
        shared
            .slots
            .push(slot)
            .expect("a shared queue has room for all requests there are");
        shared.put.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn pop_shared(&self, queue: usize) -> Option<SlotId> {
        let shared = &self.shared[queue];
        let slot = shared.slots.pop()?;
        shared.taken.fetch_add(1, Ordering::Relaxed);
        Some(slot)
    }

    pub(super) fn shared_counters(&self, queue: usize) -> (u64, u64) {
        let shared = &self.shared[queue];
        (
            shared.taken.load(Ordering::Relaxed),
            shared.put.load(Ordering::Relaxed),
        )
    }
}
