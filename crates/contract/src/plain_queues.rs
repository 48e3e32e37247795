//! The queues of a server without time: what a `Local` sees, in the plainest form.

use headway_policy::server::role::{Backlog, Queues, Steal};
use headway_policy::{BitSet, ClassId, JobId, WorkerId};
use std::collections::VecDeque;

/// All workers' queues, seen by one of them. Sized at the start: pushing never allocates.
pub struct PlainQueues {
    own: Vec<VecDeque<JobId>>,
    shared: Vec<VecDeque<JobId>>,
    /// Popped and pushed.
    counters: Vec<(u64, u64)>,
    short_ns: Vec<u64>,
    longs: Vec<BitSet>,
    /// The classes that each worker refuses first, by what it told.
    pub sheds_first: Vec<BitSet>,
    /// The monitor's last order.
    pub congested: u64,
    /// The worker that looks.
    pub me: usize,
    /// The worker beside it.
    pub sibling: Option<WorkerId>,
}

impl PlainQueues {
    /// With one shared queue.
    #[must_use]
    pub fn new(workers: usize, capacity: usize) -> Self {
        Self::with_shared(workers, 1, capacity)
    }

    /// With `shared` shared queues.
    #[must_use]
    pub fn with_shared(workers: usize, shared: usize, capacity: usize) -> Self {
        Self {
            own: (0..workers)
                .map(|_| VecDeque::with_capacity(capacity))
                .collect(),
            shared: (0..shared)
                .map(|_| VecDeque::with_capacity(capacity))
                .collect(),
            counters: vec![(0, 0); shared],
            short_ns: vec![0; workers],
            longs: vec![BitSet::EMPTY; workers],
            sheds_first: vec![BitSet::EMPTY; workers],
            congested: 0,
            me: 0,
            sibling: None,
        }
    }

    /// Puts a request at the tail of a worker's queue.
    pub fn deliver(&mut self, worker: WorkerId, job: JobId) {
        self.own[worker.index()].push_back(job);
    }

    /// Requests in all shared queues.
    #[must_use]
    pub fn shared_len(&self) -> usize {
        self.shared.iter().map(VecDeque::len).sum()
    }
}

impl Backlog for PlainQueues {
    fn workers(&self) -> usize {
        self.own.len()
    }

    fn len(&self, worker: WorkerId) -> usize {
        self.own[worker.index()].len()
    }

    fn shared_counters(&self, queue: usize) -> (u64, u64) {
        self.counters[queue]
    }

    fn congested(&self) -> u64 {
        self.congested
    }

    fn short_ns(&self, worker: WorkerId) -> u64 {
        self.short_ns[worker.index()]
    }

    fn is_long(&self, worker: WorkerId, class: ClassId) -> bool {
        self.longs[worker.index()].contains(class.index())
    }
}

impl Queues for PlainQueues {
    fn me(&self) -> WorkerId {
        WorkerId(self.me as u16)
    }

    fn sibling(&self) -> Option<WorkerId> {
        self.sibling
    }

    fn pop(&mut self) -> Option<JobId> {
        self.own[self.me].pop_front()
    }

    fn push(&mut self, job: JobId) {
        self.own[self.me].push_back(job);
    }

    fn try_steal(&mut self, victim: WorkerId, max: usize) -> Steal {
        let count = max.min(self.len(victim));
        for _ in 0..count {
            let job = self.own[victim.index()]
                .pop_front()
                .expect("it was counted");
            self.push(job);
        }
        if count == 0 {
            Steal::Empty
        } else {
            Steal::Batch(count)
        }
    }

    fn pop_shared(&mut self, queue: usize) -> Option<JobId> {
        let job = self.shared[queue].pop_front()?;
        self.counters[queue].0 += 1;
        Some(job)
    }

    fn push_shared(&mut self, queue: usize, job: JobId) -> bool {
        self.counters[queue].1 += 1;
        self.shared[queue].push_back(job);
        true
    }

    fn set_short_ns(&mut self, mean_ns: u64) {
        self.short_ns[self.me] = mean_ns;
    }

    fn set_longs(&mut self, longs: BitSet) {
        self.longs[self.me] = longs;
    }

    fn set_sheds_first(&mut self, classes: BitSet) {
        self.sheds_first[self.me] = classes;
    }
}
