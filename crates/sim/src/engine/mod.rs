//! A server in virtual time: it owns the time and carries out the policy's decisions.
//!
//! Every worker has at most one event of its own, the end of its request, slice or quantum, kept in an
//! [`Agenda`]. All other delayed events (the dispatcher's work, hand-offs, completion notices) lie in
//! a heap that is empty in an ideal system. The driver feeds the arrivals.

pub(crate) mod agenda;
mod lookout;
mod removal;
mod requests;
mod simulated;
mod stint;
mod worker;

use crate::Costs;
use crate::server::{NEVER, Sink, Standing, Work};
use crate::tape::Tape;
use agenda::Agenda;
use headway_policy::server::queue_lists::QueueLists;
use headway_policy::server::role::{
    Dispatch, Ingress, Local, Monitor, Next, Owner, Preempt, PreemptionDecision,
};
use headway_policy::server::systems::System;
use headway_policy::{Charge, Job, JobId, PreemptionCosts, Shape, WorkerId};
use headway_report::schedule::Runner;
use requests::RequestSlab;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use worker::{OnDispatcher, SimWorker, Start};

/// An event on its way to the dispatcher or to a worker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Delayed {
    /// A request in the dispatcher's backlog of arrivals.
    Arrival { job: JobId },
    /// A request on its way to a worker.
    Handoff { worker: WorkerId, job: JobId },
    /// A completion that the dispatcher has not noticed yet.
    Notice {
        worker: WorkerId,
        job: JobId,
        cpu_ns: u64,
    },
    /// An interrupted request that the dispatcher has not taken back yet.
    GivenBack { worker: WorkerId, job: JobId },
    /// The dispatcher's slice on a request of its own is over.
    StintOver,
}

/// One server.
pub(crate) struct Engine<I, L, M> {
    ingress: I,
    locals: Vec<L>,
    monitor: M,
    costs: Costs,
    preemption: PreemptionCosts,
    queue_limit: usize,
    requests: RequestSlab,
    queues: QueueLists,
    workers: Vec<SimWorker>,
    stops: Agenda,
    delayed: BinaryHeap<Reverse<(u64, u64, Delayed)>>,
    delayed_count: u64,
    /// When the dispatcher is free: until then it handles arrivals or runs a request of its own.
    dispatcher_free_ns: u64,
    stint: Option<OnDispatcher>,
    work: Work,
    /// Workers that are present and idle.
    idle: usize,
    now_ns: u64,
    revisions: u64,
    /// Requests ever handed out by the ingress.
    dispatched: u64,
    /// Recorder of slices, for experiments with a trace window.
    tape: Option<Tape>,
}

impl<I: Ingress, L: Local, M: Monitor> Engine<I, L, M> {
    pub(crate) fn new(system: System<I, L, M>, shape: &Shape, costs: Costs) -> Self {
        let mut engine = Self {
            ingress: system.ingress,
            locals: system.locals,
            monitor: system.monitor,
            preemption: costs.applied_to(system.preemption_costs),
            costs,
            queue_limit: shape.queue_limit,
            requests: RequestSlab::default(),
            queues: QueueLists::new(shape.workers, system.shared_queues),
            workers: vec![SimWorker::IDLE; shape.workers],
            stops: Agenda::new(shape.workers),
            delayed: BinaryHeap::new(),
            delayed_count: 0,
            dispatcher_free_ns: 0,
            stint: None,
            work: Work::default(),
            idle: shape.workers,
            now_ns: 0,
            revisions: 0,
            dispatched: 0,
            tape: None,
        };
        engine.revisions = engine.ingress.revisions();
        engine
    }

    /// Records that a request stops running, on a worker or on the dispatcher.
    #[inline]
    fn note(&mut self, id: JobId, runner: Runner, from_ns: u64, done: bool) {
        if let Some(tape) = &mut self.tape {
            let ran = from_ns.min(self.now_ns)..self.now_ns;
            tape.stopped(id, &self.requests.get(id).request, runner, ran, done);
        }
    }

    #[inline]
    fn delayed_ns(&self) -> u64 {
        self.delayed
            .peek()
            .map_or(NEVER, |Reverse((at_ns, ..))| *at_ns)
    }

    #[inline]
    fn deadline_ns(&self) -> u64 {
        self.monitor.next_deadline_ns().unwrap_or(NEVER)
    }

