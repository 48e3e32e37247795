//! The dispatcher's ingress: a discipline offers, a placement chooses, a control learns.

use crate::ClassId;
use crate::server::bound::BoundQueues;
use crate::server::controls::Control;
use crate::server::disciplines::Discipline;
use crate::server::placements::{Placement, Workers};
use crate::server::role::{
    Assignable, Dispatch, GroupShares, Ingress, Inspect, Owner, Shed, UrgencyIndex,
    WithoutDispatcherWork,
};
use crate::server::{Job, JobId, Jobs, Plan, Resume, WorkerId};

/// The parts that a [`Central`] is made of.
pub struct CentralParts<D, P, C> {
    /// Orders the queues and offers their heads.
    pub discipline: D,
    /// Chooses a worker for a head.
    pub placement: P,
    /// Learns from completions and revises the plan.
    pub control: C,
}

/// One queue discipline, one placement, one control: every system with a dispatcher.
pub struct Central<D, P, C> {
    jobs: Jobs,
    discipline: D,
    placement: P,
    control: C,
    workers: Workers,
    plan: Plan,
    revisions: u64,
    /// Interrupted requests that wait for their own worker.
    bound: BoundQueues,
}

impl<D: Discipline, P: Placement, C: Control> Central<D, P, C> {
    /// A dispatcher knows what its workers hold; the network does not, and thieves would make
    /// nonsense of it.
    const TRACKS: bool = matches!(P::OWNER, Owner::Dispatcher);

    /// Assembles the parts; `plan` says the order of the classes, the control divides the workers.
    #[must_use]
    pub fn new(jobs: Jobs, workers: Workers, mut plan: Plan, parts: CentralParts<D, P, C>) -> Self {
        let CentralParts {
            discipline,
            placement,
            mut control,
        } = parts;
        control.workers_changed(&mut plan, workers.present());
        Self {
            jobs,
            discipline,
            placement,
            control,
            workers,
            plan,
            revisions: 0,
            bound: BoundQueues::new(0),
        }
    }

    /// Where interrupted requests of so many workers may go on; anywhere unless said.
    #[must_use]
    pub fn resuming(mut self, resume: Resume, workers: usize) -> Self {
        let bound = match resume {
            Resume::Anywhere => 0,
            Resume::OwnWorker => workers,
        };
        self.bound = BoundQueues::new(bound);
        self
    }

    /// The oldest waiting request that nobody began, taken out: for a dispatcher that works.
    pub(crate) fn take_unstarted(&mut self, now_ns: u64) -> Option<Job> {
        let job = *self
            .discipline
            .take_unstarted(&self.jobs, &self.plan, None)?;
        self.control
            .dispatched(job.class, now_ns.saturating_sub(job.arrived_ns));
        Some(job)
    }

    /// A request is done, whoever ran it.
    #[inline]
    pub(crate) fn completed(&mut self, now_ns: u64, job: JobId, cpu_ns: u64) {
        let Job {
            class, attained_ns, ..
        } = *self.jobs.get(job);
        self.discipline
            .served(class, cpu_ns.saturating_sub(attained_ns));
        self.discipline.completed(class, cpu_ns);
        if self.control.finished(now_ns, class, cpu_ns) {
            self.close_window(now_ns);
        }
    }

    /// The next decision about a request that may run anywhere.
    // By itself the compiler leaves it a call, which costs the simulator a tenth under policies by type.
    #[inline(always)]
    fn poll_free(&mut self, now_ns: u64) -> Option<Dispatch> {
        // Most polls end here: one that follows a decision, and one after a completion with nothing to do.
        if self.discipline.waiting() == 0 || Self::TRACKS && !self.placement.has_room(&self.workers)
        {
            return None;
        }
        let Self {
            jobs,
            discipline,
            placement,
            control,
            workers,
            plan,
            ..
        } = self;
        let (job, worker) = discipline.take(now_ns, jobs, plan, |head| {
            placement.place(head, plan, workers)
        })?;
        if Self::TRACKS {
            workers.occupy(worker);
            if self.bound.waiting() > 0 {
                self.bound.made_way(worker);
            }
        }
        let served_or_waited_ns = now_ns.saturating_sub(job.arrived_ns);
        control.dispatched(
            job.class,
            served_or_waited_ns.saturating_sub(job.attained_ns),
        );
        Some(Dispatch {
            worker,
            job: job.id,
        })
    }

    /// The next decision while some requests wait for their own worker: in the order of admission where the discipline
    /// keeps one, else a worker's own requests and the others' by turns.
    #[cold]
    fn poll_bound(&mut self, now_ns: u64) -> Option<Dispatch> {
        let before = match self.discipline.waiting() {
            0 => None,
            _ => Some(self.discipline.front_sequence(&self.jobs)),
        };
        let first = self.resume(now_ns, before);
        first
            .or_else(|| self.poll_free(now_ns))
            .or_else(|| self.resume(now_ns, None))
    }

