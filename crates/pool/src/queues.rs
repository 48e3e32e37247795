//! The queues between the roles of a policy. One lock owns them all, so they are lists, as in the simulator.

use std::collections::VecDeque;

use headway_policy::server::role::{Backlog, Queues, Steal};
use headway_policy::server::systems::SharedQueues;
use headway_policy::{BitSet, ClassId, JobId, WorkerId};

/// The queues of a pool's workers and those that the workers share.
pub(crate) struct PoolQueues {
    own: Vec<VecDeque<JobId>>,
    nonempty: BitSet,
    shared: Vec<CommonQueue>,
    shared_room: usize,
    waiting: usize,
    /// The value of [`Backlog::congested`].
    pub(crate) congested: u64,
    short_ns: Vec<u64>,
    longs: Vec<BitSet>,
}

#[derive(Clone, Default)]
struct CommonQueue {
    jobs: VecDeque<JobId>,
    popped: u64,
    pushed: u64,
}

impl PoolQueues {
    pub(crate) fn new(workers: usize, shared: SharedQueues) -> Self {
        Self {
            own: vec![VecDeque::new(); workers],
            nonempty: BitSet::EMPTY,
            shared: vec![CommonQueue::default(); shared.count],
            shared_room: shared.room,
            waiting: 0,
            congested: 0,
            short_ns: vec![0; workers],
            longs: vec![BitSet::EMPTY; workers],
        }
    }

    /// Workers whose own queue has something.
    #[inline]
    pub(crate) fn nonempty(&self) -> &BitSet {
        &self.nonempty
    }

    /// Tokens in all queues.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    #[inline]
    pub(crate) fn push(&mut self, worker: usize, job: JobId) {
        self.own[worker].push_back(job);
        self.nonempty.insert(worker);
        self.waiting += 1;
    }

    /// Puts a token that nobody places into the first shared queue. `false`: it is full.
    pub(crate) fn push_to_all(&mut self, job: JobId) -> bool {
        self.push_shared(0, job)
    }

    #[inline]
    fn pop(&mut self, worker: usize) -> Option<JobId> {
        let queue = &mut self.own[worker];
        let job = queue.pop_front()?;
        if queue.is_empty() {
            self.nonempty.remove(worker);
        }
        self.waiting -= 1;
        Some(job)
    }

    fn push_shared(&mut self, queue: usize, job: JobId) -> bool {
        let shared = &mut self.shared[queue];
        if shared.jobs.len() >= self.shared_room {
            return false;
        }
        shared.jobs.push_back(job);
        shared.pushed += 1;
        self.waiting += 1;
        true
    }

    /// As one worker sees them.
    #[inline]
    pub(crate) fn seen_by(&mut self, worker: usize) -> PoolQueuesView<'_> {
        PoolQueuesView {
            queues: self,
            me: worker,
        }
    }
}

/// One worker's view of the queues.
pub(crate) struct PoolQueuesView<'a> {
    queues: &'a mut PoolQueues,
    me: usize,
}

impl Backlog for PoolQueuesView<'_> {
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

impl Queues for PoolQueuesView<'_> {
    fn me(&self) -> WorkerId {
        WorkerId(self.me as u16)
    }

    /// Workers of a pool are not pinned, so no two of them share a core for long.
    fn sibling(&self) -> Option<WorkerId> {
        None
    }

    #[inline]
    fn pop(&mut self) -> Option<JobId> {
        self.queues.pop(self.me)
    }

    fn push(&mut self, job: JobId) {
        self.queues.push(self.me, job);
    }

    fn try_steal(&mut self, victim: WorkerId, max: usize) -> Steal {
        let mut stolen = 0;
        while stolen < max
            && let Some(job) = self.queues.pop(victim.index())
        {
            self.queues.push(self.me, job);
            stolen += 1;
        }
        if stolen == 0 {
            Steal::Empty
        } else {
            Steal::Batch(stolen)
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

    /// A pool has no buffers that could run out.
    fn set_sheds_first(&mut self, _classes: BitSet) {}
}
