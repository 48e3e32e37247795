//! The dispatcher as a worker (Concord § 3.3): while all workers hold enough requests it runs one itself, a slice at a time by
//! its own clock, since no other thread interrupts it.

use std::ops::Range;

use headway_fiber::Attached;
use headway_net::pool::SlotId;
use headway_policy::role::{DispatcherSlice, Ingress, Monitor};
use headway_policy::{ClassId, Job};

use super::dispatcher::Dispatcher;
use super::waiting::Waiting;
use crate::executor::{Executor, Ran};
use crate::fibers::{FiberContext, Fibers, RanSlice, SliceEnd};

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
        let RanSlice {
            mut slot,
            end,
            span,
            held,
        } = self.fibers.run(
            slot,
            suspended,
            self.fibers.now(),
            Some(slice_ns),
            |_now_ns, _asked| None,
        );
        let now_ns = span.end.ns;
        match end {
            SliceEnd::Finished {
                response,
                cpu_ns,
                late_ns,
            } => {
                self.executor.respond(&mut slot, response, cpu_ns, now_ns);
                let class = self.finish(dispatcher, slot, now_ns, cpu_ns);
                self.executor.tally.held(class, held, false);
                let tally = self.executor.tally.class(class);
                tally.resumed.add(u64::from(suspended));
                self.executor.count(&Ran {
                    class,
                    span_ns: span.start.ns..now_ns,
                    cpu_ns,
                });
                self.fibers
                    .count_late(&self.executor.tally, ClassId(class), late_ns);
            }
            SliceEnd::Yielded { job, sliced } => {
                Fibers::count_yield(&self.executor.tally, job.class, sliced);
                self.executor.tally.held(job.class.0, held, true);
                let tally = self.executor.tally.class(job.class.0);
                tally.resumed.add(u64::from(suspended));
                dispatcher.waiting[job.id.index()] = Some(Waiting {
                    slot,
                    suspended: true,
                });
                dispatcher.ingress.worked(now_ns, job, None);
            }
            SliceEnd::NoStack => {
                let slot = self.executor.refuse(slot, now_ns);
                self.finish(dispatcher, slot, now_ns, 0);
            }
        }
        Some(span.start.ns..now_ns)
    }

    /// Tells the policy, and frees the buffer; returns the request's class.
    fn finish<I, M>(
        &self,
        dispatcher: &mut Dispatcher<I, M>,
        slot: SlotId,
        now_ns: u64,
        cpu_ns: u64,
    ) -> u16
    where
        I: Ingress,
        M: Monitor,
    {
        let (job, slot) = self.executor.job(slot);
        let job = Job {
            attained_ns: cpu_ns,
            ..job
        };
        dispatcher.ingress.worked(now_ns, job, Some(cpu_ns));
        dispatcher.worked_off(slot);
        job.class.0
    }
}