    /// Clears the next event of a freed worker that got no request. Called last, since most freed workers
    /// get a request at once, which sets their time.
    #[inline]
    fn settle(&mut self, worker: usize) {
        if self.workers[worker].is_free() {
            self.stops.set(worker, NEVER);
        }
    }

    /// Calls the role whose deadline has come.
    fn deadline(&mut self, at_ns: u64, sink: &mut impl Sink) {
        self.advance_to(at_ns);
        if self.monitor.next_deadline_ns() == Some(at_ns) {
            let congested = self.monitor.tick(at_ns, &self.queues.seen_by(WorkerId(0)));
            self.queues.set_congested(congested);
        }
        self.decide(sink);
        assert!(
            self.deadline_ns() > at_ns,
            "a role called at {at_ns} ns still asks for that time"
        );
    }

    #[inline]
    pub(crate) fn advance_to(&mut self, now_ns: u64) {
        if self.idle > 0 && self.waiting() > 0 {
            self.work.wasted_ns += self.idle as u64 * (now_ns - self.now_ns);
        }
        self.now_ns = now_ns;
    }

    #[inline]
    fn admit(&mut self, job: Job, sink: &mut impl Sink) {
        if self.ingress.arrived(self.now_ns, job).is_err() {
            return self.shed(job.id, sink);
        }
        if I::OWNER == Owner::Nobody {
            self.share_arrival(job.id, sink);
        }
    }

    /// Puts an arrival into the shared queue, where no dispatcher and no steering places it; this queue's limit applies.
    fn share_arrival(&mut self, id: JobId, sink: &mut impl Sink) {
        if self.queues.shared_len() >= self.queue_limit {
            return self.shed(id, sink);
        }
        self.share(id);
        self.wake(0, self.costs.handoff_ns);
    }

    /// Puts a request that neither a dispatcher nor steering places into the shared queue.
    fn share(&mut self, id: JobId) {
        let fits = self.queues.push_unplaced(id);
        debug_assert!(fits, "the queue of all that arrives has room for it");
    }

    fn shed(&mut self, id: JobId, sink: &mut impl Sink) {
        sink.shed(self.now_ns, &self.requests.get(id).request);
        self.requests.remove(id);
    }

    /// Carries out decisions until none is left. It repeats because an interruption gives a request back
    /// to the ingress and frees a worker.
    #[inline]
    fn decide(&mut self, sink: &mut impl Sink) {
        loop {
            if self.working().is_none() {
                while let Some(dispatch) = self.ingress.poll(self.now_ns) {
                    self.dispatched += 1;
                    self.dispatch(dispatch, sink);
                }
            }
            if !(M::POLLS && self.interrupt()) {
                break;
            }
        }
        if I::WORKS && self.dispatcher_is_idle() {
            self.dispatcher_works();
        }
    }

    /// Polls the monitor and carries out its interruption. Returns whether there was one.
    fn interrupt(&mut self) -> bool {
        if M::ON_DISPATCHER && self.working().is_some() {
            return false;
        }
        let queues = self.queues.seen_by(WorkerId(0));
        let Some(Preempt { worker, epoch }) =
            self.monitor.poll(self.now_ns, &self.ingress, &queues)
        else {
            return false;
        };
        let at = &self.workers[worker.index()];
        if at.epoch == epoch && at.is_serving() {
            self.preempt(worker.index());
            self.settle(worker.index());
        }
        true
    }

    #[inline]
    fn dispatch(&mut self, Dispatch { worker, job }: Dispatch, sink: &mut impl Sink) {
        match (I::OWNER, self.costs.handoff_ns) {
            (Owner::Dispatcher, handoff_ns @ 1..) => {
                self.delay(self.now_ns + handoff_ns, Delayed::Handoff { worker, job });
            }
            _ => self.receive(worker, job, sink),
        }
    }

    /// Puts a request into a worker's queue, and wakes idle workers that may take it.
    #[inline]
    fn receive(&mut self, worker: WorkerId, job: JobId, sink: &mut impl Sink) {
        // Where the network steers, the limit applies to each worker's own queue.
        if I::OWNER == Owner::Steering && self.queues.len(worker) >= self.queue_limit {
            return self.shed(job, sink);
        }
        self.enqueue(worker, job);
    }

