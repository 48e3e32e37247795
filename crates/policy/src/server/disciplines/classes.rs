//! A bound for each class: a queue each for disciplines that choose among classes, a count each for those whose queues all classes share.

use crate::server::job::List;
use crate::server::role::Shed;
use crate::server::{Job, Jobs};
use crate::{BitSet, ClassId};
use alloc::vec;
use alloc::vec::Vec;

/// One queue a class; a full one sheds its own class only.
pub(super) struct ClassQueues {
    queues: Vec<List>,
    limit: usize,
    waiting: usize,
    /// Classes that have a head.
    occupied: BitSet,
}

impl ClassQueues {
    /// `classes` queues (UNKNOWN included) of at most `limit` requests each.
    pub(super) fn new(classes: usize, limit: usize) -> Self {
        Self {
            queues: vec![List::EMPTY; classes],
            limit,
            waiting: 0,
            occupied: BitSet::EMPTY,
        }
    }

    #[inline]
    pub(super) fn push(&mut self, jobs: &mut Jobs, job: Job) -> Result<(), Shed> {
        if self.waiting_of(job.class) >= self.limit {
            return Err(Shed);
        }
        self.push_back(jobs, job);
        Ok(())
    }

    #[inline]
    pub(super) fn push_back(&mut self, jobs: &mut Jobs, job: Job) {
        self.queues[job.class.index()].push_back(jobs, job);
        self.entered(job.class);
    }

    #[inline]
    pub(super) fn push_front(&mut self, jobs: &mut Jobs, job: Job) {
        self.queues[job.class.index()].push_front(jobs, job);
        self.entered(job.class);
    }

    #[inline]
    fn entered(&mut self, class: ClassId) {
        self.waiting += 1;
        self.occupied.insert(class.index());
    }

    #[inline]
    pub(super) fn pop<'a>(&mut self, jobs: &'a Jobs, class: ClassId) -> Option<&'a Job> {
        let queue = &mut self.queues[class.index()];
        let job = queue.pop_front(jobs)?;
        self.waiting -= 1;
        self.occupied.set(class.index(), queue.len() > 0);
        Some(job)
    }

    #[inline]
    pub(super) fn front<'a>(&self, jobs: &'a Jobs, class: ClassId) -> Option<&'a Job> {
        self.queues[class.index()].front(jobs)
    }

    /// Classes that wait.
    #[inline]
    pub(super) fn occupied(&self) -> &BitSet {
        &self.occupied
    }

    /// The class that waits and is next after this one, going round; itself where it is alone.
    #[inline]
    pub(super) fn next_round(&self, class: ClassId) -> Option<ClassId> {
        let next = self.occupied.next_after(class.index());
        let index = next.or_else(|| self.occupied.first())?;
        Some(ClassId(index as u16))
    }

    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    #[inline]
    pub(super) fn waiting_of(&self, class: ClassId) -> usize {
        self.queues[class.index()].len()
    }
}

/// How many requests of each class wait in queues that all classes share. A class that is at its limit sheds its own requests only: longs that wait take no
/// place from shorts.
pub(super) struct QueuedByClass {
    waiting: Vec<usize>,
    limit: usize,
}

impl QueuedByClass {
    /// Of `classes` classes, UNKNOWN included, with at most `limit` requests each.
    pub(super) fn new(classes: usize, limit: usize) -> Self {
        Self {
            waiting: vec![0; classes],
            limit,
        }
    }

    /// Whether another request of the class may wait.
    #[inline]
    pub(super) fn admit(&self, class: ClassId) -> Result<(), Shed> {
        if self.waiting_of(class) >= self.limit {
            return Err(Shed);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn entered(&mut self, class: ClassId) {
        self.waiting[class.index()] += 1;
    }

    #[inline]
    pub(super) fn left(&mut self, class: ClassId) {
        self.waiting[class.index()] -= 1;
    }

    #[inline]
    pub(super) fn waiting_of(&self, class: ClassId) -> usize {
        self.waiting[class.index()]
    }
}
