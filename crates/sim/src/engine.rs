//! The event loop: it owns the time, carries decisions out and makes none.
//!
//! Every worker has at most one event of its own (it stops running what it runs), kept in a
//! [`Tournament`]; arrivals come in order by themselves; whatever else takes time (hand-offs,
//! completion notices, cores coming and going) lies in a heap that is empty in an ideal system.

mod queues;
mod requests;
mod tournament;

use crate::backlog::Backlog;
use crate::experiment::{Classifier, Experiment, Length};
use crate::outcome::{Outcome, Totals, reservation_of};
use headway_policy::role::{Dispatch, Ingress, Local, Monitor, Next, Owner};
use headway_policy::systems::{System, Visit};
use headway_policy::{ClassId, Job, JobId, Resume, Rng, WorkerId};
use headway_report::{ClassMeta, Recorder, Reservation};
use headway_workload::{Arrival, Generator};
use queues::WorkerQueues;
use requests::{Request, Requests};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tournament::{NEVER, Tournament};

/// A revision of the plan, for showing how reservations followed the traffic.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanChange {
    /// When, in virtual time.
    pub at_ns: u64,
    /// The plan from then on.
    pub reservation: Vec<Reservation>,
}

/// Runs an experiment under whatever system its policy names.
pub(crate) struct Run<'a>(pub(crate) &'a Experiment);

impl Visit for Run<'_> {
    type Output = Outcome;

    fn visit<I, L, M>(self, mut system: System<I, L, M>) -> Outcome
    where
        I: Ingress,
        L: Local,
        M: Monitor,
    {
        let (name, params) = (system.name, std::mem::take(&mut system.params));
        let mut engine = Engine::new(self.0, system);
        engine.run();
        engine.into_outcome(name, &params)
    }
}

/// What is under way besides arrivals and running requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Delayed {
    /// A request on its way to a worker.
    Handoff { worker: WorkerId, job: JobId },
    /// A completion the dispatcher does not know of yet.
    Notice {
        worker: WorkerId,
        job: JobId,
        cpu_ns: u64,
    },
    /// An unfinished request the dispatcher does not know to be back yet.
    GivenBack {
        worker: WorkerId,
        job: JobId,
        attained_ns: u64,
    },
    /// A core that comes or goes.
    Core { worker: WorkerId, present: bool },
}

/// What a worker is at.
#[derive(Clone, Copy, Default)]
struct Worker {
    running: Option<JobId>,
    /// When the present stretch of service began, the per-request overhead behind it.
    serving_from_ns: u64,
    epoch: u64,
}

struct Engine<'a, I, L, M> {
    experiment: &'a Experiment,
    ingress: I,
    locals: Vec<L>,
    monitor: M,
    requests: Requests,
    queues: WorkerQueues,
    workers: Vec<Worker>,
    stops: Tournament,
    delayed: BinaryHeap<Reverse<(u64, u64, Delayed)>>,
    delayed_count: u64,
    arrivals: Arrivals,
    recorder: Recorder,
    backlog: Backlog,
    totals: Totals,
    idle: usize,
    now_ns: u64,
    revisions: u64,
    plan_changes: Vec<PlanChange>,
}

/// The arrivals still to come, as the dispatcher gets to see them.
struct Arrivals {
    generator: Generator,
    next: Option<Arrival>,
    /// When the dispatcher has worked its way to `next`.
    visible_ns: u64,
    dispatch_ns: u64,
    left: u64,
    until_ns: u64,
    /// Arrivals before this index are not measured.
    counted_from: u64,
    index: u64,
    classifier: Rng,
}

