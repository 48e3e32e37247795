//! What the workers of a steered system share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;
use headway_net::datapath::Rx;
use headway_net::pool::{FreeList, SlotId};
use headway_policy::server::role::Backlog;
use headway_policy::server::systems::{KEPT_FROM_LONGS, SharedQueues};
use headway_policy::{BitSet, ClassId, WorkerId};

use crate::engine::parts::QueueDepths;
use crate::queue::look::Looks;
use crate::queue::run_queue::RequestThief;
use crate::queue::rx_waker::RxWaker;
use crate::queue::shared_queue::SharedQueue;
use crate::queue::token::RequestWord;
use crate::request::intake::Buffers;
use crate::stats::tally::WaitQueueStats;
use headway_sync::Padded;
use headway_sync::park::{Parker, announce};

/// What a worker tells the others, and the monitor. The worker writes; words that are read one after the other need not be of one time.
#[derive(Default)]
struct PeerFindings {
    /// The mean service time of its shorts, ns.
    short_ns: AtomicU64,
    /// The classes that it finds long, a bit each.
    longs: [AtomicU64; BitSet::CAPACITY / 64],
}

/// Receive queues, run queues, shared queues, and what workers tell each other.
pub(super) struct Peers {
    rx_wakers: Box<[RxWaker]>,
    /// Workers between the beginning and the end of a sleep at their receive queues.
    sleeping: Padded<AtomicUsize>,
    /// The run queue of each worker.
    thieves: Box<[RequestThief]>,
    shared: Box<[SharedQueue<RequestWord>]>,
    /// The shared queues that are congested, a bit each.
    congested: Padded<AtomicU64>,
    looks: Looks,
    /// What each worker found out about its requests.
    findings: Box<[Padded<PeerFindings>]>,
    /// Free buffers beyond a worker's own part of the pool: requests change workers, and their buffers with them.
    surplus: ArrayQueue<SlotId>,
    /// The buffers of one worker's part of the pool.
    part: usize,
    /// Buffers that stand for places of interrupted requests: each that is interrupted has one given to its worker, for its own. None where nothing is
    /// interrupted, or the pool has no more.
    rooms: Option<ArrayQueue<SlotId>>,
    /// Workers that have not yet answered all they accepted.
    undrained: AtomicUsize,
    /// Where the monitor's thread sleeps while all workers do.
    monitor: Parker,
}

impl Peers {
    /// The workers divide the free `buffers` among them, and share the rooms of interrupted requests.
    pub(super) fn new(
        queues: &[Arc<dyn Rx>],
        thieves: Vec<RequestThief>,
        shared: SharedQueues,
        buffers: &mut Buffers,
    ) -> Self {
        let workers = thieves.len();
        let (slots, requests) = (buffers.free.len(), buffers.pool.len());
        let shared = (0..shared.count).map(|_| SharedQueue::new(shared.room.min(requests)));
        let rooms = buffers.rooms.len();
        let rooms = (rooms > 0).then(|| ArrayQueue::new(rooms));
        while let Some(slot) = buffers.rooms.take() {
            let full = rooms.as_ref().is_none_or(|rooms| rooms.push(slot).is_err());
            assert!(!full, "there is a place for each");
        }
        Self {
            rx_wakers: queues.iter().cloned().map(RxWaker::new).collect(),
            sleeping: Padded::default(),
            shared: shared.collect(),
            congested: Padded::default(),
            looks: Looks::new(workers, 0),
            findings: thieves.iter().map(|_| Padded::default()).collect(),
            surplus: ArrayQueue::new(slots),
            part: slots / workers,
            rooms,
            undrained: AtomicUsize::new(workers),
            monitor: Parker::new(),
            thieves: thieves.into(),
        }
    }

    /// The same, where a busy worker asks what waits at a receive queue once in `look_ns` at most; 0 for whenever it wants to know.
    pub(super) fn looking_every(mut self, look_ns: u64) -> Self {
        self.looks = Looks::new(self.thieves.len(), look_ns);
        self
    }

    #[inline]
    pub(super) fn rx_waker(&self, worker: usize) -> &RxWaker {
        &self.rx_wakers[worker]
    }

    #[inline]
    pub(super) fn rx(&self, worker: usize) -> &dyn Rx {
        self.rx_wakers[worker].rx()
    }