    #[inline]
    fn enqueue(&mut self, worker: WorkerId, job: JobId) {
        let queued = self.queues.len(worker);
        self.queues.push(worker, job);
        self.joined(worker.index());
        let waited_ns = match I::OWNER {
            Owner::Dispatcher if queued == 0 => self.preemption.next_ns,
            Owner::Steering if queued == 0 => self.costs.handoff_ns,
            _ => 0,
        };
        self.look_for_work(worker.index(), waited_ns);
        self.wake(worker.index() + 1, 0);
    }

    /// After a request joined its queue: a worker that runs alone, without slices or quanta, must stop at the end of the present one.
    #[inline]
    fn joined(&mut self, worker: usize) {
        let at = &mut self.workers[worker];
        let Some(over_ns) = at.has_company(self.now_ns) else {
            return;
        };
        if L::RENEWS_ALONE {
            at.slice_over_ns = over_ns;
        } else {
            at.look_ns = over_ns;
        }
        self.stops.set(worker, at.next_ns());
    }

    /// Lets idle workers look for new work, from `first` on, where workers steal. They begin it `after_ns` from now.
    #[inline]
    fn wake(&mut self, first: usize, after_ns: u64) {
        if L::STEALS && self.queues.waiting() > 0 && self.idle > 0 {
            let workers = self.workers.len();
            for offset in 0..workers {
                self.look_for_work((first + offset) % workers, after_ns);
            }
        }
    }

    /// If the worker is idle, it asks its policy what to run, and begins it `after_ns` from now.
    #[inline]
    fn look_for_work(&mut self, worker: usize, after_ns: u64) {
        // A worker that does not steal finds nothing while its own queue is empty.
        let id = WorkerId(worker as u16);
        let nothing_here = !L::STEALS && self.queues.len(id) == 0;
        if nothing_here || !self.workers[worker].may_begin(L::STEALS) {
            return;
        }
        loop {
            let mut view = self.queues.seen_by(id);
            match self.locals[worker].next(self.now_ns, &mut view) {
                Next::Run { job, slice_ns } => return self.begin(worker, job, slice_ns, after_ns),
                Next::Retry => {}
                Next::Idle => return,
            }
        }
    }

    #[inline]
    fn begin(&mut self, worker: usize, job: JobId, slice_ns: Option<u64>, after_ns: u64) {
        let request = self.requests.get(job);
        let overhead_ns = match request.attained_ns {
            0 => self.costs.overhead_ns,
            _ => 0,
        };
        let spent_ns = after_ns + self.preemption.switch_ns + overhead_ns;
        let (left_ns, as_job) = (request.left_ns(), request.job(job));
        let epoch = self.workers[worker].epoch + 1;
        self.idle -= usize::from(self.workers[worker].is_idle());
        self.work.busy_ns += spent_ns;
        let id = WorkerId(worker as u16);
        let queues = self.queues.seen_by(id);
        let look_ns = self
            .monitor
            .started(self.now_ns, id, &as_job, epoch, &queues);
        let at = &mut self.workers[worker];
        at.begin(Start {
            running: job,
            from_ns: self.now_ns + spent_ns,
            left_ns,
            slice_ns,
            look_ns,
        });
        self.stops.set(worker, at.next_ns());
    }

    /// The worker's event: its request is done, its slice or quantum is over, or it has left an
    /// interrupted request. Returns whether the worker is free of its request.
    #[inline]
    fn worker_looks_up(&mut self, worker: usize, sink: &mut impl Sink) -> bool {
        let at = &self.workers[worker];
        if at.is_leaving() {
            self.leave(worker);
            true
        } else if self.now_ns >= at.done_ns {
            self.finished(worker, sink);
            true
        } else if self.now_ns >= at.slice_over_ns {
            let queues = self.queues.seen_by(WorkerId(worker as u16));
            match self.locals[worker].renew(self.now_ns, &queues) {
                Some(ns) if self.costs.renew_ns > 0 => {
                    let paid_ns = self.pay_for_renewal(worker);
                    self.workers[worker].slice_over_ns = self.now_ns + paid_ns + ns;
                    self.goes_on(worker)
                }
                Some(ns) if L::RENEWS_ALONE => {
                    self.workers[worker].slice_over_ns = NEVER;
                    self.workers[worker].go_on_alone(self.now_ns, ns);
                    self.goes_on(worker)
                }
                Some(ns) => {
                    self.workers[worker].slice_over_ns = self.now_ns + ns;
                    self.goes_on(worker)
                }
                None => self.preempt(worker),
            }
        } else {
            self.expired(worker)
        }
    }