impl Arrivals {
    fn new(experiment: &Experiment, owner: Owner) -> Self {
        let (left, until_ns) = match experiment.length {
            Length::Requests(requests) => (requests, u64::MAX),
            Length::Duration(ns) => (u64::MAX, ns),
        };
        let mut arrivals = Self {
            generator: Generator::new(&experiment.workload, experiment.offered, experiment.seed),
            next: None,
            visible_ns: 0,
            dispatch_ns: if owner == Owner::Dispatcher {
                experiment.costs.dispatch_ns
            } else {
                0
            },
            left,
            until_ns,
            counted_from: (experiment.warm_up * experiment.expected_requests()) as u64,
            index: 0,
            classifier: Rng::new(experiment.seed ^ 0xC1A5_51F1_E72A_4D03),
        };
        arrivals.advance();
        arrivals
    }

    /// Draws the next arrival. A serial dispatcher of constant cost sees requests in order, each
    /// one cost after the later of its arrival and the last.
    #[inline]
    fn advance(&mut self) {
        self.next = match self.left {
            0 => None,
            _ => self
                .generator
                .next()
                .filter(|arrival| arrival.at_ns < self.until_ns),
        };
        let Some(arrival) = &self.next else {
            self.visible_ns = NEVER;
            return;
        };
        self.left -= 1;
        self.index += 1;
        self.visible_ns = arrival.at_ns.max(self.visible_ns) + self.dispatch_ns;
    }
}

impl<'a, I: Ingress, L: Local, M: Monitor> Engine<'a, I, L, M> {
    fn new(experiment: &'a Experiment, system: System<I, L, M>) -> Self {
        let workload = &experiment.workload;
        let classes: Vec<ClassMeta> = workload
            .union()
            .map(|class| ClassMeta::new(&class.name, class.mean_ns()))
            .collect();
        let mut engine = Self {
            experiment,
            ingress: system.ingress,
            locals: system.locals,
            monitor: system.monitor,
            requests: Requests::default(),
            queues: WorkerQueues::new(experiment.workers),
            workers: vec![Worker::default(); experiment.workers],
            stops: Tournament::new(experiment.workers),
            delayed: BinaryHeap::new(),
            delayed_count: 0,
            arrivals: Arrivals::new(experiment, I::OWNER),
            backlog: Backlog::new(classes.len(), experiment.expected_requests() as u64),
            recorder: Recorder::new(&classes),
            totals: Totals::default(),
            idle: experiment.workers,
            now_ns: 0,
            revisions: 0,
            plan_changes: Vec::new(),
        };
        for change in &experiment.core_changes {
            let core = Delayed::Core {
                worker: change.worker,
                present: change.present,
            };
            engine.delay(change.at_ns, core);
        }
        engine
    }

    /// Until nothing is left: after the last arrival the system drains. On a tie what ends comes
    /// before what begins: first requests, then quanta.
    fn run(&mut self) {
        self.decide();
        loop {
            let stop_ns = self.stops.first_ns();
            let delayed_ns = self
                .delayed
                .peek()
                .map_or(NEVER, |Reverse((at_ns, ..))| *at_ns);
            let deadline_ns = self.deadline_ns();
            let begins_ns = delayed_ns.min(self.arrivals.visible_ns);
            let next_ns = stop_ns.min(begins_ns);
            if next_ns == NEVER {
                break;
            }
            if deadline_ns < stop_ns && deadline_ns <= begins_ns {
                self.deadline(deadline_ns);
                continue;
            }
            self.advance_to(next_ns);
            if stop_ns == next_ns {
                self.ran_out(self.stops.first());
            } else if delayed_ns == next_ns {
                self.delayed_event();
            } else {
                self.arrival();
            }
            self.decide();
        }
    }

    #[inline]
    fn deadline_ns(&self) -> u64 {
        let ingress = self.ingress.next_deadline_ns().unwrap_or(NEVER);
        ingress.min(self.monitor.next_deadline_ns().unwrap_or(NEVER))
    }

    /// A role asked to be polled although nothing happens.
    fn deadline(&mut self, at_ns: u64) {
        assert!(
            at_ns > self.now_ns,
            "a role polled at {} ns still asks to be polled at {at_ns} ns",
            self.now_ns
        );
        self.advance_to(at_ns);
        self.decide();
    }

