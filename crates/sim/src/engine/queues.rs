//! The workers' queues: what rings are to the live server.

use headway_policy::role::{Queues, Steal};
use headway_policy::{JobId, WorkerId};
use std::collections::VecDeque;

/// All queues of a server.
pub(super) struct WorkerQueues {
    own: Vec<VecDeque<JobId>>,
    /// Requests ever taken from the head of each.
    taken: Vec<u64>,
    shared: VecDeque<JobId>,
    shared_popped: u64,
    shared_pushed: u64,
    /// Requests in all of them.
    waiting: usize,
}

impl WorkerQueues {
    pub(super) fn new(workers: usize) -> Self {
        Self {
            own: vec![VecDeque::new(); workers],
            taken: vec![0; workers],
            shared: VecDeque::new(),
            shared_popped: 0,
            shared_pushed: 0,
            waiting: 0,
        }
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
        self.taken[worker]
    }

    pub(super) fn shared_taken(&self) -> u64 {
        self.shared_popped
    }

    #[inline]
    pub(super) fn shared_len(&self) -> usize {
        self.shared.len()
    }

    pub(super) fn push_shared(&mut self, job: JobId) {
        self.shared.push_back(job);
        self.shared_pushed += 1;
        self.waiting += 1;
    }

    /// As one worker sees them.
    #[inline]
    pub(super) fn seen_by(&mut self, worker: usize) -> View<'_> {
        View {
            queues: self,
            me: worker,
        }
    }
}

/// The queues through one worker's eyes.
pub(super) struct View<'a> {
    queues: &'a mut WorkerQueues,
    me: usize,
}

impl Queues for View<'_> {
    fn me(&self) -> WorkerId {
        WorkerId(self.me as u16)
    }

    fn workers(&self) -> usize {
        self.queues.own.len()
    }

    #[inline]
    fn pop(&mut self) -> Option<JobId> {
        let job = self.queues.own[self.me].pop_front()?;
        self.queues.taken[self.me] += 1;
        self.queues.waiting -= 1;
        Some(job)
    }

    fn push(&mut self, job: JobId) {
        self.queues.push(self.me(), job);
    }

    #[inline]
    fn len(&self, worker: WorkerId) -> usize {
        self.queues.own[worker.index()].len()
    }

    fn try_steal(&mut self, victim: WorkerId, max: usize) -> Steal {
        let count = max.min(self.queues.own[victim.index()].len());
        self.queues.taken[victim.index()] += count as u64;
        for _ in 0..count {
            let job = self.queues.own[victim.index()].pop_front();
            self.queues.own[self.me].extend(job);
        }
        if count == 0 {
            Steal::Empty
        } else {
            Steal::Batch(count)
        }
    }

    fn pop_shared(&mut self) -> Option<JobId> {
        let job = self.queues.shared.pop_front()?;
        self.queues.shared_popped += 1;
        self.queues.waiting -= 1;
        Some(job)
    }

    fn push_shared(&mut self, job: JobId) {
        self.queues.push_shared(job);
    }

    fn shared_counters(&self) -> (u64, u64) {
        (self.queues.shared_popped, self.queues.shared_pushed)
    }
}