    /// As [`len`](Backlog::len), for whoever asks while a request runs: what waits in the receive queue is what the last look found, unless the next is
    /// due.
    #[inline]
    pub(super) fn glance(&self, now_ns: u64, worker: WorkerId) -> usize {
        let worker = worker.index();
        let waiting = self
            .looks
            .found(now_ns, worker, || self.rx(worker).backlog_hint());
        self.thieves[worker].len() + waiting
    }

    /// A receive queue was polled; `emptied`: nothing was left in it.
    #[inline]
    pub(super) fn polled(&self, now_ns: u64, worker: usize, emptied: bool) {
        self.looks.polled(now_ns, worker, emptied);
    }

    #[inline]
    pub(super) fn thief(&self, worker: usize) -> &RequestThief {
        &self.thieves[worker]
    }

    /// A worker sleeps at its receive queue, as by [`RxWaker::sleep_unless`].
    pub(super) fn sleep_unless(
        &self,
        worker: usize,
        timeout_ns: u64,
        ready: impl FnOnce() -> bool,
    ) {
        self.sleeping.fetch_add(1, Ordering::Relaxed);
        self.rx_wakers[worker].sleep_unless(timeout_ns, ready);
        self.sleeping.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes one worker that sleeps, for it to look what there is to steal. While none sleeps it costs a load, however many workers there are.
    #[inline]
    pub(super) fn wake_one(&self) {
        if self.sleeping.load(Ordering::Relaxed) > 0 {
            self.wake_first();
        }
    }

    #[cold]
    fn wake_first(&self) {
        let _ = self.rx_wakers.iter().any(RxWaker::wake_announced);
    }

    pub(super) fn wake_all(&self) {
        self.rx_wakers.iter().for_each(RxWaker::wake);
        self.monitor.wake();
    }

    /// A worker that slept is awake: somebody must watch what it runs.
    pub(super) fn wake_monitor(&self) {
        announce();
        self.monitor.wake();
    }

    /// The monitor's thread sleeps until a worker is awake, unless `ready` says that there is something to do.
    pub(super) fn sleep_beside_workers(&self, ready: impl FnOnce() -> bool) {
        self.monitor.park_unless(|| !self.all_asleep() || ready());
    }

    pub(super) fn all_asleep(&self) -> bool {
        self.rx_wakers.iter().all(RxWaker::is_asleep)
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

    /// Puts a request at the tail of a shared queue; gives it back where the queue is full.
    #[inline]
    pub(super) fn push_shared(&self, queue: usize, request: RequestWord) -> Option<RequestWord> {
        self.shared[queue].push(request)
    }

    #[inline]
    pub(super) fn pop_shared(&self, queue: usize) -> Option<RequestWord> {
        self.shared[queue].pop()
    }

    /// Whether nothing waits in the shared queues.
    pub(super) fn shared_are_empty(&self) -> bool {
        self.shared.iter().all(SharedQueue::is_empty)
    }

    /// Takes everything out of the shared queues, since the server ends.
    pub(super) fn give_up_shared(&self) -> usize {
        let queues = 0..self.shared.len();
        queues
            .map(|queue| std::iter::from_fn(|| self.pop_shared(queue)).count())
            .sum()
    }

    /// What waits in the queues, roughly: they are read one after the other.
    pub(super) fn depths(&self) -> QueueDepths {
        let workers = (0..self.thieves.len()).map(|worker| self.len(WorkerId(worker as u16)));
        let congested = self.congested();
        let wait_queues = (0..self.shared.len()).map(|queue| WaitQueueStats {
            waiting: self.shared[queue].len(),
            congested: congested >> queue & 1 == 1,
        });
        QueueDepths {
            workers: workers.collect(),
            wait_queues: wait_queues.collect(),
        }
    }

    pub(super) fn set_congested(&self, queues: u64) {
        self.congested.store(queues, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn set_short_ns(&self, worker: usize, mean_ns: u64) {
        self.findings[worker]
            .short_ns
            .store(mean_ns, Ordering::Relaxed);
    }

    #[cold]
    pub(super) fn set_longs(&self, worker: usize, longs: &BitSet) {
        for (word, longs) in self.findings[worker].longs.iter().zip(longs.words()) {
            word.store(longs, Ordering::Relaxed);
        }
    }

    /// A buffer is free again: it stays with this worker, unless that has more than its part.
    #[inline]
    pub(super) fn release(&self, slot: SlotId, free: &mut FreeList) {
        free.give(slot);
        self.share_surplus(free);
    }

    /// A request was interrupted for the first time. Its handler borrows its buffer, so that one stays with it; the worker has another for it, as long as there
    /// are rooms.
    #[inline]
    pub(super) fn give_back(&self, free: &mut FreeList) {
        if let Some(slot) = self.rooms.as_ref().and_then(ArrayQueue::pop) {
            free.give(slot);
        }
    }

    /// The buffer of a request that had been interrupted is free again: it is another's room. All rooms may be there, where the request found none.
    #[inline]
    pub(super) fn release_room(&self, slot: SlotId, free: &mut FreeList) {
        let left = match &self.rooms {
            Some(rooms) => rooms.push(slot),
            None => Err(slot),
        };
        if let Err(slot) = left {
            self.release(slot, free);
        }
    }

    /// Takes all rooms, since the server ends.
    pub(super) fn take_rooms(&self, free: &mut FreeList) {
        while let Some(slot) = self.rooms.as_ref().and_then(ArrayQueue::pop) {
            free.give(slot);
        }
    }

    /// Gives up what a worker has beyond its part. Called after each poll too: a worker to which nothing came would keep what it was
    /// [provided](Self::provide) with from others that have nothing to receive into.
    #[inline]
    pub(super) fn share_surplus(&self, free: &mut FreeList) {
        while free.len() > self.part
            && let Some(slot) = free.take()
        {
            if let Err(slot) = self.surplus.push(slot) {
                return free.give(slot);
            }
        }
    }

    /// The buffers that this worker may still fill. Others' are counted only where its own are few.
    #[inline]
    pub(super) fn free_for(&self, free: &FreeList) -> usize {
        let own = free.len();
        if self.is_short_of(own) {
            own + self.surplus.len()
        } else {
            own
        }
    }

    /// Whether so few free buffers are kept from the classes that are refused first.
    #[inline]
    pub(super) fn is_short_of(&self, free: usize) -> bool {
        free < self.part / KEPT_FROM_LONGS
    }

    /// Sees to it that a worker that wants to receive `wanted` requests has buffers for them, as far as there are any.
    #[inline]
    pub(super) fn provide(&self, wanted: usize, free: &mut FreeList) {
        while free.len() < wanted
            && let Some(slot) = self.surplus.pop()
        {
            free.give(slot);
        }
    }
}

impl Backlog for Peers {
    #[inline]
    fn workers(&self) -> usize {
        self.thieves.len()
    }

    #[inline]
    fn len(&self, worker: WorkerId) -> usize {
        let worker = worker.index();
        self.thieves[worker].len() + self.rx(worker).backlog_hint()
    }

    fn shared_counters(&self, queue: usize) -> (u64, u64) {
        self.shared[queue].counters()
    }

    #[inline]
    fn congested(&self) -> u64 {
        self.congested.load(Ordering::Relaxed)
    }

    #[inline]
    fn short_ns(&self, worker: WorkerId) -> u64 {
        let findings = &self.findings[worker.index()];
        findings.short_ns.load(Ordering::Relaxed)
    }

    #[inline]
    fn is_long(&self, worker: WorkerId, class: ClassId) -> bool {
        let (word, bit) = (class.index() / 64, class.index() % 64);
        let longs = &self.findings[worker.index()].longs;
        longs[word].load(Ordering::Relaxed) >> bit & 1 == 1
    }
}

/// What waits at the workers, for a thread that watches what they run.
pub(super) struct Glances<'a> {
    pub(super) peers: &'a Peers,
    pub(super) now_ns: u64,
}

impl Backlog for Glances<'_> {
    #[inline]
    fn workers(&self) -> usize {
        self.peers.workers()
    }

    #[inline]
    fn len(&self, worker: WorkerId) -> usize {
        self.peers.glance(self.now_ns, worker)
    }

    fn shared_counters(&self, queue: usize) -> (u64, u64) {
        self.peers.shared_counters(queue)
    }

    #[inline]
    fn congested(&self) -> u64 {
        self.peers.congested()
    }

    #[inline]
    fn short_ns(&self, worker: WorkerId) -> u64 {
        self.peers.short_ns(worker)
    }

    #[inline]
    fn is_long(&self, worker: WorkerId, class: ClassId) -> bool {
        self.peers.is_long(worker, class)
    }
}
