//! The dispatcher as a worker (Concord § 3.3): while all workers hold enough requests it runs one itself, a slice at a time by
//! its own clock, since no other thread interrupts it.

use std::ops::Range;

use headway_fiber::Attached;
use headway_net::pool::SlotId;
use headway_policy::Job;
use headway_policy::server::role::{DispatcherSlice, Ingress, Monitor};

use super::dispatcher::Dispatcher;
use super::waiting::Waiting;
use crate::request::executor::Executor;
use crate::request::fibers::Fibers;
use crate::request::run_slice::{SliceOwner, TakenRequest, run_slice};
use crate::request::shared_fibers::FiberContext;
use crate::request::slice::SliceLimits;

/// What a [`DispatcherWorker`] is made of, before the dispatcher's thread runs.
pub(super) struct DispatcherWorkerParts {
    pub(super) fiber_context: FiberContext,
    /// As a worker it has a number after the last of the workers'.
    pub(super) executor: Executor,
}

/// Runs requests on the dispatcher's own thread.
pub(super) struct DispatcherWorker<'a> {
    fibers: Fibers<'a>,
    executor: Executor,
}

impl<'a> DispatcherWorker<'a> {
    /// For the calling thread, which keeps time itself from now on.
    pub(super) fn new(parts: DispatcherWorkerParts, attached: &'a Attached) -> Self {
        attached.self_timed(true);
        Self {
            fibers: Fibers::new(parts.fiber_context, parts.executor.worker(), attached),
            executor: parts.executor,
        }
    }

    /// Runs a request for a slice, if the policy chooses one. Returns from when to when, ns.
    pub(super) fn work<I, M>(&mut self, dispatcher: &mut Dispatcher<I, M>) -> Option<Range<u64>>
    where
        I: Ingress,
        M: Monitor,
    {
        let DispatcherSlice { job, slice_ns } = dispatcher.ingress.work(dispatcher.now_ns)?;
        let waiting = dispatcher.waiting[job.index()].take();
        let Waiting { slot, suspended } = waiting.expect("a policy works on what waits");
        self.fibers.next_epoch();
        let (slot, _) = self.fibers.take_up(slot, suspended, true);
        let taken = TakenRequest { slot, suspended };
        let now = self.fibers.now();
        let ran = run_slice(
            &mut self.fibers,
            &mut self.executor,
            dispatcher,
            taken,
            now,
            Some(slice_ns),
        );
        Some(ran.span_ns())
    }
}

/// A dispatcher, while it runs a request: nobody renews its slice.
impl<I: Ingress, M: Monitor> SliceLimits for Dispatcher<I, M> {
    fn renew(&mut self, _now_ns: u64, _asked: bool) -> Option<u64> {
        None
    }

    /// No policy of this layout goes by it.
    fn said_long(&mut self, _now_ns: u64, _job: &Job) -> Option<u64> {
        None
    }
}

impl<I: Ingress, M: Monitor> SliceOwner for Dispatcher<I, M> {
    fn unanswered_since_ns(&self, _fibers: &Fibers<'_>) -> Option<u64> {
        None
    }

    fn stopped(&mut self, _now_ns: u64) {}

    fn finished(&mut self, now_ns: u64, job: &Job, cpu_ns: u64, slot: SlotId) {
        let job = Job {
            attained_ns: cpu_ns,
            ..*job
        };
        self.ingress.worked(now_ns, job, Some(cpu_ns));
        self.worked_off(slot);
    }

    fn yielded(&mut self, now_ns: u64, job: &Job, slot: SlotId, _message: u64) {
        self.waiting[job.id.index()] = Some(Waiting {
            slot,
            suspended: true,
        });
        self.ingress.worked(now_ns, *job, None);
    }

    fn refused(&mut self, now_ns: u64, job: &Job, slot: SlotId) {
        self.finished(now_ns, job, 0, slot);
    }

    fn renewals(&mut self) -> u64 {
        0
    }

    fn counts_interruptions(&self) -> bool {
        true
    }
}