    #[inline]
    fn advance_to(&mut self, now_ns: u64) {
        if self.idle > 0 && self.ingress.waiting() + self.queues.waiting() > 0 {
            self.totals.wasted_ns += self.idle as u64 * (now_ns - self.now_ns);
        }
        self.now_ns = now_ns;
    }

    #[inline]
    fn arrival(&mut self) {
        let Some(arrival) = self.arrivals.next else {
            return;
        };
        let counted = self.arrivals.index > self.arrivals.counted_from;
        let classes = self.recorder.classes().len();
        let taken_for = match self.experiment.classifier {
            Classifier::Exact => arrival.class,
            Classifier::Random => self.arrivals.classifier.below(classes) as u16,
        };
        self.arrivals.advance();
        self.totals.arrived(&arrival, counted);
        let (id, grown) = self
            .requests
            .insert(Request::new(&arrival, taken_for, counted));
        if grown {
            self.ingress.grow(self.requests.capacity());
        }
        let job = self.job(id);
        match self.ingress.arrived(self.now_ns, job) {
            Ok(()) => self.backlog.entered(usize::from(arrival.class)),
            Err(_) => return self.shed(id),
        }
        if I::OWNER == Owner::Nobody {
            self.share_arrival(id);
        }
    }

    /// A request that nobody places; the bound is that of the shared queue.
    fn share_arrival(&mut self, id: JobId) {
        if self.queues.shared_len() >= self.experiment.queue_limit {
            return self.shed_admitted(id);
        }
        self.queues.push_shared(id);
        self.wake(0);
    }

    fn shed_admitted(&mut self, id: JobId) {
        self.backlog.left(usize::from(self.requests.get(id).class));
        self.shed(id);
    }

    fn shed(&mut self, id: JobId) {
        let request = self.requests.get(id);
        self.totals.shed += 1;
        if request.counted {
            self.recorder.dropped(usize::from(request.class));
        }
        self.requests.remove(id);
    }

    /// Carries out every decision there is. What an interruption gives back and whom it frees are
    /// the ingress's business again.
    #[inline]
    fn decide(&mut self) {
        loop {
            while let Some(dispatch) = self.ingress.poll(self.now_ns) {
                self.dispatch(dispatch);
            }
            let waiting = self.ingress.waiting();
            let queues = self.queues.seen_by(0);
            let Some(preempt) = self.monitor.poll(self.now_ns, waiting, &queues) else {
                return;
            };
            let worker = &self.workers[preempt.worker.index()];
            if worker.epoch == preempt.epoch {
                self.stopped(preempt.worker.index());
            }
        }
    }

    #[inline]
    fn dispatch(&mut self, Dispatch { worker, job }: Dispatch) {
        match (I::OWNER, self.experiment.costs.handoff_ns) {
            (Owner::Dispatcher, handoff_ns @ 1..) => {
                self.delay(self.now_ns + handoff_ns, Delayed::Handoff { worker, job });
            }
            _ => self.receive(worker, job),
        }
    }

    /// A request is in a worker's queue. An idle worker is woken at once by work it may take.
    #[inline]
    fn receive(&mut self, worker: WorkerId, job: JobId) {
        if self.queues.len(worker.index()) >= self.queue_limit() {
            return self.shed_admitted(job);
        }
        self.queues.push(worker, job);
        self.look_for_work(worker.index());
        self.wake(worker.index() + 1);
    }

    /// There is new work. Idle workers that may take it look, from `first` on.
    #[inline]
    fn wake(&mut self, first: usize) {
        if L::STEALS && self.queues.waiting() > 0 && self.idle > 0 {
            let workers = self.workers.len();
            for offset in 0..workers {
                self.look_for_work((first + offset) % workers);
            }
        }
    }

