//! One bounded queue per class (Perséphone § 4.3.3): a full one sheds its own class only.

use super::{Discipline, Withdrawal, WithoutAccounting, WithoutPreview};
use crate::server::job::List;
use crate::server::role::Shed;
use crate::server::{Job, Jobs, Order, Plan, WorkerId};
use crate::{BitSet, ClassId};
use alloc::vec;
use alloc::vec::Vec;

/// Typed queues, served in the plan's order; first come first served within a class.
pub struct Typed {
    queues: Vec<List>,
    limit: usize,
    waiting: usize,
    /// Ranks (not classes) whose queue has a head.
    occupied: BitSet,
}

impl Typed {
    /// `classes` queues (UNKNOWN included) of at most `limit` requests each.
    #[must_use]
    pub fn new(classes: usize, limit: usize) -> Self {
        Self {
            queues: vec![List::EMPTY; classes],
            limit,
            waiting: 0,
            occupied: BitSet::EMPTY,
        }
    }

    #[inline]
    fn pop<'a>(&mut self, jobs: &'a Jobs, plan: &Plan, class: ClassId) -> Option<&'a Job> {
        let queue = &mut self.queues[class.index()];
        let job = queue.pop_front(jobs)?;
        let more = queue.len() > 0;
        self.waiting -= 1;
        self.occupied.set(plan.rank(class), more);
        Some(job)
    }

    /// The oldest head that finds a worker.
    fn take_oldest<'a>(
        &mut self,
        jobs: &'a Jobs,
        plan: &Plan,
        mut place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(&'a Job, WorkerId)> {
        let mut untried = self.occupied;
        loop {
            let rank = untried
                .iter()
                .min_by_key(|&rank: &usize| self.queue_at(plan, rank).front_sequence(jobs))?;
            if let Some(worker) = place(self.queue_at(plan, rank).front(jobs)?) {
                let job = self.pop(jobs, plan, plan.ranked()[rank])?;
                return Some((job, worker));
            }
            untried.remove(rank);
        }
    }

    #[inline]
    fn queue_at(&self, plan: &Plan, rank: usize) -> &List {
        &self.queues[plan.ranked()[rank].index()]
    }
}

impl Discipline for Typed {
    // Both ways in always in place: a job handed over in memory is read wider than it was written, and waits for the stores.
    #[inline(always)]
    fn push(&mut self, jobs: &mut Jobs, plan: &Plan, job: Job) -> Result<(), Shed> {
        if self.queues[job.class.index()].len() >= self.limit {
            return Err(Shed);
        }
        self.requeue(jobs, plan, job);
        Ok(())
    }

    #[inline(always)]
    fn requeue(&mut self, jobs: &mut Jobs, plan: &Plan, job: Job) {
        self.queues[job.class.index()].push_back(jobs, job);
        self.waiting += 1;
        self.occupied.insert(plan.rank(job.class));
    }

    /// Algorithm 1 of Perséphone: the first class, ascending, that has both a request and a free
    /// worker. A class without a free worker does not hold up the longer ones.
    // Always in place, as `push` is: the request's worker would come back through memory.
    #[inline(always)]
    fn take<'a>(
        &mut self,
        _now_ns: u64,
        jobs: &'a Jobs,
        plan: &Plan,
        mut place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(&'a Job, WorkerId)> {
        if plan.order == Order::Arrival {
            return self.take_oldest(jobs, plan, place);
        }
        let mut rank = self.occupied.first()?;
        loop {
            if let Some(worker) = place(self.queue_at(plan, rank).front(jobs)?) {
                let job = self.pop(jobs, plan, plan.ranked()[rank])?;
                return Some((job, worker));
            }
            rank = self.occupied.next_after(rank)?;
        }
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.waiting
    }

    fn waiting_of(&self, class: ClassId) -> usize {
        self.queues[class.index()].len()
    }

    fn wants(&self, plan: &Plan, worker: WorkerId) -> bool {
        self.occupied.iter().any(|rank: usize| {
            let class = plan.ranked()[rank];
            let index = worker.index();
            plan.reserved(class).contains(index) || plan.stealable(class).contains(index)
        })
    }

    fn replanned(&mut self, plan: &Plan) {
        self.occupied = (0..self.queues.len())
            .filter(|&class| self.queues[class].len() > 0)
            .map(|class| plan.rank(ClassId(class as u16)))
            .collect();
    }

    fn adopt(&mut self, _fresh: &Self) {}
}

impl Withdrawal for Typed {
    fn take_unstarted<'a>(
        &mut self,
        jobs: &'a Jobs,
        plan: &Plan,
        class: Option<ClassId>,
    ) -> Option<&'a Job> {
        let class = class?;
        let head = self.queues[class.index()].front(jobs)?;
        if head.attained_ns > 0 {
            return None;
        }
        self.pop(jobs, plan, class)
    }
}

impl WithoutPreview for Typed {}
impl WithoutAccounting for Typed {}
