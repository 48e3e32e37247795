//! The queues between the roles of a server, for an engine in which one owner has them all: lists, where the live server has rings.
//!
//! They are the engine's, not a policy's: the lists grow with the requests that wait.

use crate::server::role::{Backlog, Queues, Steal};
use crate::server::systems::SharedQueues;
use crate::server::{JobId, WorkerId};
use crate::{BitSet, ClassId};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// The workers' queues and those that the workers share.
#[derive(Debug)]
pub struct QueueLists {
    own: Vec<OwnList>,
    shared: Vec<SharedList>,
    /// Capacity of each shared queue, in requests.
    shared_room: usize,
    waiting: usize,
    congested: u64,
    /// The value of [`Backlog::short_ns`], by worker.
    short_ns: Vec<u64>,
    /// The classes of [`Backlog::is_long`], by worker.
    longs: Vec<BitSet>,
    /// The value of [`Queues::sibling`], by worker.
    siblings: Vec<Option<WorkerId>>,
}

/// A worker's own queue. Its head is a field of its own: under a dispatcher that hands out one request at a time,
/// the queue never touches the list.
#[derive(Clone, Default, Debug)]
struct OwnList {
    head: Option<JobId>,
    /// The requests after the head; empty without a head.
    rest: VecDeque<JobId>,
    taken: u64,
}

impl OwnList {
    #[inline]
    fn len(&self) -> usize {
        usize::from(self.head.is_some()) + self.rest.len()
    }

    #[inline]
    fn push(&mut self, job: JobId) {
        match self.head {
            None => self.head = Some(job),
            Some(_) => self.rest.push_back(job),
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<JobId> {
        let job = self.head?;
        self.head = self.rest.pop_front();
        self.taken += 1;
        Some(job)
    }
}

#[derive(Clone, Default, Debug)]
struct SharedList {
    jobs: VecDeque<JobId>,
    popped: u64,
    pushed: u64,
}

impl QueueLists {
    /// Empty queues of so many workers.
    #[must_use]
    pub fn new(workers: usize, shared: SharedQueues) -> Self {
        Self {
            own: vec![OwnList::default(); workers],
            shared: vec![SharedList::default(); shared.count],
            shared_room: shared.room,
            waiting: 0,
            congested: 0,
            short_ns: vec![0; workers],
            longs: vec![BitSet::EMPTY; workers],
            siblings: vec![None; workers],
        }
    }

    /// Sets the value of [`Queues::sibling`]; at first no worker has one.
    pub fn set_sibling(&mut self, worker: WorkerId, sibling: Option<WorkerId>) {
        self.siblings[worker.index()] = sibling;
    }

    /// Sets the value of [`Backlog::congested`].
    pub fn set_congested(&mut self, queues: u64) {
        self.congested = queues;
    }

    /// Requests in all queues together.
    #[inline]
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether a worker's own queue has something.
    #[inline]
    #[must_use]
    pub fn has(&self, worker: WorkerId) -> bool {
        self.own[worker.index()].head.is_some()
    }

    /// Requests in a worker's own queue.
    #[inline]
    #[must_use]
    pub fn len(&self, worker: WorkerId) -> usize {
        self.own[worker.index()].len()
    }

    /// Requests ever taken from the head of a worker's own queue.
    #[must_use]
    pub fn taken(&self, worker: WorkerId) -> u64 {
        self.own[worker.index()].taken
    }

    /// Requests in the shared queues.
    #[inline]
    #[must_use]
    pub fn shared_len(&self) -> usize {
        self.shared.iter().map(|shared| shared.jobs.len()).sum()
    }

    /// Requests ever taken from the shared queues.
    #[must_use]
    pub fn shared_taken(&self) -> u64 {
        self.shared.iter().map(|shared| shared.popped).sum()
    }

    /// Puts a request at the tail of a worker's own queue.
    #[inline]
    pub fn push(&mut self, worker: WorkerId, job: JobId) {
        self.waiting += 1;
        self.own[worker.index()].push(job);
    }

    /// Puts a request that neither a dispatcher nor steering places into the first shared queue. `false`: it is full.
    #[inline]
    pub fn push_unplaced(&mut self, job: JobId) -> bool {
        self.append_shared(0, job)
    }

    /// As one worker sees them.
    #[inline]
    pub fn seen_by(&mut self, worker: WorkerId) -> QueueListsView<'_> {
        QueueListsView {
            queues: self,
            me: worker,
        }
    }

    #[inline]
    fn append_shared(&mut self, queue: usize, job: JobId) -> bool {
        let shared = &mut self.shared[queue];
        if shared.jobs.len() >= self.shared_room {
            return false;
        }
        shared.jobs.push_back(job);
        shared.pushed += 1;
        self.waiting += 1;
        true
    }
}

/// The [lists](QueueLists) as one worker sees them.
#[derive(Debug)]
pub struct QueueListsView<'a> {
    queues: &'a mut QueueLists,
    me: WorkerId,
}

