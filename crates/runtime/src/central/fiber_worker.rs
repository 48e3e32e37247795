//! A worker whose requests may be interrupted: it runs them on fibers, and its local policy says which is next.

use std::sync::Arc;

use headway_fiber::{Asker, Attached, ByFlag, BySignal, Mechanism, Preempter};
use headway_net::pool::{Prefetch, SlotId};
use headway_policy::server::role::{Local, Next, Queues};
use headway_policy::{Job, JobId, Resume, WorkerId};

use super::view::CentralQueues;
use super::watch::CentralWorkerSlot;
use super::worker::CentralWorker;
use crate::queue::links::NextHint;
use crate::queue::rx_waker::RxWaker;
use crate::request::assignment::Assignment;
use crate::request::executor::Executor;
use crate::request::fibers::Fibers;
use crate::request::run_slice::{SliceOwner, TakenRequest, run_slice};
use crate::request::shared_fibers::FiberContext;
use crate::request::slice::{ClockReading, SliceLimits};
use crate::stats::own_time::OwnTime;
use crate::threads::control::{ServerControl, ServerPhase};
use crate::threads::park::Backoff;
use crate::threads::rules::RulesReceiver;
use headway_sync::atomic::Ordering;

/// A worker's local policy, and where its rules come from.
pub(super) struct WorkerLocal<L> {
    pub(super) local: L,
    pub(super) rules: RulesReceiver<L>,
}

/// How long a request of a worker that keeps time goes on while whoever decides about it has not yet looked, ns.
pub(super) const SHORT_SLICE_NS: u64 = 1_000;

/// What a worker thread whose requests may be interrupted is made of.
pub(super) struct FiberWorkerParts<L> {
    pub(super) worker: CentralWorker,
    pub(super) local: WorkerLocal<L>,
    pub(super) fiber_context: FiberContext,
    /// Shared with the dispatcher, where it interrupts requests.
    pub(super) worker_slot: Option<Arc<CentralWorkerSlot>>,
}

impl<L: Local> FiberWorkerParts<L> {
    /// Makes the calling thread a worker for as long as `serve` takes. Its requests also end their slices themselves where it is `self_timed`.
    pub(super) fn run(self, self_timed: bool, serve: impl FnOnce(FiberWorker<'_, L>)) {
        let CentralWorker {
            index,
            link,
            executor,
            rx_waker,
            control,
            backoff,
        } = self.worker;
        let (me, resume) = (WorkerId(index as u16), self.fiber_context.resume);
        let attached = Attached::new();
        attached.self_timed(self_timed);
        if let Some(worker_slot) = &self.worker_slot {
            // Only the dispatcher has this: the thread waits at its end until the dispatcher has dropped it.
            let asker = asker(self.fiber_context.mechanism, &attached);
            let _ = worker_slot.asker.set(asker);
            let _ = worker_slot.own_time.set(OwnTime::of_current());
        }
        let worker = FiberWorker {
            view: CentralQueues::new(me, link, executor.slots()),
            local: self.local.local,
            rules: self.local.rules,
            fibers: Fibers::new(self.fiber_context, executor.worker(), &attached),
            executor,
            worker_slot: self.worker_slot,
            rx_waker,
            control: Arc::clone(&control),
            backoff,
            suspended: 0,
            resume,
        };
        // Dropping `attached` waits until the dispatcher has ended, which after a panic here no other thread would stop.
        let _stop = control.stop_on_panic();
        serve(worker);
    }
}

/// A worker whose thread can run fibers.
pub(super) struct FiberWorker<'a, L> {
    pub(super) view: CentralQueues,
    local: L,
    rules: RulesReceiver<L>,
    pub(super) fibers: Fibers<'a>,
    executor: Executor,
    worker_slot: Option<Arc<CentralWorkerSlot>>,
    rx_waker: Arc<RxWaker>,
    pub(super) control: Arc<ServerControl>,
    pub(super) backoff: Backoff,
    /// Requests that were interrupted here and go on nowhere else.
    suspended: usize,
    resume: Resume,
}

/// What a worker did in one turn.
pub(super) enum WorkerTurn {
    /// There was nothing to do.
    Idle,
    Ran,
    /// It ran a request that was interrupted at this time. The next begins then, without another reading of the clock: nothing was sent in
    /// between.
    Interrupted(ClockReading),
}

/// The end of a slice, as a worker sees it.
#[derive(Clone, Copy)]
pub(super) struct Expiry {
    pub(super) now_ns: u64,
    /// The assignment whose slice it was.
    pub(super) epoch: u64,
    /// Whether another thread ended it.
    pub(super) asked: bool,
}

/// Says how long the requests of a worker run between two looks at the world.
pub(super) trait Slices<L> {
    /// Whether the dispatcher names the next request when it interrupts one.
    const TAKES_HINTS: bool;

    /// The first slice of a request that its local policy lets run for `own_ns`. `None` runs on until another thread asks.
    fn begin(&mut self, now_ns: u64, own_ns: Option<u64>) -> Option<u64>;

    /// A slice is over. `Some`: the request goes on for so much longer, ns, above 0. `None`: it yields.
    fn renew(&mut self, expiry: Expiry, local: &mut L, view: &CentralQueues) -> Option<u64>;
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

impl<L: Local> FiberWorker<'_, L> {
    /// Whether requests were interrupted here that go on nowhere else.
    pub(super) fn has_suspended(&self) -> bool {
        self.suspended > 0
    }

