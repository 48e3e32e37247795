//! Cycle stealing with a central queue, CS-CQ (Harchol-Balter, Li, Osogami, Scheller-Wolf and
//! Squillante, ICDCS '03): hosts for longs, which run shorts while no long waits.

use super::classes::QueuedByClass;
use super::{Accounting, Discipline, WithoutPreview, WithoutWithdrawal};
use crate::server::job::List;
use crate::server::role::Shed;
use crate::server::{Job, Jobs, Plan, WorkerId};
use crate::{BitSet, ClassId};

/// Longs on at most so many workers at once, and first there; shorts on all the others, and on
/// those while no long waits. Which workers are whose is not fixed: a long host that runs a short
/// and a short host that is idle change names, as the paper has it. Nothing is interrupted.
pub struct CycleStealing {
    shorts: List,
    longs: List,
    is_long: BitSet,
    /// Part of the workers that are long hosts, 0 to 1.
    long_part: f64,
    /// Workers present.
    workers: usize,
    /// How many these are among those present.
    long_hosts: usize,
    /// Longs that run.
    running: usize,
    counts: QueuedByClass,
}

impl CycleStealing {
    /// `is_long` says which classes are; `long_part` of the workers are long hosts, rounded, but
    /// at least one, and at least one is not where there are two. At most `limit` requests of each of so
    /// many `classes`, UNKNOWN included, wait in the central queue.
    #[must_use]
    pub fn new(
        is_long: BitSet,
        long_part: f64,
        workers: usize,
        classes: usize,
        limit: usize,
    ) -> Self {
        let mut queue = Self {
            shorts: List::EMPTY,
            longs: List::EMPTY,
            is_long,
            long_part,
            workers,
            long_hosts: 0,
            running: 0,
            counts: QueuedByClass::new(classes, limit),
        };
        queue.divide(workers);
        queue
    }

    fn divide(&mut self, workers: usize) {
        self.workers = workers;
        let wanted = (self.long_part * workers as f64 + 0.5) as usize;
        self.long_hosts = wanted.clamp(1, workers.saturating_sub(1).max(1));
    }

    /// The queue that an idle worker takes from.
    #[inline]
    fn choose(&mut self) -> (&mut List, bool) {
        let long = self.longs.len() > 0 && self.running < self.long_hosts;
        let list = if long {
            &mut self.longs
        } else {
            &mut self.shorts
        };
        (list, long)
    }
}

impl Discipline for CycleStealing {
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, plan: &Plan, job: Job) -> Result<(), Shed> {
        self.counts.admit(job.class)?;
        self.requeue(jobs, plan, job);
        Ok(())
    }

    #[inline]
    fn requeue(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) {
        self.counts.entered(job.class);
        if self.is_long.contains(job.class.index()) {
            self.longs.push_back(jobs, job);
        } else {
            self.shorts.push_back(jobs, job);
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
        let (list, long) = self.choose();
        let worker = place(list.front(jobs)?)?;
        let job = list.pop_front(jobs)?;
        self.counts.left(job.class);
        self.running += usize::from(long);
        Some((job, worker))
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.shorts.len() + self.longs.len()
    }

    fn waiting_of(&self, class: ClassId) -> usize {
        self.counts.waiting_of(class)
    }

    #[inline]
    fn wants(&self, _plan: &Plan, _worker: WorkerId) -> bool {
        self.shorts.len() > 0 || self.longs.len() > 0 && self.running < self.long_hosts
    }

    /// Workers came or went: every class is open to all of them.
    fn replanned(&mut self, plan: &Plan) {
        let unknown = ClassId(plan.ranked().len() as u16 - 1);
        self.divide(plan.reserved(unknown).union(plan.stealable(unknown)).len());
    }

    /// Longs that run go on, though they may be more than there are long hosts now.
    fn adopt(&mut self, fresh: &Self) {
        self.long_part = fresh.long_part;
        self.divide(self.workers);
    }
}

impl WithoutWithdrawal for CycleStealing {}
impl WithoutPreview for CycleStealing {}

impl Accounting for CycleStealing {
    fn resumed(&mut self, class: ClassId) {
        self.running += usize::from(self.is_long.contains(class.index()));
    }

    #[inline]
    fn served(&mut self, class: ClassId, _served_ns: u64) {
        self.running -= usize::from(self.is_long.contains(class.index()));
    }

    fn completed(&mut self, _class: ClassId, _cpu_ns: u64) {}
}