impl Backlog for QueueListsView<'_> {
    #[inline]
    fn workers(&self) -> usize {
        self.queues.own.len()
    }

    #[inline]
    fn len(&self, worker: WorkerId) -> usize {
        self.queues.len(worker)
    }

    #[inline]
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

impl Queues for QueueListsView<'_> {
    #[inline]
    fn me(&self) -> WorkerId {
        self.me
    }

    #[inline]
    fn sibling(&self) -> Option<WorkerId> {
        self.queues.siblings[self.me.index()]
    }

    #[inline]
    fn pop(&mut self) -> Option<JobId> {
        let job = self.queues.own[self.me.index()].pop()?;
        self.queues.waiting -= 1;
        Some(job)
    }

    #[inline]
    fn push(&mut self, job: JobId) {
        self.queues.push(self.me, job);
    }

    #[inline]
    fn try_steal(&mut self, victim: WorkerId, max: usize) -> Steal {
        let count = max.min(self.queues.len(victim));
        for _ in 0..count {
            if let Some(job) = self.queues.own[victim.index()].pop() {
                self.queues.own[self.me.index()].push(job);
            }
        }
        if count == 0 {
            Steal::Empty
        } else {
            Steal::Batch(count)
        }
    }

    #[inline]
    fn pop_shared(&mut self, queue: usize) -> Option<JobId> {
        let shared = &mut self.queues.shared[queue];
        let job = shared.jobs.pop_front()?;
        shared.popped += 1;
        self.queues.waiting -= 1;
        Some(job)
    }

    #[inline]
    fn push_shared(&mut self, queue: usize, job: JobId) -> bool {
        self.queues.append_shared(queue, job)
    }

    #[inline]
    fn set_short_ns(&mut self, mean_ns: u64) {
        self.queues.short_ns[self.me.index()] = mean_ns;
    }

    #[inline]
    fn set_longs(&mut self, longs: BitSet) {
        self.queues.longs[self.me.index()] = longs;
    }

    /// Whoever keeps lists has room for every request that it admits.
    fn set_sheds_first(&mut self, _classes: BitSet) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: WorkerId = WorkerId(0);
    const SECOND: WorkerId = WorkerId(1);

    /// Two workers, one shared queue with room for a request.
    fn lists() -> QueueLists {
        QueueLists::new(2, SharedQueues { count: 1, room: 1 })
    }

    #[test]
    fn a_thief_gets_the_oldest_at_its_tail_and_nothing_is_lost() {
        let mut lists = lists();
        (0..3).for_each(|job| lists.push(FIRST, JobId(job)));
        lists.push(SECOND, JobId(9));
        let stolen = lists.seen_by(SECOND).try_steal(FIRST, 2);
        assert_eq!(stolen, Steal::Batch(2));
        assert_eq!((lists.waiting(), lists.taken(FIRST)), (4, 2));
        assert_eq!(lists.seen_by(SECOND).try_steal(FIRST, 2), Steal::Batch(1));
        assert_eq!(lists.seen_by(SECOND).try_steal(FIRST, 2), Steal::Empty);
        let mut view = lists.seen_by(SECOND);
        let order: Vec<u32> = core::iter::from_fn(|| view.pop())
            .map(|job| job.0)
            .collect();
        assert_eq!(order, [9, 0, 1, 2]);
        assert_eq!(lists.waiting(), 0);
    }

    #[test]
    fn a_queue_has_something_from_its_first_push_to_its_last_pop() {
        let mut lists = lists();
        assert!(!lists.has(FIRST));
        lists.push(FIRST, JobId(0));
        lists.push(FIRST, JobId(1));
        lists.seen_by(SECOND).try_steal(FIRST, 1);
        assert!(lists.has(FIRST) && lists.has(SECOND));
        lists.seen_by(FIRST).pop();
        assert!(!lists.has(FIRST));
        assert_eq!(lists.len(SECOND), 1);
    }

    #[test]
    fn a_full_shared_queue_leaves_the_request_with_the_caller() {
        let mut lists = lists();
        assert!(lists.push_unplaced(JobId(0)));
        assert!(!lists.seen_by(FIRST).push_shared(0, JobId(1)));
        assert_eq!((lists.waiting(), lists.shared_len()), (1, 1));
        assert_eq!(lists.seen_by(SECOND).pop_shared(0), Some(JobId(0)));
        assert_eq!(lists.seen_by(FIRST).shared_counters(0), (1, 1));
        assert_eq!((lists.waiting(), lists.shared_taken()), (0, 1));
    }
}