    /// About how many requests wait at the receive queue.
    pub(super) fn rx_backlog(&self) -> usize {
        self.rx_waker.rx().backlog_hint()
    }

    /// The server has stopped: counts the requests that it was given and will not run.
    pub(super) fn give_up(&mut self) {
        let left = self.view.give_up();
        self.executor.tally.abandoned.add(left as u64);
        self.worker_slot = None;
    }

    /// Runs one request for as long as it may, if there is one and the server has not given up.
    #[inline(always)]
    pub(super) fn turn(&mut self, now: ClockReading, slices: &mut impl Slices<L>) -> WorkerTurn {
        if self.control.phase() >= ServerPhase::Abandoning {
            return WorkerTurn::Idle;
        }
        let Self { local, rules, .. } = self;
        rules.adopt(&self.control, |fresh| {
            local.adopt(fresh);
            true
        });
        let turn = match self.local.next(now.ns, &mut self.view) {
            Next::Run { job, slice_ns } => self.run(job, now, slice_ns, slices),
            Next::Retry => WorkerTurn::Ran,
            Next::Idle => return WorkerTurn::Idle,
        };
        if self.backoff.may_sleep() {
            self.rx_waker.wake();
        }
        turn
    }

    #[inline(always)]
    fn run<P: Slices<L>>(
        &mut self,
        job: JobId,
        now: ClockReading,
        own_ns: Option<u64>,
        slices: &mut P,
    ) -> WorkerTurn {
        let request = self.view.take(job);
        let suspended = request.is_suspended();
        let slot = request.into_slot();
        let epoch = self.fibers.next_epoch();
        // The dispatcher may ask any request to yield, and without one workers look for arrivals while theirs run.
        let (slot, _) = self.fibers.take_up(slot, suspended, true);
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
        let slice_ns = slices.begin(now.ns, own_ns);
        let Self {
            local,
            view,
            fibers,
            executor,
            control,
            ..
        } = self;
        let mut owner = CentralOwner {
            local,
            view,
            slices,
            control,
            epoch,
            worker_slot: self.worker_slot.as_deref(),
        };
        let taken = TakenRequest { slot, suspended };
        let ran = run_slice(fibers, executor, &mut owner, taken, now, slice_ns);
        self.backoff.ran(&ran.span_ns());
        if self.resume == Resume::OwnWorker {
            self.suspended = self.suspended + usize::from(ran.yielded) - usize::from(suspended);
        }
        if ran.yielded {
            WorkerTurn::Interrupted(ran.span.end)
        } else {
            WorkerTurn::Ran
        }
    }
}

/// A worker of a dispatcher, while it runs a request.
struct CentralOwner<'a, L, P> {
    local: &'a mut L,
    view: &'a mut CentralQueues,
    slices: &'a mut P,
    control: &'a ServerControl,
    epoch: u64,
    /// Where the dispatcher interrupts it, and counts that.
    worker_slot: Option<&'a CentralWorkerSlot>,
}

impl<L: Local, P: Slices<L>> SliceLimits for CentralOwner<'_, L, P> {
    #[inline(always)]
    fn renew(&mut self, now_ns: u64, asked: bool) -> Option<u64> {
        let expiry = Expiry {
            now_ns,
            epoch: self.epoch,
            asked,
        };
        self.slices.renew(expiry, self.local, self.view)
    }

    /// No policy of this layout goes by it.
    fn said_long(&mut self, _now_ns: u64, _job: &Job) -> Option<u64> {
        None
    }
}

impl<L: Local, P: Slices<L>> SliceOwner for CentralOwner<'_, L, P> {
    #[inline]
    fn unanswered_since_ns(&self, fibers: &Fibers<'_>) -> Option<u64> {
        let worker_slot = self.worker_slot?;
        fibers.unanswered_message()?;
        Some(worker_slot.asked_ns.load(Ordering::Relaxed))
    }

    #[inline(always)]
    fn stopped(&mut self, _now_ns: u64) {}

    #[inline]
    fn finished(&mut self, now_ns: u64, job: &Job, cpu_ns: u64, slot: SlotId) {
        // The dispatcher goes on meanwhile.
        self.view.link.done.send(slot, cpu_ns);
        self.local.finished(now_ns, job, cpu_ns, self.view);
    }

    /// The request stays here, or goes back to the dispatcher.
    #[inline(always)]
    #[expect(unsafe_code, reason = "a hint comes as a word")]
    fn yielded(&mut self, now_ns: u64, job: &Job, slot: SlotId, message: u64) {
        if P::TAKES_HINTS {
            // SAFETY: only the dispatcher sends this thread messages, and only hints of its link with it where hints are taken (`CentralWatch`). A
            // message is forgotten when the next assignment begins.
            self.view.hint = unsafe { NextHint::of_word(message) };
        }
        if self.control.phase() >= ServerPhase::Abandoning {
            self.view.keep(slot);
            self.view.push(job.id);
        } else if self.local.yielded(now_ns, job, self.view) {
            self.view.keep(slot);
        } else {
            self.view.link.done.send_suspended(slot, job.attained_ns);
        }
    }

    fn refused(&mut self, _now_ns: u64, _job: &Job, slot: SlotId) {
        self.view.link.done.send(slot, 0);
    }

    #[inline]
    fn renewals(&mut self) -> u64 {
        self.view.take_renewals()
    }

    #[inline]
    fn counts_interruptions(&self) -> bool {
        self.worker_slot.is_none()
    }
}
