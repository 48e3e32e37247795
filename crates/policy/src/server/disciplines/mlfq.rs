//! The multi-level feedback queue (Corbató, Merwin-Daggett and Daley, AFIPS '62): who has run
//! longer waits behind who has not.

use super::classes::QueuedByClass;
use super::{Discipline, Preview, UNTOUCHED_NS, WithoutAccounting, WithoutWithdrawal};
use crate::server::job::List;
use crate::server::role::{Shed, UrgencyIndex};
use crate::server::{Job, Jobs, Plan, WorkerId};
use crate::{BitSet, ClassId};
use alloc::vec;
use alloc::vec::Vec;

/// Which level a request is at, by the service it attained: level `l` lasts `q·2ˡ`, so that it
/// begins at `q·(2ˡ − 1)`; the last one lasts for ever, in turns of its `q·2ˡ`.
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
        self.after(self.allotments(attained_ns))
    }

    /// How many allotments a request that attained so much has had: the levels below its own, and turns at the last one.
    #[inline]
    #[must_use]
    pub fn allotments(&self, attained_ns: u64) -> u64 {
        // The next quantum, counted from 1: level l has the 2ˡ from the 2ˡ-th on, and so has each turn at the last one.
        let quantum = attained_ns / self.quantum_ns + 1;
        let level = quantum.ilog2().min(self.count as u32 - 1);
        u64::from(level) + (quantum >> level) - 1
    }

    /// The level after so many allotments.
    #[inline]
    fn after(&self, allotments: u64) -> usize {
        allotments.min(self.count as u64 - 1) as usize
    }
}

/// One queue a level, whatever the class, of which only so many may wait; the lowest level that waits comes first. Who was interrupted after an allotment joins the
/// tail of the level that it has got to; who was interrupted within one keeps its place, at the head, however often shorter ones interrupt.
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

impl Mlfq {
    #[inline]
    fn entered(&mut self, level: usize, class: ClassId) {
        self.counts.entered(class);
        self.occupied.insert(level);
        self.waiting += 1;
    }
}

impl Discipline for Mlfq {
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) -> Result<(), Shed> {
        self.counts.admit(job.class)?;
        let level = self.levels.at(job.attained_ns);
        self.entered(level, job.class);
        self.queues[level].push_back(jobs, job);
        Ok(())
    }

    #[inline]
    fn requeue(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) {
        let queued_ns = jobs.get(job.id).attained_ns;
        let allotments = self.levels.allotments(job.attained_ns);
        let level = self.levels.after(allotments);
        self.entered(level, job.class);
        let has_run = job.attained_ns > queued_ns + UNTOUCHED_NS;
        if has_run && allotments == self.levels.allotments(queued_ns) {
            self.queues[level].push_front(jobs, job);
        } else {
            self.queues[level].push_back(jobs, job);
        }
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

    #[inline]
    fn index(&self, _class: ClassId, _attained_ns: u64) -> Option<UrgencyIndex> {
        None
    }
}

impl WithoutAccounting for Mlfq {}

#[cfg(test)]
mod tests {
    use super::{Levels, Mlfq};
    use crate::server::disciplines::{Discipline, UNTOUCHED_NS};
    use crate::server::plan::{Order, Plan};
    use crate::server::{Job, JobId, Jobs, WorkerId};
    use crate::{BitSet, ClassId};
    use alloc::vec;
    use alloc::vec::Vec;

    const LEVELS: Levels = Levels {
        quantum_ns: 1_000,
        count: 3,
    };

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

    #[test]
    fn the_last_level_is_had_in_turns() {
        let levels = Levels {
            quantum_ns: 10,
            count: 3,
        };
        let had = [0, 9, 10, 29, 30, 69, 70, 109, 110];
        let allotments = had.map(|attained_ns| levels.allotments(attained_ns));
        assert_eq!(allotments, [0, 0, 1, 1, 2, 2, 3, 3, 4]);
        let one = Levels { count: 1, ..levels };
        assert_eq!([0, 9, 10, 25].map(|at| one.allotments(at)), [0, 0, 1, 2]);
    }

    /// The order of what waits, after job 0 of three at the last level ran for so long and was interrupted.
    fn order_after(ran_ns: u64, before_ns: u64) -> Vec<u32> {
        let plan = Plan::open(Order::Rank, vec![ClassId(0)], BitSet::range(0, 1));
        let (mut jobs, mut queue) = (Jobs::new(3), Mlfq::new(LEVELS, 1, 10));
        let attained = |id, attained_ns| {
            let mut job = Job::new(JobId(id), ClassId(0), 0);
            job.attained_ns = attained_ns;
            job
        };
        (0..3).for_each(|id| queue.requeue(&mut jobs, &plan, attained(id, before_ns)));
        let take = |queue: &mut Mlfq, jobs: &Jobs| {
            let taken = queue.take(0, jobs, &plan, |_| Some(WorkerId(0)));
            taken.map(|(job, _)| job.id.0)
        };
        assert_eq!(take(&mut queue, &jobs), Some(0));
        queue.requeue(&mut jobs, &plan, attained(0, before_ns + ran_ns));
        core::iter::from_fn(|| take(&mut queue, &jobs)).collect()
    }

    #[test]
    fn who_is_interrupted_within_a_level_keeps_its_place() {
        assert_eq!(order_after(500, 0), [0, 1, 2]);
        assert_eq!(order_after(1_000, 5_000), [0, 1, 2], "at the last level");
    }

    #[test]
    fn who_has_had_its_allotment_comes_after_the_others() {
        assert_eq!(order_after(1_500, 1_500), [1, 2, 0]);
        assert_eq!(order_after(1_000, 0), [1, 2, 0]);
        assert_eq!(
            order_after(4_000, 5_000),
            [1, 2, 0],
            "in turns at the last level"
        );
    }

    #[test]
    fn others_come_first_where_the_engine_could_not_go_on_with_a_job() {
        for ran_ns in [0, 1, UNTOUCHED_NS] {
            assert_eq!(order_after(ran_ns, 5_000), [1, 2, 0]);
        }
    }
}
