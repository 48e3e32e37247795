//! Shinjuku's multi-queue (NSDI '19): a queue a class, and a rule for which goes next.

use super::classes::ClassQueues;
use super::{Accounting, Discipline, WithoutPreview, WithoutWithdrawal};
use crate::ClassId;
use crate::server::role::Shed;
use crate::server::{Job, Jobs, Plan, Shape, WorkerId};
use alloc::vec;
use alloc::vec::Vec;

/// Which queue goes next.
#[derive(Clone, PartialEq, Debug)]
enum Pick {
    /// The one whose head has waited longest for its SLO; per class 1 ÷ SLO, 0 for none.
    WaitOverSlo(Vec<f64>),
    /// The one that received least service, as Borrowed Virtual Time counts it (Duda and
    /// Cheriton, SOSP '99).
    VirtualTime(VirtualTimes),
}

/// Service received per class, ns. A class that did not wait cannot save up: it goes on from where
/// the least of the others is.
#[derive(Clone, PartialEq, Debug)]
struct VirtualTimes {
    served_ns: Vec<u64>,
    /// The time of the class that was picked last.
    now_ns: u64,
}

/// Where a request goes that was interrupted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reentry {
    /// Behind its class's others.
    #[default]
    Tail,
    /// Before them.
    Head,
}

/// A bounded queue a class; first come, first served within one.
pub struct MultiQueue {
    queues: ClassQueues,
    pick: Pick,
    reentry: Reentry,
}

impl MultiQueue {
    /// The largest waiting time ÷ SLO first. The SLO is the one declared, else so many mean service
    /// times; UNKNOWN has none and goes when nothing else waits.
    #[must_use]
    pub fn by_wait_over_slo(shape: &Shape, means: f64, reentry: Reentry) -> Self {
        let urgencies = shape
            .slos_ns(means)
            .map(|slo_ns: u64| 1.0 / slo_ns.max(1) as f64)
            .chain([0.0])
            .collect();
        Self::new(shape, Pick::WaitOverSlo(urgencies), reentry)
    }

    /// The least virtual time first.
    #[must_use]
    pub fn by_virtual_time(shape: &Shape, reentry: Reentry) -> Self {
        let times = VirtualTimes {
            served_ns: vec![0; shape.queues()],
            now_ns: 0,
        };
        Self::new(shape, Pick::VirtualTime(times), reentry)
    }

    fn new(shape: &Shape, pick: Pick, reentry: Reentry) -> Self {
        Self {
            queues: ClassQueues::new(shape.queues(), shape.queue_limit),
            pick,
            reentry,
        }
    }

    /// The class whose head goes next; the lowest among equals.
    #[inline]
    fn choose(&self, now_ns: u64, jobs: &Jobs) -> Option<ClassId> {
        let waiting = self
            .queues
            .occupied()
            .iter()
            .map(|class| ClassId(class as u16));
        match &self.pick {
            Pick::WaitOverSlo(urgency) => {
                let ratio = |class: ClassId| {
                    let head = self.queues.front(jobs, class);
                    let waited_ns = head.map_or(0, |job| now_ns.saturating_sub(job.arrived_ns));
                    waited_ns as f64 * urgency[class.index()]
                };
                let mut waiting = waiting;
                let first = waiting.next()?;
                Some(
                    waiting
                        .fold(
                            (first, ratio(first)),
                            |best: (ClassId, f64), class| match ratio(class) {
                                more if more > best.1 => (class, more),
                                _ => best,
                            },
                        )
                        .0,
                )
            }
            Pick::VirtualTime(times) => waiting.min_by_key(|class| times.served_ns[class.index()]),
        }
    }

    /// A class that begins to wait does so no earlier than now.
    #[inline]
    fn joins(&mut self, class: ClassId) {
        if let (Pick::VirtualTime(times), 0) = (&mut self.pick, self.queues.waiting_of(class)) {
            let served_ns = &mut times.served_ns[class.index()];
            *served_ns = (*served_ns).max(times.now_ns);
        }
    }
}

impl Discipline for MultiQueue {
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) -> Result<(), Shed> {
        self.joins(job.class);
        self.queues.push(jobs, job)
    }

    #[inline]
    fn requeue(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) {
        self.joins(job.class);
        match self.reentry {
            Reentry::Tail => self.queues.push_back(jobs, job),
            Reentry::Head => self.queues.push_front(jobs, job),
        }
    }

    #[inline]
    fn take<'a>(
        &mut self,
        now_ns: u64,
        jobs: &'a Jobs,
        _plan: &Plan,
        mut place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(&'a Job, WorkerId)> {
        let class = self.choose(now_ns, jobs)?;
        let worker = place(self.queues.front(jobs, class)?)?;
        if let Pick::VirtualTime(times) = &mut self.pick {
            times.now_ns = times.now_ns.max(times.served_ns[class.index()]);
        }
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

    fn adopt(&mut self, fresh: &Self) {
        self.reentry = fresh.reentry;
        if let (Pick::WaitOverSlo(own), Pick::WaitOverSlo(fresh)) = (&mut self.pick, &fresh.pick) {
            own.clone_from(fresh);
        }
    }
}

impl WithoutWithdrawal for MultiQueue {}
impl WithoutPreview for MultiQueue {}

impl Accounting for MultiQueue {
    fn resumed(&mut self, _class: ClassId) {}

    #[inline]
    fn served(&mut self, class: ClassId, served_ns: u64) {
        if let Pick::VirtualTime(times) = &mut self.pick {
            times.served_ns[class.index()] += served_ns;
        }
    }

    fn completed(&mut self, _class: ClassId, _cpu_ns: u64) {}
}
