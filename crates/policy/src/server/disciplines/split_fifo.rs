//! One queue, first come first served, for a dispatcher that works.

use super::{Discipline, Preview, Withdrawal, WithoutAccounting};
use crate::ClassId;
use crate::server::job::List;
use crate::server::role::{Shed, UrgencyIndex};
use crate::server::{Job, Jobs, Plan, WorkerId};

/// As [`Fifo`](super::Fifo), but requests that were interrupted and those that nobody began are listed apart, in one
/// order, so that a dispatcher that works finds the oldest of the latter (Concord § 3.3).
pub struct SplitFifo {
    fresh: List,
    interrupted: List,
    limit: usize,
}

impl SplitFifo {
    /// At most `limit` requests wait.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            fresh: List::EMPTY,
            interrupted: List::EMPTY,
            limit,
        }
    }

    /// Whether what was interrupted comes first.
    #[inline]
    fn interrupted_first(&self, jobs: &Jobs) -> bool {
        self.interrupted.len() > 0
            && self.interrupted.front_sequence(jobs) < self.fresh.front_sequence(jobs)
    }
}

impl Discipline for SplitFifo {
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) -> Result<(), Shed> {
        if self.waiting() >= self.limit {
            return Err(Shed);
        }
        self.fresh.push_back(jobs, job);
        Ok(())
    }

    #[inline]
    fn requeue(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) {
        self.interrupted.push_back(jobs, job);
    }

    #[inline]
    fn take<'a>(
        &mut self,
        _now_ns: u64,
        jobs: &'a Jobs,
        _plan: &Plan,
        mut place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(&'a Job, WorkerId)> {
        let list = if self.interrupted_first(jobs) {
            &mut self.interrupted
        } else {
            &mut self.fresh
        };
        let worker = place(list.front(jobs)?)?;
        let job = list.pop_front(jobs)?;
        Some((job, worker))
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.fresh.len() + self.interrupted.len()
    }

    fn waiting_of(&self, _class: ClassId) -> usize {
        0
    }

    #[inline]
    fn wants(&self, _plan: &Plan, _worker: WorkerId) -> bool {
        self.waiting() > 0
    }

    fn replanned(&mut self, _plan: &Plan) {}

    fn adopt(&mut self, _fresh: &Self) {}
}

impl Withdrawal for SplitFifo {
    /// Of any class: they are not told apart.
    fn take_unstarted<'a>(
        &mut self,
        jobs: &'a Jobs,
        _plan: &Plan,
        class: Option<ClassId>,
    ) -> Option<&'a Job> {
        if class.is_some() {
            return None;
        }
        self.fresh.pop_front(jobs)
    }
}

impl Preview for SplitFifo {
    /// A walk along both lists.
    #[inline]
    fn peek<'a>(&self, jobs: &'a Jobs, others: usize) -> Option<&'a Job> {
        let (mut fresh, mut interrupted) = (self.fresh.cursor(), self.interrupted.cursor());
        let mut next = || {
            let first = interrupted.sequence(jobs) < fresh.sequence(jobs);
            if first {
                interrupted.advance(jobs)
            } else {
                fresh.advance(jobs)
            }
        };
        for _ in 0..others {
            next()?;
        }
        next()
    }

    fn front_sequence(&self, jobs: &Jobs) -> Option<u64> {
        let interrupted = self.interrupted.front_sequence(jobs);
        Some(interrupted.min(self.fresh.front_sequence(jobs)))
    }

    #[inline]
    fn index(&self, _class: ClassId, _attained_ns: u64) -> Option<UrgencyIndex> {
        None
    }
}

impl WithoutAccounting for SplitFifo {}
