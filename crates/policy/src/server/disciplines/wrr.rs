//! Weighted round robin: every class that waits sends so many requests in turn.

use super::classes::ClassQueues;
use super::{Discipline, WithoutAccounting, WithoutPreview, WithoutWithdrawal};
use crate::ClassId;
use crate::server::role::Shed;
use crate::server::{Job, Jobs, Plan, WorkerId};
use alloc::vec::Vec;

/// Goes round the classes; each sends up to its weight, in requests, before the next.
pub struct WeightedRoundRobin {
    queues: ClassQueues,
    /// By class, UNKNOWN last.
    weights: Vec<u32>,
    turn: ClassId,
    /// Requests it may still send in this turn.
    left: u32,
}

impl WeightedRoundRobin {
    /// A weight for each class, UNKNOWN included, above 0; at most `limit` requests of each wait.
    ///
    /// # Panics
    /// When a weight is 0: that class would never be served.
    #[must_use]
    pub fn new(weights: Vec<u32>, limit: usize) -> Self {
        assert!(!weights.contains(&0), "every class is served in its turn");
        Self {
            queues: ClassQueues::new(weights.len(), limit),
            left: weights[0],
            weights,
            turn: ClassId(0),
        }
    }

    #[inline]
    fn choose(&mut self) -> Option<ClassId> {
        if self.left == 0 || self.queues.waiting_of(self.turn) == 0 {
            self.turn = self.queues.next_round(self.turn)?;
            self.left = self.weights[self.turn.index()];
        }
        Some(self.turn)
    }
}

impl Discipline for WeightedRoundRobin {
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) -> Result<(), Shed> {
        self.queues.push(jobs, job)
    }

    #[inline]
    fn requeue(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) {
        self.queues.push_back(jobs, job);
    }

    #[inline]
    fn take<'a>(
        &mut self,
        _now_ns: u64,
        jobs: &'a Jobs,
        _plan: &Plan,
        mut place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(&'a Job, WorkerId)> {
        let class = self.choose()?;
        let worker = place(self.queues.front(jobs, class)?)?;
        self.left -= 1;
        Some((self.queues.pop(jobs, class)?, worker))
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    fn waiting_of(&self, class: ClassId) -> usize {
        self.queues.waiting_of(class)
    }

    #[inline]
    fn wants(&self, _plan: &Plan, _worker: WorkerId) -> bool {
        self.waiting() > 0
    }

    fn replanned(&mut self, _plan: &Plan) {}

    /// A turn that has not begun is as long as the new weight says; one that has begun is no longer than that.
    fn adopt(&mut self, fresh: &Self) {
        let turn = self.turn.index();
        let unbegun = self.left == self.weights[turn];
        self.weights.clone_from(&fresh.weights);
        self.left = match self.weights[turn] {
            weight if unbegun => weight,
            weight => self.left.min(weight),
        };
    }
}

impl WithoutWithdrawal for WeightedRoundRobin {}
impl WithoutPreview for WeightedRoundRobin {}
impl WithoutAccounting for WeightedRoundRobin {}
