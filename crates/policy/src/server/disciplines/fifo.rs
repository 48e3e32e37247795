//! One queue, first come first served, whatever the class.

use super::{Discipline, Preview, WithoutAccounting, WithoutWithdrawal};
use crate::ClassId;
use crate::server::job::List;
use crate::server::role::{Shed, UrgencyIndex};
use crate::server::{Job, Jobs, Plan, WorkerId};

/// One bounded queue for all classes; only its head is ever offered. What was interrupted joins
/// its tail.
pub struct Fifo {
    waiting: List,
    limit: usize,
}

impl Fifo {
    /// At most `limit` requests wait.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            waiting: List::EMPTY,
            limit,
        }
    }
}

impl Discipline for Fifo {
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) -> Result<(), Shed> {
        if self.waiting() >= self.limit {
            return Err(Shed);
        }
        self.waiting.push_back(jobs, job);
        Ok(())
    }

    #[inline]
    fn requeue(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) {
        self.waiting.push_back(jobs, job);
    }

    #[inline]
    fn take<'a>(
        &mut self,
        _now_ns: u64,
        jobs: &'a Jobs,
        _plan: &Plan,
        mut place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(&'a Job, WorkerId)> {
        let worker = place(self.waiting.front(jobs)?)?;
        let job = self.waiting.pop_front(jobs)?;
        Some((job, worker))
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.waiting.len()
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

impl WithoutWithdrawal for Fifo {}

impl Preview for Fifo {
    #[inline]
    fn peek<'a>(&self, jobs: &'a Jobs, others: usize) -> Option<&'a Job> {
        let mut cursor = self.waiting.cursor();
        for _ in 0..others {
            cursor.advance(jobs)?;
        }
        cursor.advance(jobs)
    }

    fn front_sequence(&self, jobs: &Jobs) -> Option<u64> {
        Some(self.waiting.front_sequence(jobs))
    }

    #[inline]
    fn index(&self, _class: ClassId, _attained_ns: u64) -> Option<UrgencyIndex> {
        None
    }
}

impl WithoutAccounting for Fifo {}
