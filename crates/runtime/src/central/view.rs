//! The requests that a fiber worker holds and does not run: those on its link with the dispatcher, and those it keeps.

use std::cell::Cell;
use std::collections::VecDeque;

use headway_net::pool::SlotId;
use headway_policy::server::role::{Backlog, Queues, Steal};
use headway_policy::{BitSet, ClassId, JobId, WorkerId};

use super::worker_link::WorkerEnd;
use crate::queue::links::NextHint;
use crate::queue::token::RequestWord;
use crate::request::executor::Executor;

/// A worker's own queue: the requests that came over its link, and those it keeps.
pub(super) struct CentralQueues {
    pub(super) me: WorkerId,
    pub(super) link: WorkerEnd,
    own: VecDeque<JobId>,
    /// The request that comes next over the link, where the dispatcher named it as it interrupted the last one.
    pub(super) hint: Option<NextHint>,
    /// Whether the last request came by a hint: the ring's line is then still in the dispatcher's cache.
    pub(super) was_hinted: bool,
    /// How often the local policy let the last request go on at the end of a slice.
    renewals: Cell<u64>,
    /// The requests that came over the link and do not run, by job.
    requests: Box<[Option<RequestWord>]>,
}

impl CentralQueues {
    pub(super) fn new(me: WorkerId, link: WorkerEnd, slots: usize) -> Self {
        Self {
            me,
            link,
            own: VecDeque::with_capacity(slots),
            hint: None,
            was_hinted: false,
            renewals: Cell::new(0),
            requests: (0..slots).map(|_| None).collect(),
        }
    }

    /// The local policy let the request that runs go on.
    #[inline]
    pub(super) fn renewed(&self) {
        self.renewals.set(self.renewals.get() + 1);
    }

    /// How often it did so, since this was asked last.
    #[inline]
    pub(super) fn take_renewals(&self) -> u64 {
        self.renewals.take()
    }

    #[inline]
    fn receive(&mut self) -> Option<JobId> {
        let hinted = self
            .hint
            .take()
            .and_then(|hint| self.link.jobs.receive_hinted(hint));
        self.was_hinted = hinted.is_some();
        let request = hinted.or_else(|| self.link.jobs.receive())?;
        let job = request.job();
        self.requests[job.index()] = Some(request);
        Some(job)
    }

    /// The request that is to run now.
    #[inline]
    pub(super) fn take(&mut self, job: JobId) -> RequestWord {
        let request = self.requests[job.index()].take();
        request.expect("a policy runs what it was given, once")
    }

    /// A suspended request stays here.
    pub(super) fn keep(&mut self, slot: SlotId) {
        let request = RequestWord::suspended(slot);
        let job = request.job();
        self.requests[job.index()] = Some(request);
    }

    #[inline]
    pub(super) fn prefetch_next(&self, executor: &Executor) {
        if let Some(next) = self.link.jobs.next() {
            executor.prefetch(next);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.link.jobs.is_empty()
    }

    /// Counts the requests that will not run and that nobody else counts.
    pub(super) fn give_up(&mut self) -> usize {
        self.own.len() + self.link.end()
    }
}

impl Backlog for CentralQueues {
    fn workers(&self) -> usize {
        1
    }

    /// Of the own queue only; more than one on the link counts as one.
    #[inline]
    fn len(&self, _worker: WorkerId) -> usize {
        self.own.len() + usize::from(!self.link.jobs.is_empty())
    }

    fn shared_counters(&self, _queue: usize) -> (u64, u64) {
        (0, 0)
    }

    fn congested(&self) -> u64 {
        0
    }

    fn short_ns(&self, _worker: WorkerId) -> u64 {
        0
    }

    fn is_long(&self, _worker: WorkerId, _class: ClassId) -> bool {
        false
    }
}

impl Queues for CentralQueues {
    #[inline]
    fn me(&self) -> WorkerId {
        self.me
    }

    /// Nobody steals where a dispatcher hands out.
    fn sibling(&self) -> Option<WorkerId> {
        None
    }

    #[inline]
    fn pop(&mut self) -> Option<JobId> {
        self.own.pop_front().or_else(|| self.receive())
    }

    fn push(&mut self, job: JobId) {
        // Requests that came meanwhile were here before.
        while let Some(came) = self.receive() {
            self.own.push_back(came);
        }
        self.own.push_back(job);
    }

    fn try_steal(&mut self, _victim: WorkerId, _max: usize) -> Steal {
        Steal::Empty
    }

    fn pop_shared(&mut self, _queue: usize) -> Option<JobId> {
        None
    }

    fn push_shared(&mut self, _queue: usize, _job: JobId) -> bool {
        unreachable!("workers of a dispatcher share no queue")
    }

    fn set_short_ns(&mut self, _mean_ns: u64) {
        unreachable!("workers of a dispatcher tell the others nothing")
    }

    fn set_longs(&mut self, _longs: BitSet) {
        unreachable!("workers of a dispatcher tell the others nothing")
    }

    fn set_sheds_first(&mut self, _classes: BitSet) {
        unreachable!("the dispatcher sheds")
    }
}
