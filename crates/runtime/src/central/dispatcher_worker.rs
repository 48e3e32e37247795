//! The dispatcher as a worker (Concord § 3.3): while all workers hold enough requests it runs one itself, a slice at a time by
//! its own clock, since no other thread interrupts it.

use std::ops::Range;

use headway_fiber::Attached;
use headway_net::classify::Classifier;
use headway_net::datapath::{Rx, Tx};
use headway_net::pool::SlotId;
use headway_policy::role::{DispatcherSlice, Ingress, Monitor};
use headway_policy::{ClassId, Job};

use super::dispatcher::Dispatcher;
use super::waiting::Waiting;
use crate::executor::{Executor, Ran};
use crate::fibers::{FiberContext, Fibers, RanSlice, SliceEnd};
use crate::service::Service;

/// What a [`DispatcherWorker`] is made of, before the dispatcher's thread runs.
pub(super) struct DispatcherWorkerParts<S, T> {
    pub(super) fiber_context: FiberContext<S>,
    /// As a worker it has a number after the last of the workers'.
    pub(super) executor: Executor<S, T>,
}

/// Runs requests on the dispatcher's own thread.
pub(super) struct DispatcherWorker<'a, S, T> {
    fibers: Fibers<'a, S>,
    executor: Executor<S, T>,
}

impl<'a, S: Service, T: Tx> DispatcherWorker<'a, S, T> {
    /// For the calling thread, which keeps time itself from now on.
    pub(super) fn new(parts: DispatcherWorkerParts<S, T>, attached: &'a Attached) -> Self {
        attached.self_timed(true);
        Self {
            fibers: Fibers::new(parts.fiber_context, parts.executor.worker(), attached),
            executor: parts.executor,
        }
    }

    /// Runs a request for a slice, if the policy chooses one. Returns from when to when, ns.
    pub(super) fn work<I, M, R, T2, C>(
        &mut self,
        dispatcher: &mut Dispatcher<I, M, R, T2, C>,
    ) -> Option<Range<u64>>
    where
        I: Ingress,
        M: Monitor,
        R: Rx,
        T2: Tx,
        C: Classifier,
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
                Fibers::<S>::count_yield(&self.executor.tally, job.class, sliced);
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
    fn finish<I, M, R, T2, C>(
        &self,
        dispatcher: &mut Dispatcher<I, M, R, T2, C>,
        slot: SlotId,
        now_ns: u64,
        cpu_ns: u64,
    ) -> u16
    where
        I: Ingress,
        M: Monitor,
        R: Rx,
        T2: Tx,
        C: Classifier,
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