    #[inline]
    fn expired(&mut self, worker: usize) -> bool {
        let stint = self.working().filter(|stint| stint.until_ns > self.now_ns);
        if let (true, Some(stint)) = (M::ON_DISPATCHER, stint) {
            // A dispatcher that works sends its notifications late (Concord § 3.3).
            return self.look_again(worker, stint.until_ns);
        }
        let (monitor, id) = (&mut self.monitor, WorkerId(worker as u16));
        let queues = self.queues.seen_by(id);
        let pays = self.costs.renew_ns > 0 && !M::ON_DISPATCHER;
        let look_ns = match monitor.expired(self.now_ns, id, &self.ingress, &queues) {
            PreemptionDecision::Preempt => return self.preempt(worker),
            PreemptionDecision::RenewAlone(ns) if !pays => {
                self.workers[worker].go_on_alone(self.now_ns, ns);
                NEVER
            }
            PreemptionDecision::Renew(ns)
            | PreemptionDecision::RenewAlone(ns)
            | PreemptionDecision::RenewWhileQuiet { each_ns: ns, .. } => {
                let paid_ns = if pays {
                    self.pay_for_renewal(worker)
                } else {
                    0
                };
                self.now_ns + paid_ns + ns
            }
            PreemptionDecision::Leave => NEVER,
        };
        self.look_again(worker, look_ns)
    }

    /// The worker runs the monitor itself, which delays its request. Returns the delay, ns.
    fn pay_for_renewal(&mut self, worker: usize) -> u64 {
        let renew_ns = self.costs.renew_ns;
        let at = &mut self.workers[worker];
        at.done_ns += renew_ns;
        self.requests.get_mut(at.running).needs_ns += renew_ns;
        renew_ns
    }

    #[inline]
    fn look_again(&mut self, worker: usize, look_ns: u64) -> bool {
        self.workers[worker].look_ns = look_ns;
        self.goes_on(worker)
    }

    /// The worker goes on with its request until its next event.
    #[inline]
    fn goes_on(&mut self, worker: usize) -> bool {
        self.stops.set(worker, self.workers[worker].next_ns());
        false
    }

    /// Interrupts the worker's request. The cost is charged to the worker before it switches, or to
    /// the request's remaining service. Returns whether the worker is free at once.
    #[inline]
    fn preempt(&mut self, worker: usize) -> bool {
        let SimWorker {
            running,
            epoch,
            serving_from_ns,
            ..
        } = self.workers[worker];
        let served_ns = self.now_ns.saturating_sub(serving_from_ns);
        self.work.preemptions += 1;
        self.work.busy_ns += served_ns;
        let id = WorkerId(worker as u16);
        self.monitor.stopped(self.now_ns, id, epoch);
        self.note(running, Runner::Worker(worker), serving_from_ns, false);
        let request = self.requests.get_mut(running);
        request.attained_ns += served_ns;
        match (self.preemption.charge, self.preemption.notif_ns) {
            (Charge::Blocking, blocked_ns @ 1..) => {
                self.work.busy_ns += blocked_ns;
                let left_ns = self.now_ns + blocked_ns;
                self.workers[worker].leave_at(left_ns);
                self.stops.set(worker, left_ns);
                false
            }
            (_, charged_ns) => {
                request.needs_ns += charged_ns;
                self.leave(worker);
                true
            }
        }
    }

    /// Queues the worker's interrupted request again, and lets the worker look for work.
    #[inline]
    fn leave(&mut self, worker: usize) {
        let id = self.free(worker);
        self.yielded(worker, id);
        if L::STEALS && self.workers[worker].is_removed() {
            self.hand_over(WorkerId(worker as u16));
        }
        self.look_for_work(worker, 0);
        self.wake(worker + 1, 0);
    }

    #[inline]
    fn free(&mut self, worker: usize) -> JobId {
        let at = &mut self.workers[worker];
        at.stop();
        self.idle += usize::from(at.is_idle());
        at.running
    }

