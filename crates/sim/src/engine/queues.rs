//! The workers' queues: the counterpart of the live server's rings.

use headway_policy::server::role::{Backlog, Queues, Steal};
use headway_policy::server::systems::SharedQueues;
use headway_policy::{BitSet, ClassId, JobId, WorkerId};
use std::collections::VecDeque;

/// All queues of a server.
pub(super) struct WorkerQueues {
    own: Vec<Own>,
    shared: Vec<SharedJobs>,
    /// Capacity of each shared queue, in requests.
    shared_room: usize,
    /// Requests in all queues together.
    waiting: usize,
    /// The value of [`Backlog::congested`].
    pub(super) congested: u64,
    /// The value of [`Backlog::short_ns`], by worker.
    short_ns: Vec<u64>,
    /// The classes of [`Backlog::is_long`], by worker.
    longs: Vec<BitSet>,
    /// The value of [`Queues::sibling`], by worker.
    siblings: Vec<Option<WorkerId>>,
}

/// A worker's own queue. Its head is a field of its own: under a dispatcher that hands out one request at a time,
/// the queue never touches the list.
#[derive(Clone, Default)]
struct Own {
    head: Option<JobId>,
    /// The requests after the head; empty without a head.
    rest: VecDeque<JobId>,
    /// Requests ever taken from the head.
    taken: u64,
}

impl Own {
    #[inline]
    fn len(&self) -> usize {
        usize::from(self.head.is_some()) + self.rest.len()
    }

    #[inline]
    fn push_back(&mut self, job: JobId) {
        match self.head {
            None => self.head = Some(job),
            Some(_) => self.rest.push_back(job),
        }
    }

    #[inline]
    fn pop_front(&mut self) -> Option<JobId> {
        let job = self.head?;
        self.head = self.rest.pop_front();
        self.taken += 1;
        Some(job)
    }
}

#[derive(Clone, Default)]
struct SharedJobs {
    jobs: VecDeque<JobId>,
    popped: u64,
    pushed: u64,
}

impl WorkerQueues {
    pub(super) fn new(workers: usize, shared: SharedQueues) -> Self {
        Self {
            own: vec![Own::default(); workers],
            shared: vec![SharedJobs::default(); shared.count],
            shared_room: shared.room,
            waiting: 0,
            congested: 0,
            short_ns: vec![0; workers],
            longs: vec![BitSet::EMPTY; workers],
            siblings: vec![None; workers],
        }
    }

    pub(super) fn set_sibling(&mut self, worker: WorkerId, sibling: Option<WorkerId>) {
        self.siblings[worker.index()] = sibling;
    }

    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    #[inline]
    pub(super) fn len(&self, worker: usize) -> usize {
        self.own[worker].len()
    }

    #[inline]
    pub(super) fn push(&mut self, worker: WorkerId, job: JobId) {
        self.own[worker.index()].push_back(job);
        self.waiting += 1;
    }

    pub(super) fn taken(&self, worker: usize) -> u64 {
        self.own[worker].taken
    }

    /// Requests ever taken from the shared queues.
    pub(super) fn shared_taken(&self) -> u64 {
        self.shared.iter().map(|shared| shared.popped).sum()
    }

    /// Requests in the shared queues.
    #[inline]
    pub(super) fn shared_len(&self) -> usize {
        self.shared.iter().map(|shared| shared.jobs.len()).sum()
    }

    /// Puts a request that neither a dispatcher nor steering places into the shared queue.
    pub(super) fn push_unplaced(&mut self, job: JobId) {
        let fits = self.push_shared(0, job);
        debug_assert!(fits, "the queue of all that arrives has room for it");
    }

    /// Returns `false` when the queue is full.
    pub(super) fn push_shared(&mut self, queue: usize, job: JobId) -> bool {
        let shared = &mut self.shared[queue];
        if shared.jobs.len() >= self.shared_room {
            return false;
        }
        shared.jobs.push_back(job);
        shared.pushed += 1;
        self.waiting += 1;
        true
    }

    /// The view of one worker.
    #[inline]
    pub(super) fn seen_by(&mut self, worker: usize) -> SimQueues<'_> {
        SimQueues {
            queues: self,
            me: worker,
        }
    }
}

/// One worker's view of the queues.
pub(super) struct SimQueues<'a> {
    queues: &'a mut WorkerQueues,
    me: usize,
}

impl Backlog for SimQueues<'_> {
    fn workers(&self) -> usize {
        self.queues.own.len()
    }

    #[inline]
    fn len(&self, worker: WorkerId) -> usize {
        self.queues.own[worker.index()].len()
    }

    fn shared_counters(&self, queue: usize) -> (u64, u64) {
        let shared = &self.queues.shared[queue];
        (shared.popped, shared.pushed)
    }

    #[inline]
    fn congested(&self) -> u64 {
        self.queues.congested
    }

    #[inline]
    fn short_ns(&self, worker: WorkerId) -> u64 {
        self.queues.short_ns[worker.index()]
    }

    #[inline]
    fn is_long(&self, worker: WorkerId, class: ClassId) -> bool {
        self.queues.longs[worker.index()].contains(class.index())
    }
}

impl Queues for SimQueues<'_> {
    fn me(&self) -> WorkerId {
        WorkerId(self.me as u16)
    }

    fn sibling(&self) -> Option<WorkerId> {
        self.queues.siblings[self.me]
    }

    #[inline]
    fn pop(&mut self) -> Option<JobId> {
        let job = self.queues.own[self.me].pop_front()?;
        self.queues.waiting -= 1;
        Some(job)
    }

    fn push(&mut self, job: JobId) {
        self.queues.push(self.me(), job);
    }

    fn try_steal(&mut self, victim: WorkerId, max: usize) -> Steal {
        let count = max.min(self.queues.own[victim.index()].len());
        for _ in 0..count {
            if let Some(job) = self.queues.own[victim.index()].pop_front() {
                self.queues.own[self.me].push_back(job);
            }
        }
        if count == 0 {
            Steal::Empty
        } else {
            Steal::Batch(count)
        }
    }

    fn pop_shared(&mut self, queue: usize) -> Option<JobId> {
        let shared = &mut self.queues.shared[queue];
        let job = shared.jobs.pop_front()?;
        shared.popped += 1;
        self.queues.waiting -= 1;
        Some(job)
    }

    fn push_shared(&mut self, queue: usize, job: JobId) -> bool {
        self.queues.push_shared(queue, job)
    }

    #[inline]
    fn set_short_ns(&mut self, mean_ns: u64) {
        self.queues.short_ns[self.me] = mean_ns;
    }

    fn set_longs(&mut self, longs: BitSet) {
        self.queues.longs[self.me] = longs;
    }

    /// Here are buffers for all requests.
    fn set_sheds_first(&mut self, _classes: BitSet) {}
}
