//! Records every event that the roles receive, and holds the engine to it: every request is done
//! exactly once, by as much service as it asked for, on one worker at a time.

use headway_policy::server::role::GroupShares;
use headway_policy::server::role::{
    Assignable, Backlog, Dispatch, DispatcherSlice, DispatcherWork, Heeding, Ingress, Inspect,
    Monitor, Owner, Polling, Preempt, PreemptionDecision, Shed, Ticking, UrgencyIndex,
};
use headway_policy::server::systems::System;
use headway_policy::{ClassId, Job, JobId, Plan, Shape, WorkerId};
use headway_sim::{Experiment, Outcome};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

/// The state at the time of an interrupt decision.
pub(crate) struct Sight {
    /// Whom it hits.
    pub(crate) job: Job,
    /// Requests waiting at the ingress.
    pub(crate) waiting: usize,
    /// Requests waiting at that worker.
    pub(crate) own: usize,
}

/// Runs a composition with books kept; `may_interrupt` says which interruptions are in order.
pub(crate) fn audited<I, L, M>(
    experiment: &Experiment,
    may_interrupt: fn(&Sight) -> bool,
    build: impl FnOnce(&Shape) -> System<I, L, M>,
) -> Outcome
where
    I: Ingress + Send + 'static,
    L: headway_policy::server::role::Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    let books = Arc::new(Mutex::new(Books::default()));
    let wrap = |shape: &Shape| {
        let system = build(shape);
        let mut open = books.lock().expect("no panic before");
        open.on = vec![None; shape.workers];
        open.last_epoch = vec![0; shape.workers];
        open.depth = system.depth;
        System {
            name: system.name,
            params: system.params,
            ingress: Audited(system.ingress, books.clone(), may_interrupt),
            locals: system.locals,
            monitor: Audited(system.monitor, books.clone(), may_interrupt),
            depth: system.depth,
            shared_queues: system.shared_queues,
            sheds_first: system.sheds_first,
            preemption_costs: system.preemption_costs,
        }
    };
    let outcome = experiment.run_system(wrap).expect("a valid experiment");
    let books = books.lock().expect("no panic before");
    assert_eq!(books.attained_ns.len(), 0, "requests were left behind");
    assert_eq!(books.done, outcome.run.meta.requests);
    assert_eq!(
        books.stops - books.done_by_workers,
        outcome.run.meta.preemptions
    );
    let measured: u64 = outcome.run.classes.iter().map(|class| class.count).sum();
    assert_eq!(measured, books.done - books.done / 10);
    outcome
}

#[derive(Default)]
struct Books {
    depth: usize,
    /// Service so far of every request there is.
    attained_ns: HashMap<JobId, u64>,
    /// Per worker what it runs, since when, as which assignment.
    on: Vec<Option<(Job, u64, u64)>>,
    /// The requests that only the dispatcher may run.
    on_dispatcher: Option<JobId>,
    last_epoch: Vec<u64>,
    done: u64,
    done_by_workers: u64,
    stops: u64,
}

impl Books {
    /// No worker holds more than it may.
    fn look<Q: Backlog>(&self, queues: &Q) {
        for (worker, on) in self.on.iter().enumerate() {
            let held = queues.len(WorkerId(worker as u16)) + usize::from(on.is_some());
            assert!(held <= self.depth, "worker {worker} holds {held}");
        }
    }
}

#[derive(Clone)]
struct Audited<R>(R, Arc<Mutex<Books>>, fn(&Sight) -> bool);

impl<R> Audited<R> {
    fn books(&self) -> MutexGuard<'_, Books> {
        self.1.lock().expect("no panic before")
    }

    fn judge<I: Ingress, Q: Backlog>(&self, worker: WorkerId, ingress: &I, queues: &Q) {
        let (job, ..) = self.books().on[worker.index()].expect("it runs");
        let sight = Sight {
            job,
            waiting: ingress.waiting(),
            own: queues.len(worker),
        };
        assert!((self.2)(&sight), "{job:?} was interrupted without need");
    }
}

impl<I: Ingress> Ingress for Audited<I> {
    const OWNER: Owner = I::OWNER;

    fn arrived(&mut self, now_ns: u64, job: Job) -> Result<(), Shed> {
        let known = self.books().attained_ns.insert(job.id, 0);
        assert_eq!(known, None, "{job:?} is there twice");
        self.0.arrived(now_ns, job)
    }

    fn poll(&mut self, now_ns: u64) -> Option<Dispatch> {
        self.0.poll(now_ns)
    }

    fn yielded(&mut self, now_ns: u64, worker: WorkerId, job: Job) {
        assert_eq!(self.books().attained_ns[&job.id], job.attained_ns);
        self.0.yielded(now_ns, worker, job);
    }

    fn finished(&mut self, now_ns: u64, worker: WorkerId, job: JobId, cpu_ns: u64) {
        let mut books = self.books();
        let attained_ns = books.attained_ns.remove(&job);
        assert_eq!(attained_ns, Some(cpu_ns), "{job:?} was not served in full");
        books.done += 1;
        books.done_by_workers += 1;
        drop(books);
        self.0.finished(now_ns, worker, job, cpu_ns);
    }

    fn worker_added(&mut self, now_ns: u64, worker: WorkerId) {
        self.0.worker_added(now_ns, worker);
    }

    fn worker_removed(&mut self, now_ns: u64, worker: WorkerId) {
        self.0.worker_removed(now_ns, worker);
    }

    fn grow(&mut self, capacity: usize) {
        self.0.grow(capacity);
    }

