//! A policy of the registry, its types behind one interface: what the pool's lock owns of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headway_policy::server::queue_lists::QueueLists;
use headway_policy::server::role::{
    Dispatch, Ingress, Local, Monitor, Next, Owner, PreemptionDecision,
};
use headway_policy::server::systems::{System, VisitInstance};
use headway_policy::{BitSet, ClassId, Job, JobId, WorkerId};

use crate::layout::PoolLayout;

/// The longest time that a running job goes on without a question to its policy, where jobs can be interrupted, ns.
const PATIENCE_NS: u64 = 5_000;

/// Where a monitor looks from, which is no worker.
const FIRST: WorkerId = WorkerId(0);

/// "Run this on that worker."
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    pub(crate) worker: WorkerId,
    pub(crate) token: JobId,
    /// The local policy's slice.
    pub(crate) slice_ns: Option<u64>,
}

/// For how long a job goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct GoesOn {
    /// Until the policy is asked again, ns.
    pub(crate) ask_after_ns: u64,
    /// So long it would answer the same, unless an [event](Decide::events) is counted, ns.
    pub(crate) holds_ns: u64,
}

/// A policy and the queues between its roles. A *token* is a job as the policy sees it: a number and a class.
pub(crate) trait Decide: Send {
    /// A token arrives. `false`: the policy's queue is full.
    fn arrived(&mut self, now_ns: u64, job: Job) -> bool;
    /// What to run on an idle worker, or on `only` if that is given. The worker is busy from now on.
    fn choose(&mut self, now_ns: u64, only: Option<WorkerId>) -> Option<Chosen>;
    /// The token is done, and its worker idle.
    fn finished(&mut self, now_ns: u64, worker: WorkerId, job: &Job, cpu_ns: u64);
    /// The token was interrupted, and its worker is idle.
    fn yielded(&mut self, now_ns: u64, worker: WorkerId, job: &Job);
    /// Takes a token of the class back that no worker began.
    fn withdraw(&mut self, class: ClassId) -> Option<JobId>;
    /// Idle workers that would find something to run.
    fn runnable(&self) -> usize;
    /// Whether this idle worker would find something to run.
    fn is_runnable(&self, worker: WorkerId) -> bool;
    /// A job that can be interrupted begins or goes on. How long until [`goes_on`](Self::goes_on) is asked, ns.
    fn started(&mut self, now_ns: u64, job: &Job, chosen: Chosen) -> u64;
    /// Whether the job that runs there goes on.
    fn goes_on(&mut self, now_ns: u64, worker: WorkerId) -> Option<GoesOn>;
    /// What has arrived, ended, been given back or been withdrawn so far, counted before the lock is released.
    fn events(&self) -> Arc<AtomicU64>;
    /// The dispatcher hears what happened, and places tokens at workers. Nothing is left to do where whoever reports an event is the dispatcher.
    fn dispatch(&mut self, now_ns: u64);
    /// Whether the dispatcher has something to hear.
    fn awaits_dispatcher(&self) -> bool;
}

/// Builds a [`Decide`] of whichever system the spec names.
pub(crate) struct Deciding {
    pub(crate) workers: usize,
    pub(crate) layout: PoolLayout,
}

impl VisitInstance for Deciding {
    type Output = Box<dyn Decide>;

    fn visit_instance<I, L, M>(self, system: System<I, L, M>) -> Self::Output
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        Box::new(Decisions {
            ingress: system.ingress,
            locals: system.locals,
            monitor: system.monitor,
            queues: QueueLists::new(self.workers, system.shared_queues),
            idle: BitSet::range(0, self.workers),
            slices: vec![WorkerSlice::default(); self.workers],
            events: Arc::default(),
            has_dispatcher: self.layout == PoolLayout::Dedicated,
            unheard: VecDeque::new(),
        })
    }
}

/// What the dispatcher is to hear.
#[derive(Clone, Copy)]
enum Notice {
    Arrived(Job),
    Finished {
        worker: WorkerId,
        token: JobId,
        cpu_ns: u64,
    },
    Yielded {
        worker: WorkerId,
        job: Job,
    },
}