    /// Where the network steers, the bound is that of the workers' own queues.
    #[inline]
    fn queue_limit(&self) -> usize {
        match I::OWNER {
            Owner::Dispatcher | Owner::Nobody => usize::MAX,
            Owner::Steering => self.experiment.queue_limit,
        }
    }

    /// If the worker is idle, it asks its policy what to run.
    #[inline]
    fn look_for_work(&mut self, worker: usize) {
        while self.workers[worker].running.is_none() {
            let mut view = self.queues.seen_by(worker);
            match self.locals[worker].next(self.now_ns, &mut view) {
                Next::Run { job, slice_ns } => self.start(worker, job, slice_ns),
                Next::Retry => {}
                Next::Idle => return,
            }
        }
    }

    #[inline]
    fn start(&mut self, worker: usize, job: JobId, slice_ns: Option<u64>) {
        let request = self.requests.get(job);
        let left_ns = request.service_ns - request.attained_ns;
        let stretch_ns = slice_ns.map_or(left_ns, |slice_ns| slice_ns.min(left_ns));
        let serving_from_ns = self.now_ns + self.experiment.costs.overhead_ns;
        let epoch = self.workers[worker].epoch + 1;
        self.workers[worker] = Worker {
            running: Some(job),
            serving_from_ns,
            epoch,
        };
        self.idle -= 1;
        self.totals.busy_ns += self.experiment.costs.overhead_ns;
        self.stops.set(worker, serving_from_ns + stretch_ns);
        let id = WorkerId(worker as u16);
        self.ingress.started(self.now_ns, id, job);
        self.monitor.started(self.now_ns, id, &self.job(job), epoch);
    }

    /// What the worker runs is finished, or its slice is over and perhaps renewed.
    #[inline]
    fn ran_out(&mut self, worker: usize) {
        match self.renewal_ns(worker) {
            Some(ns) => self.stops.set(worker, self.now_ns + ns),
            None => self.stopped(worker),
        }
    }

    #[inline]
    fn renewal_ns(&mut self, worker: usize) -> Option<u64> {
        let running = self.workers[worker];
        let request = self.requests.get(running.running?);
        let served_ns = self.now_ns - running.serving_from_ns;
        let left_ns = request.service_ns - request.attained_ns - served_ns;
        if left_ns == 0 {
            return None;
        }
        let queues = self.queues.seen_by(worker);
        let slice_ns = self.locals[worker].renew(self.now_ns, &queues)?;
        Some(slice_ns.min(left_ns))
    }

    /// The worker stops running what it runs: finished, at the end of its slice, or interrupted.
    #[inline]
    fn stopped(&mut self, worker: usize) {
        let Worker {
            running,
            serving_from_ns,
            epoch,
        } = self.workers[worker];
        let Some(id) = running else { return };
        let served_ns = self.now_ns.saturating_sub(serving_from_ns);
        self.workers[worker].running = None;
        self.idle += 1;
        self.stops.set(worker, NEVER);
        self.totals.busy_ns += served_ns;
        self.monitor
            .stopped(self.now_ns, WorkerId(worker as u16), epoch);
        let request = self.requests.get_mut(id);
        request.attained_ns += served_ns;
        if request.attained_ns < request.service_ns {
            self.yielded(worker, id);
            self.look_for_work(worker);
            self.wake(worker + 1);
        } else {
            self.finished(worker, id);
            self.look_for_work(worker);
        }
    }

    fn yielded(&mut self, worker: usize, id: JobId) {
        self.totals.preemptions += 1;
        let (job, attained_ns) = (self.job(id), self.requests.get(id).attained_ns);
        let mut view = self.queues.seen_by(worker);
        if self.locals[worker].yielded(self.now_ns, &job, attained_ns, &mut view) {
            return;
        }
        let worker = WorkerId(worker as u16);
        match (I::OWNER, self.experiment.costs.completion_ns) {
            (Owner::Nobody, _) => self.queues.push_shared(id),
            (Owner::Dispatcher, notice_ns @ 1..) => {
                let back = Delayed::GivenBack {
                    worker,
                    job: id,
                    attained_ns,
                };
                self.delay(self.now_ns + notice_ns, back);
            }
            _ => self.ingress.yielded(self.now_ns, worker, job, attained_ns),
        }
    }

