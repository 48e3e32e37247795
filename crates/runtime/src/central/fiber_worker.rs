//! A worker that may be interrupted: it runs requests on fibers, and its local policy says what is next.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use headway_fiber::{Asker, Attached, ByFlag, BySignal, Mechanism, Preempter};
use headway_net::datapath::{Rx, Tx};
use headway_net::pool::{Prefetch, SlotId};
use headway_policy::role::{Backlog, Local, Next, Queues, Steal};
use headway_policy::{ClassId, Job, JobId, WorkerId};

use super::watch::WorkerSlot;
use super::worker::Worker;
use super::worker_link::WorkerEnd;
use crate::assignment::Assignment;
use crate::control::{Control, Phase};
use crate::executor::{Executor, Ran, Response};
use crate::fibers::{FiberContext, Fibers, RanSlice, Reading, SliceEnd};
use crate::park::{Backoff, Parkers};
use crate::rx_waker::RxWaker;
use crate::service::Service;
use crate::token::{NextHint, RequestWord};

/// A worker thread whose requests may be interrupted.
pub(super) struct FiberWorker<L, S, T, R> {
    pub(super) worker: Worker<S, T, R>,
    pub(super) local: L,
    pub(super) fiber_context: FiberContext<S>,
    /// Shared with the dispatcher, where it interrupts requests.
    pub(super) worker_slot: Option<Arc<WorkerSlot>>,
    pub(super) parkers: Parkers,
}

/// The same, once its thread can run fibers.
struct Active<'a, L, S, T, R> {
    view: View,
    local: L,
    fibers: Fibers<'a, S>,
    executor: Executor<S, T>,
    worker_slot: Option<Arc<WorkerSlot>>,
    rx_waker: Arc<RxWaker<R>>,
    control: Arc<Control>,
    parkers: Parkers,
    backoff: Backoff,
}

impl<L: Local, S: Service, T: Tx, R: Rx> FiberWorker<L, S, T, R> {
    /// Runs what it is given until the server stops.
    pub(super) fn run(self) {
        let Worker {
            index,
            link,
            executor,
            rx_waker,
            control,
            backoff,
        } = self.worker;
        let me = WorkerId(index as u16);
        let attached = Attached::new();
        attached.self_timed(L::SLICES);
        if let Some(worker_slot) = &self.worker_slot {
            // Only the dispatcher has this: the thread waits at its end until the dispatcher has dropped it.
            let asker = asker(self.fiber_context.mechanism, &attached);
            let _ = worker_slot.asker.set(asker);
        }
        let active = Active {
            view: View::new(me, link, executor.slots()),
            local: self.local,
            fibers: Fibers::new(self.fiber_context, me, &attached),
            executor,
            worker_slot: self.worker_slot,
            rx_waker,
            control: Arc::clone(&control),
            parkers: self.parkers,
            backoff,
        };
        // Dropping `attached` waits until the dispatcher has ended, which after a panic here no other thread would stop.
        let _stop = control.stop_on_panic();
        active.serve();
    }
}

/// What a worker did in one turn.
enum Turn {
    /// There was nothing to do.
    Idle,
    Ran,
    /// It ran a request that was interrupted at this time. The next begins then, without another reading of the clock: nothing was sent in
    /// between.
    Interrupted(Reading),
}

/// By what others interrupt this thread.
fn asker(mechanism: Mechanism, attached: &Attached) -> Asker {
    let asker = match mechanism {
        #[expect(
            unsafe_code,
            reason = "any instruction may be followed by an interruption"
        )]
        Mechanism::Signal => {
            // SAFETY: within a fiber only the handler runs, whose author promised to bear it (`Builder::interrupt_by_signal`).
            let by_signal = unsafe { BySignal::new(attached) };
            by_signal.expect("it was checked at the start").asker()
        }
        _ => ByFlag::new(attached).asker(),
    };
    asker.expect("another thread asks by both")
}