    #[inline]
    fn yielded(&mut self, worker: usize, id: JobId) {
        let job = self.job(id);
        let from = WorkerId(worker as u16);
        let mut view = self.queues.seen_by(from);
        if self.locals[worker].yielded(self.now_ns, &job, &mut view) {
            return;
        }
        let worker = from;
        match I::OWNER {
            Owner::Nobody => self.share(id),
            Owner::Dispatcher => match self.taken_back_at_ns() {
                at_ns if at_ns > self.now_ns => {
                    self.delay(at_ns, Delayed::GivenBack { worker, job: id });
                }
                _ => self.ingress.yielded(self.now_ns, worker, job),
            },
            Owner::Steering => self.ingress.yielded(self.now_ns, worker, job),
        }
    }

    /// When the dispatcher notices an event that happens at a worker now.
    #[inline]
    fn known_at_ns(&self) -> u64 {
        let notice_ns = self.now_ns + self.costs.completion_ns;
        match self.working() {
            Some(stint) => notice_ns.max(stint.until_ns),
            None => notice_ns,
        }
    }

    /// When the dispatcher has queued a request that comes back now.
    #[inline]
    fn taken_back_at_ns(&mut self) -> u64 {
        let known_at_ns = self.known_at_ns();
        if self.costs.requeue_ns == 0 {
            return known_at_ns;
        }
        self.dispatcher_free_ns = known_at_ns.max(self.dispatcher_free_ns) + self.costs.requeue_ns;
        self.dispatcher_free_ns
    }

    #[inline]
    fn finished(&mut self, worker: usize, sink: &mut impl Sink) {
        let SimWorker {
            epoch,
            serving_from_ns,
            ..
        } = self.workers[worker];
        self.work.busy_ns += self.now_ns - serving_from_ns;
        let id = self.free(worker);
        let from = WorkerId(worker as u16);
        self.monitor.stopped(self.now_ns, from, epoch);
        self.note(id, Runner::Worker(worker), serving_from_ns, true);
        let in_flight = self.requests.get(id);
        let needs_ns = in_flight.needs_ns;
        sink.finished(self.now_ns, &in_flight.request);
        let job = self.job(id);
        let mut queues = self.queues.seen_by(from);
        self.locals[worker].finished(self.now_ns, &job, needs_ns, &mut queues);
        match (I::OWNER, self.known_at_ns()) {
            (Owner::Dispatcher, at_ns) if at_ns > self.now_ns => {
                let notice = Delayed::Notice {
                    worker: from,
                    job: id,
                    cpu_ns: needs_ns,
                };
                self.delay(at_ns, notice);
            }
            _ => self.noticed(from, id, needs_ns, sink),
        }
        self.look_for_work(worker, 0);
    }

    /// The dispatcher notices that a request is done.
    #[inline]
    fn noticed(&mut self, worker: WorkerId, job: JobId, cpu_ns: u64, sink: &mut impl Sink) {
        self.ingress.finished(self.now_ns, worker, job, cpu_ns);
        self.requests.remove(job);
        self.note_plan(sink);
    }

    #[inline]
    fn note_plan(&mut self, sink: &mut impl Sink) {
        if self.ingress.revisions() != self.revisions {
            self.revisions = self.ingress.revisions();
            sink.replanned(self.now_ns, self.ingress.plan());
        }
    }

    fn delayed_event(&mut self, sink: &mut impl Sink) {
        let Some(Reverse((_, _, event))) = self.delayed.pop() else {
            return;
        };
        let for_dispatcher = !matches!(event, Delayed::Handoff { .. } | Delayed::StintOver);
        if let (true, Some(stint)) = (for_dispatcher, self.working()) {
            return self.delay(stint.until_ns, event);
        }
        match event {
            Delayed::Arrival { job } => self.admit(self.job(job), sink),
            Delayed::Handoff { worker, job } => self.receive(worker, job, sink),
            Delayed::Notice {
                worker,
                job,
                cpu_ns,
            } => self.noticed(worker, job, cpu_ns, sink),
            Delayed::GivenBack { worker, job } => {
                let job = self.job(job);
                self.ingress.yielded(self.now_ns, worker, job);
            }
            Delayed::StintOver => self.stint_over(sink),
        }
    }

    fn delay(&mut self, at_ns: u64, event: Delayed) {
        self.delayed
            .push(Reverse((at_ns, self.delayed_count, event)));
        self.delayed_count += 1;
    }

    #[inline]
    fn job(&self, id: JobId) -> Job {
        self.requests.get(id).job(id)
    }
}