    #[inline]
    fn finished(&mut self, worker: usize, id: JobId) {
        let request = *self.requests.get(id);
        let class = usize::from(request.class);
        self.backlog.left(class);
        if request.counted {
            let latency_ns = self.now_ns - request.arrived_ns + self.experiment.network_ns;
            self.recorder.record(class, latency_ns, request.service_ns);
            self.totals.last_completion_ns = self.now_ns;
        }
        let job = self.job(id);
        self.locals[worker].finished(self.now_ns, &job, request.service_ns);
        let worker = WorkerId(worker as u16);
        match (I::OWNER, self.experiment.costs.completion_ns) {
            (Owner::Dispatcher, notice_ns @ 1..) => {
                let notice = Delayed::Notice {
                    worker,
                    job: id,
                    cpu_ns: request.service_ns,
                };
                self.delay(self.now_ns + notice_ns, notice);
            }
            _ => self.noticed(worker, id, request.service_ns),
        }
    }

    /// The dispatcher knows that a request is done.
    #[inline]
    fn noticed(&mut self, worker: WorkerId, job: JobId, cpu_ns: u64) {
        self.ingress.finished(self.now_ns, worker, job, cpu_ns);
        self.requests.remove(job);
        if self.ingress.revisions() != self.revisions {
            self.note_plan();
        }
    }

    #[cold]
    fn note_plan(&mut self) {
        self.revisions = self.ingress.revisions();
        let reservation = self.reservation().unwrap_or_default();
        self.plan_changes.push(PlanChange {
            at_ns: self.now_ns,
            reservation,
        });
    }

    fn reservation(&self) -> Option<Vec<Reservation>> {
        let names = self.experiment.workload.class_names();
        self.ingress.plan().map(|plan| reservation_of(plan, &names))
    }

    fn delayed_event(&mut self) {
        let Some(Reverse((_, _, event))) = self.delayed.pop() else {
            return;
        };
        match event {
            Delayed::Handoff { worker, job } => self.receive(worker, job),
            Delayed::Notice {
                worker,
                job,
                cpu_ns,
            } => self.noticed(worker, job, cpu_ns),
            Delayed::GivenBack {
                worker,
                job,
                attained_ns,
            } => {
                let job = self.job(job);
                self.ingress.yielded(self.now_ns, worker, job, attained_ns);
            }
            Delayed::Core { worker, present } => {
                match present {
                    true => self.ingress.worker_added(self.now_ns, worker),
                    false => self.ingress.worker_removed(self.now_ns, worker),
                }
                self.note_plan();
            }
        }
    }

    fn delay(&mut self, at_ns: u64, event: Delayed) {
        self.delayed
            .push(Reverse((at_ns, self.delayed_count, event)));
        self.delayed_count += 1;
    }

    #[inline]
    fn job(&self, id: JobId) -> Job {
        let request = self.requests.get(id);
        Job {
            id,
            class: ClassId(request.taken_for),
            flow: request.flow,
            arrived_ns: request.arrived_ns,
            resume: Resume::Any,
        }
    }

    fn into_outcome(self, policy: &str, params: &headway_policy::spec::Params) -> Outcome {
        let reservation = self.reservation();
        let starved = self.backlog.starved(self.experiment.workers);
        let mut outcome = Outcome::new(
            self.experiment,
            policy,
            params,
            &self.totals,
            self.recorder,
            &starved,
        );
        outcome.run.extras.reservation = reservation;
        outcome.plan_changes = self.plan_changes;
        outcome
    }
}