    /// Gives a worker back what it was interrupted in.
    fn resume(&mut self, now_ns: u64, before: Option<Option<u64>>) -> Option<Dispatch> {
        let Self {
            jobs,
            bound,
            discipline,
            workers,
            control,
            ..
        } = self;
        let worker = bound.next(jobs, |worker| workers.fits(worker), before)?;
        let job = bound.pop(jobs, worker)?;
        workers.occupy(worker);
        discipline.resumed(job.class);
        let served_or_waited_ns = now_ns.saturating_sub(job.arrived_ns);
        control.dispatched(
            job.class,
            served_or_waited_ns.saturating_sub(job.attained_ns),
        );
        Some(Dispatch {
            worker,
            job: job.id,
        })
    }

    #[cold]
    fn close_window(&mut self, now_ns: u64) {
        let present = self.workers.present();
        if self
            .control
            .close_window(now_ns, &mut self.plan, present, |class: ClassId| {
                self.discipline.waiting_of(class)
            })
        {
            self.replanned();
        }
    }

    fn workers_changed(&mut self) {
        self.control
            .workers_changed(&mut self.plan, self.workers.present());
        self.replanned();
    }

    fn replanned(&mut self) {
        self.discipline.replanned(&self.plan);
        self.revisions += 1;
    }
}

impl<D: Discipline, P: Placement, C: Control> Ingress for Central<D, P, C> {
    const OWNER: Owner = P::OWNER;

    #[inline]
    fn arrived(&mut self, now_ns: u64, job: Job) -> Result<(), Shed> {
        self.control.arrived(now_ns, job.class);
        self.discipline.push(&mut self.jobs, &self.plan, job)
    }

    #[inline]
    fn poll(&mut self, now_ns: u64) -> Option<Dispatch> {
        if self.bound.waiting() > 0 {
            return self.poll_bound(now_ns);
        }
        self.poll_free(now_ns)
    }

    #[inline]
    fn yielded(&mut self, _now_ns: u64, worker: WorkerId, job: Job) {
        if Self::TRACKS {
            self.workers.release(worker);
        }
        let before_ns = self.jobs.get(job.id).attained_ns;
        self.discipline
            .served(job.class, job.attained_ns - before_ns);
        if Self::TRACKS && self.bound.applies() {
            return self.bound.push(&mut self.jobs, worker, job);
        }
        self.discipline.requeue(&mut self.jobs, &self.plan, job);
    }

    #[inline]
    fn finished(&mut self, now_ns: u64, worker: WorkerId, job: JobId, cpu_ns: u64) {
        if Self::TRACKS {
            self.workers.release(worker);
        }
        self.completed(now_ns, job, cpu_ns);
    }

    fn worker_added(&mut self, _now_ns: u64, worker: WorkerId) {
        self.workers.add(worker);
        self.workers_changed();
    }

    fn worker_removed(&mut self, _now_ns: u64, worker: WorkerId) {
        self.workers.remove(worker);
        self.workers_changed();
    }

    fn grow(&mut self, capacity: usize) {
        self.jobs.grow(capacity);
    }

    fn adopt(&mut self, fresh: &Self) {
        self.placement.adopt(&fresh.placement);
        self.discipline.adopt(&fresh.discipline);
        if self.control.adopt(&fresh.control) {
            self.workers_changed();
        }
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.discipline.waiting() + self.bound.waiting()
    }

    #[inline]
    fn wants(&self, worker: WorkerId) -> bool {
        self.discipline.wants(&self.plan, worker) || self.bound.wants(worker)
    }
}

impl<D: Discipline, P: Placement, C: Control> Inspect for Central<D, P, C> {
    #[inline]
    fn peek(&self, others: usize) -> Option<&Job> {
        self.discipline.peek(&self.jobs, others)
    }

    #[inline]
    fn dispatched(&self, job: JobId) -> Option<&Job> {
        Some(self.jobs.get(job))
    }

    #[inline]
    fn index(&self, class: ClassId, attained_ns: u64) -> Option<UrgencyIndex> {
        self.discipline.index(class, attained_ns)
    }

    fn plan(&self) -> Option<&Plan> {
        self.control.plans().then_some(&self.plan)
    }

    fn revisions(&self) -> u64 {
        self.revisions
    }
}

impl<D, P, C> WithoutDispatcherWork for Central<D, P, C> {}

impl<D: Discipline, P: Placement, C: Control> Assignable for Central<D, P, C> {
    fn assign(&mut self, _now_ns: u64, shares: &GroupShares) {
        if self.control.assigned(shares) {
            self.workers_changed();
        }
    }

    fn withdraw(&mut self, class: ClassId) -> Option<JobId> {
        let job = self
            .discipline
            .take_unstarted(&self.jobs, &self.plan, Some(class))?;
        Some(job.id)
    }

    fn would_start(&self, class: ClassId) -> bool {
        let (reserved, stealable) = (self.plan.reserved(class), self.plan.stealable(class));
        Self::TRACKS && self.workers.idle().first_in(reserved, stealable).is_some()
    }
}