impl<L: Local, S: Service, T: Tx, R: Rx> Active<'_, L, S, T, R> {
    fn serve(mut self) {
        let mut read = None;
        while self.control.phase() != Phase::Stopped {
            let now = read.take().unwrap_or_else(|| self.fibers.now());
            match self.turn(now) {
                Turn::Idle if self.backoff.exhausted() => self.sleep(),
                Turn::Idle => continue,
                Turn::Ran => {}
                Turn::Interrupted(now) => read = Some(now),
            }
            self.backoff.reset();
        }
        let left = self.view.give_up();
        self.executor.tally.abandoned.add(left as u64);
        self.worker_slot = None;
    }

    /// Runs one request for as long as it may, if there is one and the server has not given up.
    #[inline(always)]
    fn turn(&mut self, now: Reading) -> Turn {
        if self.control.phase() >= Phase::Abandoning {
            return Turn::Idle;
        }
        let turn = match self.local.next(now.ns, &mut self.view) {
            Next::Run { job, slice_ns } => self.run(job, now, slice_ns),
            Next::Retry => Turn::Ran,
            Next::Idle => return Turn::Idle,
        };
        if self.backoff.may_sleep() {
            self.rx_waker.wake();
        }
        turn
    }

    #[inline(always)]
    fn run(&mut self, job: JobId, now: Reading, slice_ns: Option<u64>) -> Turn {
        let request = self.view.take(job);
        let (suspended, slot) = (request.is_suspended(), request.into_slot());
        let epoch = self.fibers.next_epoch();
        if let Some(worker_slot) = &self.worker_slot {
            worker_slot.assignment.publish(Assignment {
                epoch,
                job: job.0,
                since_ns: now.ns,
            });
            let report = self.view.link.done.next_place();
            self.fibers
                .next_writes([report, worker_slot.assignment.address()]);
        } else {
            self.executor.prefetch(Prefetch::of(&slot));
        }
        if !self.view.was_hinted {
            self.view.prefetch_next(&self.executor);
        }
        self.fibers.next_read(self.view.link.jobs.next_place());
        let RanSlice { slot, end, span } =
            self.fibers.run(slot, suspended, now, slice_ns, |now_ns| {
                self.local.renew(now_ns, &self.view)
            });
        let span_ns = span.start.ns..span.end.ns;
        self.backoff.ran(&span_ns);
        match end {
            SliceEnd::Finished {
                response,
                cpu_ns,
                late_ns,
            } => {
                let class = self.finish(slot, response, span_ns, cpu_ns);
                self.fibers.count_late(&self.executor.tally, class, late_ns);
            }
            SliceEnd::Yielded { job, sliced } => {
                self.view.hint = self.next_hint();
                Fibers::<S>::count_yield(&self.executor.tally, job.class, sliced);
                self.give_back(slot, &job, span.end.ns);
                return Turn::Interrupted(span.end);
            }
            SliceEnd::NoStack => {
                let slot = self.executor.refuse(slot, span_ns.end);
                self.view.link.done.send(slot, 0);
            }
        }
        Turn::Ran
    }

    /// The hint that the dispatcher gave when it interrupted the last request.
    #[inline(always)]
    #[expect(unsafe_code, reason = "a hint comes as a word")]
    fn next_hint(&self) -> Option<NextHint> {
        // SAFETY: only the dispatcher sends this thread messages, and only hints of its link with it (`Watched::ask`). A message is
        // forgotten when the next assignment begins.
        unsafe { NextHint::of_word(self.fibers.granted_message()) }
    }

    #[inline]
    fn finish(
        &mut self,
        mut slot: SlotId,
        response: Response,
        span_ns: Range<u64>,
        cpu_ns: u64,
    ) -> ClassId {
        let now_ns = span_ns.end;
        self.executor.respond(&mut slot, response, cpu_ns, now_ns);
        let (job, slot) = self.executor.job(slot);
        self.view.link.done.send(slot, cpu_ns);
        // The dispatcher goes on meanwhile.
        self.local.finished(now_ns, &job, cpu_ns, &mut self.view);
        self.executor.count(&Ran {
            class: job.class.0,
            span_ns,
            cpu_ns,
        });
        job.class
    }

    /// The request was interrupted: it stays here, or goes back to the dispatcher.
    #[inline(always)]
    fn give_back(&mut self, slot: SlotId, job: &Job, now_ns: u64) {
        if self.control.phase() >= Phase::Abandoning {
            self.view.keep(slot);
            self.view.push(job.id);
        } else if self.local.yielded(now_ns, job, &mut self.view) {
            self.view.keep(slot);
        } else {
            self.view.link.done.send_suspended(slot, job.attained_ns);
        }
    }

    fn sleep(&mut self) {
        let (view, control) = (&self.view, &self.control);
        self.parkers.park_unless(view.me.index(), || {
            !view.is_empty() || control.phase() == Phase::Stopped
        });
        self.backoff.slept();
    }
}

