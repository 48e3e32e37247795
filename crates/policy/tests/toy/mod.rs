//! The queues of a server without time: what a `Local` sees, in the plainest form.
#![allow(dead_code, reason = "each test file uses its own part")]

use headway_policy::role::{Queues, Steal};
use headway_policy::{JobId, WorkerId};
use std::collections::VecDeque;

/// All workers' queues, seen by one of them. Sized at the start: pushing never allocates.
pub(crate) struct Toy {
    own: Vec<VecDeque<JobId>>,
    shared: VecDeque<JobId>,
    counters: (u64, u64),
    /// Who looks.
    pub(crate) me: usize,
}

impl Toy {
    pub(crate) fn new(workers: usize, capacity: usize) -> Self {
        Self {
            own: (0..workers)
                .map(|_| VecDeque::with_capacity(capacity))
                .collect(),
            shared: VecDeque::with_capacity(capacity),
            counters: (0, 0),
            me: 0,
        }
    }

    pub(crate) fn deliver(&mut self, worker: WorkerId, job: JobId) {
        self.own[worker.index()].push_back(job);
    }
}

impl Queues for Toy {
    fn me(&self) -> WorkerId {
        WorkerId(self.me as u16)
    }

    fn workers(&self) -> usize {
        self.own.len()
    }

    fn pop(&mut self) -> Option<JobId> {
        self.own[self.me].pop_front()
    }

    fn push(&mut self, job: JobId) {
        self.own[self.me].push_back(job);
    }

    fn len(&self, worker: WorkerId) -> usize {
        self.own[worker.index()].len()
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

    fn pop_shared(&mut self) -> Option<JobId> {
        self.counters.0 += 1;
        self.shared.pop_front()
    }

    fn push_shared(&mut self, job: JobId) {
        self.counters.1 += 1;
        self.shared.push_back(job);
    }

    fn shared_counters(&self) -> (u64, u64) {
        self.counters
    }
}