    fn adopt(&mut self, fresh: &Self) {
        self.0.adopt(&fresh.0);
    }

    fn waiting(&self) -> usize {
        self.0.waiting()
    }

    fn wants(&self, worker: WorkerId) -> bool {
        self.0.wants(worker)
    }
}

impl<I: Ingress> Inspect for Audited<I> {
    fn peek(&self, others: usize) -> Option<&Job> {
        self.0.peek(others)
    }

    fn dispatched(&self, job: JobId) -> Option<&Job> {
        self.0.dispatched(job)
    }

    fn index(&self, class: ClassId, attained_ns: u64) -> Option<UrgencyIndex> {
        self.0.index(class, attained_ns)
    }

    fn plan(&self) -> Option<&Plan> {
        self.0.plan()
    }

    fn revisions(&self) -> u64 {
        self.0.revisions()
    }
}

impl<I: Ingress> DispatcherWork for Audited<I> {
    const WORKS: bool = I::WORKS;

    fn work(&mut self, now_ns: u64) -> Option<DispatcherSlice> {
        let slice = self.0.work(now_ns)?;
        let mut books = self.books();
        let before = *books.on_dispatcher.get_or_insert(slice.job);
        assert_eq!(before, slice.job, "it has one request of its own at a time");
        let elsewhere = books.on.iter().flatten().any(|(on, ..)| on.id == slice.job);
        assert!(!elsewhere && books.attained_ns.contains_key(&slice.job));
        drop(books);
        Some(slice)
    }

    fn worked(&mut self, now_ns: u64, job: Job, cpu_ns: Option<u64>) {
        let mut books = self.books();
        let attained = books.attained_ns.get_mut(&job.id).expect("it was there");
        assert!(*attained < job.attained_ns, "a slice serves");
        *attained = job.attained_ns;
        if let Some(cpu_ns) = cpu_ns {
            assert_eq!(books.attained_ns.remove(&job.id), Some(cpu_ns));
            books.on_dispatcher = None;
            books.done += 1;
        }
        drop(books);
        self.0.worked(now_ns, job, cpu_ns);
    }
}

impl<I: Ingress> Assignable for Audited<I> {
    fn assign(&mut self, now_ns: u64, shares: &GroupShares) {
        self.0.assign(now_ns, shares);
    }

    fn withdraw(&mut self, class: ClassId) -> Option<JobId> {
        self.0.withdraw(class)
    }

    fn would_start(&self, class: ClassId) -> bool {
        self.0.would_start(class)
    }
}

impl<M: Monitor> Monitor for Audited<M> {
    const PREEMPTS: bool = M::PREEMPTS;
    const ON_DISPATCHER: bool = M::ON_DISPATCHER;

    fn keeps_times(&self) -> bool {
        self.0.keeps_times()
    }

    fn started<Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        job: &Job,
        epoch: u64,
        queues: &Q,
    ) -> Option<u64> {
        let mut books = self.books();
        assert_ne!(
            books.on_dispatcher,
            Some(job.id),
            "only its dispatcher may go on"
        );
        let elsewhere = books.on.iter().flatten().any(|(on, ..)| on.id == job.id);
        assert!(!elsewhere && books.attained_ns.contains_key(&job.id));
        let before = books.on[worker.index()].replace((*job, now_ns, epoch));
        assert_eq!(before, None, "{worker:?} runs two requests");
        let last = std::mem::replace(&mut books.last_epoch[worker.index()], epoch);
        assert!(last < epoch, "a late flag would hit the next request");
        drop(books);
        self.0.started(now_ns, worker, job, epoch, queues)
    }

    fn stopped(&mut self, now_ns: u64, worker: WorkerId, epoch: u64) {
        let mut books = self.books();
        let (job, since_ns, begun) = books.on[worker.index()].take().expect("it runs");
        assert_eq!(begun, epoch);
        books.stops += 1;
        *books.attained_ns.entry(job.id).or_default() += now_ns - since_ns;
        drop(books);
        self.0.stopped(now_ns, worker, epoch);
    }

    fn expired<I: Ingress, Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        ingress: &I,
        queues: &Q,
    ) -> PreemptionDecision {
        self.books().look(queues);
        let verdict = self.0.expired(now_ns, worker, ingress, queues);
        if verdict == PreemptionDecision::Preempt {
            self.judge(worker, ingress, queues);
        }
        verdict
    }

    fn adopt(&mut self, fresh: &Self) {
        self.0.adopt(&fresh.0);
    }
}

impl<M: Monitor> Heeding for Audited<M> {
    const HEEDS: bool = M::HEEDS;

    fn said_long<Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        job: &Job,
        epoch: u64,
        queues: &Q,
    ) -> Option<u64> {
        self.0.said_long(now_ns, worker, job, epoch, queues)
    }
}

impl<M: Monitor> Polling for Audited<M> {
    const POLLS: bool = M::POLLS;

    fn poll<I: Ingress, Q: Backlog>(
        &mut self,
        now_ns: u64,
        ingress: &I,
        queues: &Q,
    ) -> Option<Preempt> {
        self.books().look(queues);
        let preempt = self.0.poll(now_ns, ingress, queues)?;
        self.judge(preempt.worker, ingress, queues);
        Some(preempt)
    }
}

impl<M: Monitor> Ticking for Audited<M> {
    fn next_deadline_ns(&self) -> Option<u64> {
        self.0.next_deadline_ns()
    }

    fn tick<Q: Backlog>(&mut self, now_ns: u64, queues: &Q) -> u64 {
        self.0.tick(now_ns, queues)
    }
}