/// The worker's own queue: what came over its link, and what it keeps.
struct View {
    me: WorkerId,
    link: WorkerEnd,
    own: VecDeque<JobId>,
    /// The request that comes next over the link, where the dispatcher named it as it interrupted the last one.
    hint: Option<NextHint>,
    /// Whether the last request came by a hint: the ring's line is then still in the dispatcher's cache.
    was_hinted: bool,
    /// The requests that came over the link and do not run, by job.
    requests: Box<[Option<RequestWord>]>,
}

impl View {
    fn new(me: WorkerId, link: WorkerEnd, slots: usize) -> Self {
        Self {
            me,
            link,
            own: VecDeque::with_capacity(slots),
            hint: None,
            was_hinted: false,
            requests: (0..slots).map(|_| None).collect(),
        }
    }

    #[inline]
    fn receive(&mut self) -> Option<JobId> {
        let hinted = self
            .hint
            .take()
            .and_then(|hint| self.link.jobs.receive_hinted(hint));
        self.was_hinted = hinted.is_some();
        let request = hinted.or_else(|| self.link.jobs.receive())?;
        let job = request.job();
        self.requests[job.index()] = Some(request);
        Some(job)
    }

    /// What is to run now.
    #[inline]
    fn take(&mut self, job: JobId) -> RequestWord {
        let request = self.requests[job.index()].take();
        request.expect("a policy runs what it was given, once")
    }

    /// A suspended request stays here.
    fn keep(&mut self, slot: SlotId) {
        let request = RequestWord::suspended(slot);
        let job = request.job();
        self.requests[job.index()] = Some(request);
    }

    #[inline]
    fn prefetch_next(&self, executor: &Executor<impl Service, impl Tx>) {
        if let Some(next) = self.link.jobs.next() {
            executor.prefetch(next);
        }
    }

    fn is_empty(&self) -> bool {
        self.own.is_empty() && self.link.jobs.is_empty()
    }

    /// Counts what is here and will not run.
    fn give_up(&mut self) -> usize {
        let own = self.own.len();
        own + std::iter::from_fn(|| self.link.jobs.receive()).count()
    }
}

impl Backlog for View {
    fn workers(&self) -> usize {
        1
    }

    /// Of the own queue only; more than one on the link counts as one.
    #[inline]
    fn len(&self, _worker: WorkerId) -> usize {
        self.own.len() + usize::from(!self.link.jobs.is_empty())
    }

    fn shared_counters(&self, _queue: usize) -> (u64, u64) {
        (0, 0)
    }

    fn congested(&self) -> u64 {
        0
    }

    fn short_ns(&self, _worker: WorkerId) -> u64 {
        0
    }
}

impl Queues for View {
    #[inline]
    fn me(&self) -> WorkerId {
        self.me
    }

    #[inline]
    fn pop(&mut self) -> Option<JobId> {
        self.own.pop_front().or_else(|| self.receive())
    }

    fn push(&mut self, job: JobId) {
        // What came meanwhile was here before.
        while let Some(came) = self.receive() {
            self.own.push_back(came);
        }
        self.own.push_back(job);
    }

    fn try_steal(&mut self, _victim: WorkerId, _max: usize) -> Steal {
        Steal::Empty
    }

    fn pop_shared(&mut self, _queue: usize) -> Option<JobId> {
        None
    }

    fn push_shared(&mut self, _queue: usize, _job: JobId) {
        unreachable!("workers of a dispatcher share no queue")
    }

    fn set_short_ns(&mut self, _mean_ns: u64) {
        unreachable!("workers of a dispatcher tell the others nothing")
    }
}
