//! The multi-level feedback queue (Corbató, Merwin-Daggett and Daley, AFIPS '62): who has run
//! longer waits behind who has not.

use super::classes::QueuedByClass;
use super::{Discipline, Preview, WithoutAccounting, WithoutWithdrawal};
use crate::server::job::List;
use crate::server::role::Shed;
use crate::server::{Job, Jobs, Plan, WorkerId};
use crate::{BitSet, ClassId};
use alloc::vec;
use alloc::vec::Vec;

/// Which level a request is at, by the service it attained: level `l` lasts `q·2ˡ`, so that it
/// begins at `q·(2ˡ − 1)`; the last one lasts for ever.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Levels {
    /// The first level's allotment, ns, above 0.
    pub quantum_ns: u64,
    /// How many there are, above 0.
    pub count: usize,
}

impl Levels {
    /// The level of a request that attained so much.
    #[inline]
    #[must_use]
    pub fn at(&self, attained_ns: u64) -> usize {
        let doublings = (attained_ns / self.quantum_ns + 1).ilog2();
        (doublings as usize).min(self.count - 1)
    }
}

/// One queue a level, whatever the class, of which only so many may wait; the lowest level that waits comes first. What was
/// interrupted joins the tail of the level it has got to.
pub struct Mlfq {
    levels: Levels,
    queues: Vec<List>,
    occupied: BitSet,
    waiting: usize,
    counts: QueuedByClass,
}

impl Mlfq {
    /// At most `limit` requests of each of so many classes wait, UNKNOWN included.
    ///
    /// # Panics
    /// When there is no level, more than a [`BitSet`] holds, or the quantum is 0.
    #[must_use]
    pub fn new(levels: Levels, classes: usize, limit: usize) -> Self {
        assert!(levels.quantum_ns > 0, "levels last for a while");
        assert!((1..=BitSet::CAPACITY).contains(&levels.count));
        Self {
            levels,
            queues: vec![List::EMPTY; levels.count],
            occupied: BitSet::EMPTY,
            waiting: 0,
            counts: QueuedByClass::new(classes, limit),
        }
    }
}

impl Discipline for Mlfq {
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, plan: &Plan, job: Job) -> Result<(), Shed> {
        self.counts.admit(job.class)?;
        self.requeue(jobs, plan, job);
        Ok(())
    }

    #[inline]
    fn requeue(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) {
        let level = self.levels.at(job.attained_ns);
        self.counts.entered(job.class);
        self.queues[level].push_back(jobs, job);
        self.occupied.insert(level);
        self.waiting += 1;
    }

    #[inline]
    fn take<'a>(
        &mut self,
        _now_ns: u64,
        jobs: &'a Jobs,
        _plan: &Plan,
        mut place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(&'a Job, WorkerId)> {
        let level = self.occupied.first()?;
        let queue = &mut self.queues[level];
        let worker = place(queue.front(jobs)?)?;
        let job = queue.pop_front(jobs)?;
        self.occupied.set(level, queue.len() > 0);
        self.waiting -= 1;
        self.counts.left(job.class);
        Some((job, worker))
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.waiting
    }

    fn waiting_of(&self, class: ClassId) -> usize {
        self.counts.waiting_of(class)
    }

    #[inline]
    fn wants(&self, _plan: &Plan, _worker: WorkerId) -> bool {
        self.waiting() > 0
    }

    fn replanned(&mut self, _plan: &Plan) {}

    /// What waits stays at its level; there are as many levels as before.
    fn adopt(&mut self, fresh: &Self) {
        self.levels.quantum_ns = fresh.levels.quantum_ns;
    }
}

impl WithoutWithdrawal for Mlfq {}

impl Preview for Mlfq {
    #[inline]
    fn peek<'a>(&self, jobs: &'a Jobs, others: usize) -> Option<&'a Job> {
        if others > 0 {
            return None;
        }
        self.queues[self.occupied.first()?].front(jobs)
    }

    fn front_sequence(&self, _jobs: &Jobs) -> Option<u64> {
        None
    }
}

impl WithoutAccounting for Mlfq {}

#[cfg(test)]
mod tests {
    use super::Levels;

    #[test]
    fn each_level_lasts_twice_as_long_as_the_one_before() {
        let levels = Levels {
            quantum_ns: 10,
            count: 4,
        };
        for (attained_ns, level) in [(0, 0), (9, 0), (10, 1), (29, 1), (30, 2), (69, 2)] {
            assert_eq!(levels.at(attained_ns), level, "{attained_ns}");
        }
        assert_eq!(levels.at(u64::MAX), 3, "the last lasts for ever");
    }
}
