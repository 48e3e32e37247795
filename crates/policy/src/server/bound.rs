//! Interrupted requests that may only go on where they were interrupted.
//!
//! A handler that keeps thread-local state across a probe must not wake up on another thread, so unless a service
//! says that it may, what was interrupted waits for its own worker. Queues of the literature's systems are global; this is
//! how far a worker's own requests take part in them.

use crate::BitSet;
use crate::server::job::List;
use crate::server::{Job, Jobs, WorkerId};
use alloc::vec;
use alloc::vec::Vec;

/// A queue of interrupted requests per worker, first come first served, beside the ingress' discipline.
pub(crate) struct BoundQueues {
    queues: Vec<List>,
    /// Workers for whom something waits here.
    wanted: BitSet,
    /// Workers that were given something else since they last took up one of their own: what is interrupted makes way at least once.
    made_way: BitSet,
    waiting: usize,
}

impl BoundQueues {
    /// For so many workers; none where requests may go on anywhere.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            queues: vec![List::EMPTY; workers],
            wanted: BitSet::EMPTY,
            made_way: BitSet::EMPTY,
            waiting: 0,
        }
    }

    /// Whether interrupted requests are kept here at all.
    #[inline]
    pub(crate) fn applies(&self) -> bool {
        !self.queues.is_empty()
    }

    /// Requests waiting, of all workers.
    #[inline]
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether something waits for this worker.
    #[inline]
    pub(crate) fn wants(&self, worker: WorkerId) -> bool {
        self.wanted.contains(worker.index())
    }

    /// The request was interrupted on this worker.
    pub(crate) fn push(&mut self, jobs: &mut Jobs, worker: WorkerId, job: Job) {
        self.queues[worker.index()].push_back(jobs, job);
        self.wanted.insert(worker.index());
        self.waiting += 1;
    }

    /// The worker was given something else: its own requests are next.
    #[inline]
    pub(crate) fn made_way(&mut self, worker: WorkerId) {
        self.made_way.insert(worker.index());
    }

    /// Of the workers with room the one whose next request was queued first; with `before`, only if it goes before what the
    /// discipline would offer: where that has a place in the order of admission, by that place; else if the worker
    /// has made way.
    pub(crate) fn next(
        &self,
        jobs: &Jobs,
        has_room: impl Fn(WorkerId) -> bool,
        before: Option<Option<u64>>,
    ) -> Option<WorkerId> {
        let first = |&worker: &usize| self.queues[worker].front_sequence(jobs);
        let candidates = self.wanted.iter().filter(|&worker: &usize| match before {
            None => true,
            Some(Some(sequence)) => first(&worker) < sequence,
            Some(None) => self.made_way.contains(worker),
        });
        candidates
            .filter(|&worker| has_room(WorkerId(worker as u16)))
            .min_by_key(first)
            .map(|worker| WorkerId(worker as u16))
    }

    /// Takes the next request of this worker out.
    pub(crate) fn pop<'a>(&mut self, jobs: &'a Jobs, worker: WorkerId) -> Option<&'a Job> {
        let queue = &mut self.queues[worker.index()];
        let job = queue.pop_front(jobs)?;
        self.waiting -= 1;
        self.made_way.remove(worker.index());
        if queue.len() == 0 {
            self.wanted.remove(worker.index());
        }
        Some(job)
    }
}
