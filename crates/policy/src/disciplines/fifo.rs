//! One queue, first come first served, whatever the class.

use super::Discipline;
use crate::job::List;
use crate::role::Shed;
use crate::{ClassId, Job, Jobs, Plan, WorkerId};

/// One bounded queue for all classes; only its head is ever offered.
pub struct Fifo {
    queue: List,
    limit: usize,
}

impl Fifo {
    /// At most `limit` requests wait.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            queue: List::EMPTY,
            limit,
        }
    }
}

impl Discipline for Fifo {
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, plan: &Plan, job: Job) -> Result<(), Shed> {
        if self.queue.len() >= self.limit {
            return Err(Shed);
        }
        self.requeue(jobs, plan, job);
        Ok(())
    }

    #[inline]
    fn requeue(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) {
        self.queue.push_back(jobs, job);
    }

    #[inline]
    fn take(
        &mut self,
        jobs: &Jobs,
        _plan: &Plan,
        mut place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(Job, WorkerId)> {
        let worker = place(self.queue.front(jobs)?)?;
        let job = self.queue.pop_front(jobs)?;
        Some((job, worker))
    }

    fn waiting(&self) -> usize {
        self.queue.len()
    }

    fn waiting_of(&self, _class: ClassId) -> usize {
        0
    }

    fn replanned(&mut self, _plan: &Plan) {}
}