struct Decisions<I, L, M> {
    ingress: I,
    locals: Vec<L>,
    monitor: M,
    queues: QueueLists,
    idle: BitSet,
    slices: Vec<WorkerSlice>,
    events: Arc<AtomicU64>,
    /// Whether another thread is the dispatcher, and hears of events later.
    has_dispatcher: bool,
    /// What it did not hear yet, oldest first.
    unheard: VecDeque<Notice>,
}

/// When a worker's job is looked at again.
#[derive(Clone, Default)]
struct WorkerSlice {
    epoch: u64,
    /// Whether the monitor watches this assignment.
    is_watched: bool,
    /// When the local policy's slice is over.
    over_ns: Option<u64>,
    /// When the monitor looks at it.
    look_ns: Option<u64>,
    /// Whether the monitor interrupts it.
    is_asked: bool,
}

impl WorkerSlice {
    fn ask_after_ns(&self, now_ns: u64) -> u64 {
        let due = [self.over_ns, self.look_ns].into_iter().flatten().min();
        due.map_or(PATIENCE_NS, |due_ns| due_ns.saturating_sub(now_ns))
            .clamp(1, PATIENCE_NS)
    }
}

impl<I: Ingress, L: Local, M: Monitor> Decisions<I, L, M> {
    /// Tells the dispatcher: at once, or by its thread. `false`: the policy's queue is full. Inlined, so that whoever is the dispatcher makes no notice.
    #[inline(always)]
    fn tell(&mut self, now_ns: u64, notice: Notice) -> bool {
        self.count_event();
        if self.has_dispatcher {
            self.unheard.push_back(notice);
            return true;
        }
        let is_heard = self.hear(now_ns, notice);
        self.place(now_ns);
        is_heard
    }

    #[inline(always)]
    fn hear(&mut self, now_ns: u64, notice: Notice) -> bool {
        match notice {
            Notice::Arrived(job) => return self.ingress.arrived(now_ns, job).is_ok(),
            Notice::Finished {
                worker,
                token,
                cpu_ns,
            } => self.ingress.finished(now_ns, worker, token, cpu_ns),
            Notice::Yielded { worker, job } => self.ingress.yielded(now_ns, worker, job),
        }
        true
    }

    fn place(&mut self, now_ns: u64) {
        while let Some(Dispatch { worker, job }) = self.ingress.poll(now_ns) {
            self.queues.push(worker, job);
        }
    }

    /// The youngest token of the class of which the dispatcher did not hear yet.
    fn withdraw_unheard(&mut self, class: ClassId) -> Option<JobId> {
        let is_of_class =
            |notice: &Notice| matches!(notice, Notice::Arrived(job) if job.class == class);
        let at = self.unheard.iter().rposition(is_of_class)?;
        match self.unheard.remove(at) {
            Some(Notice::Arrived(job)) => Some(job.id),
            _ => None,
        }
    }

    /// Whether this worker may find something, if it is idle.
    #[inline]
    fn may_find(&self, worker: usize) -> bool {
        L::STEALS && self.queues.waiting() > 0 || self.queues.has(WorkerId(worker as u16))
    }

    /// The first idle worker from this one on that may find something.
    #[inline]
    fn candidate_from(&self, worker: Option<usize>) -> Option<usize> {
        let mut next = worker;
        while let Some(worker) = next
            && !self.may_find(worker)
        {
            next = self.idle.next_after(worker);
        }
        next
    }

    fn stopped(&mut self, now_ns: u64, worker: WorkerId) {
        let slice = &mut self.slices[worker.index()];
        if std::mem::take(&mut slice.is_watched) {
            self.monitor.stopped(now_ns, worker, slice.epoch);
        }
        self.idle.insert(worker.index());
    }

    /// Whoever holds the lock is alone with the count.
    #[inline]
    fn count_event(&self) {
        let events = self.events.load(Ordering::Relaxed);
        self.events.store(events + 1, Ordering::Release);
    }

