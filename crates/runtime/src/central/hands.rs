//! A dispatcher that also works (Concord § 3.3): while all workers have enough it runs requests itself, a slice at a time by
//! its own clock, since nobody could interrupt it.

use std::ops::Range;

use headway_fiber::Attached;
use headway_net::classify::Classifier;
use headway_net::datapath::{Rx, Tx};
use headway_net::pool::SlotId;
use headway_policy::role::{DispatcherSlice, Ingress, Monitor};
use headway_policy::{ClassId, Job, WorkerId};

use super::dispatcher::{Dispatcher, Waiting};
use crate::executor::{Executor, Ran};
use crate::fibers::{Fibers, Stretch, Weft};
use crate::service::Service;

/// What a dispatcher that works is made of, until its thread runs.
pub(super) struct Spare<S, T> {
    pub(super) weft: Weft<S>,
    /// The number it goes by as a worker.
    pub(super) me: WorkerId,
    pub(super) executor: Executor<S, T>,
}

/// What a dispatcher works with.
pub(super) struct Hands<'a, S, T> {
    fibers: Fibers<'a, S>,
    executor: Executor<S, T>,
}

impl<'a, S: Service, T: Tx> Hands<'a, S, T> {
    /// The hands of this thread, which keeps time itself.
    pub(super) fn new(spare: Spare<S, T>, attached: &'a Attached) -> Self {
        attached.self_timed(true);
        Self {
            fibers: Fibers::new(spare.weft, spare.me, attached),
            executor: spare.executor,
        }
    }

    /// Works for a slice, if the policy says on what; from when to when.
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
        let waited = dispatcher.waiting[job.index()].take();
        let Waiting { slot, begun } = waited.expect("a policy works on what waits");
        self.fibers.next_epoch();
        let (mut slot, stretch, span) = self.fibers.run(
            (slot, begun),
            self.fibers.now(),
            Some(slice_ns),
            |_now_ns| None,
        );
        let now_ns = span.end.ns;
        match stretch {
            Stretch::Finished {
                outcome,
                cpu_ns,
                late_ns,
            } => {
                self.executor.respond(&mut slot, outcome, cpu_ns, now_ns);
                let class = self.finish(dispatcher, slot, (now_ns, cpu_ns));
                self.executor.count(&Ran {
                    class,
                    span_ns: span.start.ns..now_ns,
                    cpu_ns,
                });
                self.fibers
                    .count_late(&self.executor.tally, ClassId(class), late_ns);
            }
            Stretch::Yielded { job, sliced } => {
                Fibers::<S>::count_yield(&self.executor.tally, job.class, sliced);
                dispatcher.waiting[job.id.index()] = Some(Waiting { slot, begun: true });
                dispatcher.ingress.worked(now_ns, job, None);
            }
            Stretch::NoStack => {
                let slot = self.executor.refuse(slot, now_ns);
                self.finish(dispatcher, slot, (now_ns, 0));
            }
        }
        Some(span.start.ns..now_ns)
    }

    /// Tells the policy, and frees the buffer; returns the request's class.
    fn finish<I, M, R, T2, C>(
        &self,
        dispatcher: &mut Dispatcher<I, M, R, T2, C>,
        slot: SlotId,
        (now_ns, cpu_ns): (u64, u64),
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