    /// Has the monitor look at the queues, and marks the workers that it interrupts.
    fn interrupt(&mut self, now_ns: u64) {
        let due = self.monitor.next_deadline_ns();
        if due.is_some_and(|due_ns| now_ns >= due_ns) {
            let congested = self.monitor.tick(now_ns, &self.queues.seen_by(FIRST));
            self.queues.set_congested(congested);
        }
        if !M::POLLS {
            return;
        }
        while let Some(preempt) =
            self.monitor
                .poll(now_ns, &self.ingress, &self.queues.seen_by(FIRST))
        {
            let slice = &mut self.slices[preempt.worker.index()];
            slice.is_asked |= slice.epoch == preempt.epoch && slice.is_watched;
        }
    }
}

impl<I, L, M> Decide for Decisions<I, L, M>
where
    I: Ingress + Send,
    L: Local + Send,
    M: Monitor + Send,
{
    fn arrived(&mut self, now_ns: u64, job: Job) -> bool {
        self.tell(now_ns, Notice::Arrived(job))
            && (I::OWNER != Owner::Nobody || self.queues.push_unplaced(job.id))
    }

    fn choose(&mut self, now_ns: u64, only: Option<WorkerId>) -> Option<Chosen> {
        if self.queues.waiting() == 0 {
            return None;
        }
        let mut next = match only {
            Some(worker) => Some(worker.index()).filter(|_| self.is_runnable(worker)),
            None => self.candidate_from(self.idle.first()),
        };
        while let Some(index) = next {
            let worker = WorkerId(index as u16);
            match self.locals[index].next(now_ns, &mut self.queues.seen_by(worker)) {
                Next::Run { job, slice_ns } => {
                    self.idle.remove(index);
                    return Some(Chosen {
                        worker,
                        token: job,
                        slice_ns,
                    });
                }
                Next::Retry => {}
                Next::Idle if only.is_some() => return None,
                Next::Idle => next = self.candidate_from(self.idle.next_after(index)),
            }
        }
        None
    }

    fn finished(&mut self, now_ns: u64, worker: WorkerId, job: &Job, cpu_ns: u64) {
        let index = worker.index();
        self.stopped(now_ns, worker);
        self.locals[index].finished(now_ns, job, cpu_ns, &mut self.queues.seen_by(worker));
        let finished = Notice::Finished {
            worker,
            token: job.id,
            cpu_ns,
        };
        self.tell(now_ns, finished);
    }

    fn yielded(&mut self, now_ns: u64, worker: WorkerId, job: &Job) {
        let index = worker.index();
        self.stopped(now_ns, worker);
        if self.locals[index].yielded(now_ns, job, &mut self.queues.seen_by(worker)) {
            self.place(now_ns);
        } else if I::OWNER == Owner::Nobody {
            let fits = self.queues.push_unplaced(job.id);
            assert!(
                fits,
                "the queue of all that arrives has room for what came from it"
            );
        } else {
            self.tell(now_ns, Notice::Yielded { worker, job: *job });
        }
    }

    fn withdraw(&mut self, class: ClassId) -> Option<JobId> {
        self.count_event();
        self.withdraw_unheard(class)
            .or_else(|| self.ingress.withdraw(class))
    }

    fn dispatch(&mut self, now_ns: u64) {
        while let Some(notice) = self.unheard.pop_front() {
            self.count_event();
            let is_heard = self.hear(now_ns, notice);
            assert!(is_heard, "no policy's queue is shorter than the pool's");
            self.place(now_ns);
        }
    }

    fn awaits_dispatcher(&self) -> bool {
        !self.unheard.is_empty()
    }

    fn runnable(&self) -> usize {
        let waiting = self.queues.waiting();
        let (mut runnable, mut next) = (0, self.idle.first());
        while let Some(worker) = next
            && runnable < waiting
        {
            runnable += usize::from(self.may_find(worker));
            next = self.idle.next_after(worker);
        }
        runnable
    }

    fn is_runnable(&self, worker: WorkerId) -> bool {
        self.idle.contains(worker.index()) && self.may_find(worker.index())
    }

    fn started(&mut self, now_ns: u64, job: &Job, chosen: Chosen) -> u64 {
        let Chosen {
            worker, slice_ns, ..
        } = chosen;
        let slice = &mut self.slices[worker.index()];
        slice.epoch += 1;
        slice.is_watched = true;
        slice.is_asked = false;
        slice.over_ns = slice_ns.map(|ns| now_ns + ns);
        let epoch = slice.epoch;
        let queues = self.queues.seen_by(worker);
        let look = self.monitor.started(now_ns, worker, job, epoch, &queues);
        let slice = &mut self.slices[worker.index()];
        slice.look_ns = look.map(|ns| now_ns + ns);
        slice.ask_after_ns(now_ns)
    }

    fn events(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.events)
    }

    fn goes_on(&mut self, now_ns: u64, worker: WorkerId) -> Option<GoesOn> {
        self.interrupt(now_ns);
        let index = worker.index();
        let queues = self.queues.seen_by(worker);
        let slice = &mut self.slices[index];
        if slice.is_asked {
            return None;
        }
        if slice.over_ns.is_some_and(|over_ns| now_ns >= over_ns) {
            let longer_ns = self.locals[index].renew(now_ns, &queues)?;
            slice.over_ns = Some(now_ns + longer_ns);
        }
        let mut holds_ns = 0;
        if slice.look_ns.is_some_and(|look_ns| now_ns >= look_ns) {
            let decision = self.monitor.expired(now_ns, worker, &self.ingress, &queues);
            slice.look_ns = match decision {
                PreemptionDecision::Preempt => return None,
                PreemptionDecision::Renew(ns) | PreemptionDecision::RenewAlone(ns) => {
                    Some(now_ns + ns)
                }
                PreemptionDecision::RenewWhileQuiet {
                    each_ns,
                    holds_ns: ns,
                } => {
                    // A slice of the local policy, and a time of the monitor's own, are not put off.
                    if slice.over_ns.is_none() && self.monitor.next_deadline_ns().is_none() {
                        holds_ns = ns;
                    }
                    Some(now_ns + each_ns)
                }
                PreemptionDecision::Leave => None,
            };
        }
        Some(GoesOn {
            ask_after_ns: slice.ask_after_ns(now_ns),
            holds_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Deciding, GoesOn, WorkerId};
    use crate::layout::PoolLayout;
    use headway_policy::server::systems;
    use headway_policy::{ClassId, Job, JobId, Shape};
    use std::sync::atomic::Ordering;

    /// What runs alone is not looked at again before something happens; whatever happens is counted, and looked at.
    #[test]
    fn a_decision_holds_until_an_event_is_counted() {
        let shape = Shape::new(1).class(0, 0.5).class(0, 0.5);
        let deciding = || Deciding {
            workers: 1,
            layout: PoolLayout::Inline,
        };
        let job = |id, class| Job::new(JobId(id), ClassId(class), 0);
        for (policy, expected_ns) in [("gittins", u64::MAX), ("mlfq", 0)] {
            let mut decide = systems::with(&policy.parse().unwrap(), &shape, deciding()).unwrap();
            let events = decide.events();
            let events = move || events.load(Ordering::Relaxed);
            assert!(decide.arrived(0, job(0, 0)));
            let chosen = decide.choose(0, None).expect("a worker is idle");
            decide.started(0, &job(0, 0), chosen);
            let before = events();
            let alone = decide.goes_on(5_000, chosen.worker);
            let expected = GoesOn {
                ask_after_ns: 5_000,
                holds_ns: expected_ns,
            };
            assert_eq!((alone, events()), (Some(expected), before), "{policy}");
            assert!(decide.arrived(6_000, job(1, 1)));
            assert_ne!(events(), before, "{policy}: an arrival");
            assert_eq!(decide.goes_on(10_000, chosen.worker), None, "{policy}");
            let before = events();
            let mut given_back = job(0, 0);
            given_back.attained_ns = 10_000;
            decide.yielded(10_000, WorkerId(0), &given_back);
            assert_ne!(events(), before, "{policy}: a job that is given back");
            let next = decide.choose(10_000, None).expect("the worker is idle");
            assert_eq!(next.token, JobId(1), "{policy}");
            decide.started(10_000, &job(1, 1), next);
            let before = events();
            decide.finished(11_000, next.worker, &job(1, 1), 1_000);
            assert_ne!(events(), before, "{policy}: an end");
        }
    }
}
