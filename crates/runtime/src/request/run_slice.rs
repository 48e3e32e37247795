//! One slice of service, the same for every kind of worker: run the request, send the response, count.

use std::ops::Range;

use headway_fiber::LateRun;
use headway_net::pool::SlotId;
use headway_policy::{ClassId, Job};

use crate::request::executor::{Executor, Ran};
use crate::request::fibers::Fibers;
use crate::request::lateness::EndedLate;
use crate::request::slice::{ClockReading, SliceLimits};
use crate::request::turn::{RanSlice, SliceEnd};

/// The worker to which a request belongs before and after a slice.
pub(crate) trait SliceOwner: SliceLimits {
    /// Since when another thread asks the request that ran to yield, ns, where it has not met that; `None` where nobody asked, or nobody asks here.
    fn unanswered_since_ns(&self, fibers: &Fibers<'_>) -> Option<u64>;

    /// The request stopped running, for good or not.
    fn stopped(&mut self, now_ns: u64);

    /// The request finished after `cpu_ns` of service, and its response is on its way. The buffer is the owner's.
    fn finished(&mut self, now_ns: u64, job: &Job, cpu_ns: u64, slot: SlotId);

    /// The request was interrupted; `message` came with the wish, 0 for none.
    fn yielded(&mut self, now_ns: u64, job: &Job, slot: SlotId, message: u64);

    /// There was no stack for the request, which was answered as shed. The buffer is the owner's.
    fn refused(&mut self, now_ns: u64, job: &Job, slot: SlotId);

    /// How many renewals to count for this slice.
    fn renewals(&mut self) -> u64;

    /// Whether an interruption at the end of a slice is counted here; else by whoever asked for it.
    fn counts_interruptions(&self) -> bool;
}

/// A request that a worker took up.
pub(crate) struct TakenRequest {
    pub(crate) slot: SlotId,
    /// Whether it was interrupted before.
    pub(crate) suspended: bool,
}

impl TakenRequest {
    /// Counts that it begins at this time, ns, if it does.
    #[inline(always)]
    fn begun(self, executor: &Executor, now_ns: u64) -> Self {
        if !self.suspended {
            executor.begins(&self.slot, now_ns);
        }
        self
    }
}

/// A slice that is over.
pub(crate) struct SliceOutcome {
    /// From when to when the request ran.
    pub(crate) span: Range<ClockReading>,
    /// Whether it was interrupted.
    pub(crate) yielded: bool,
}

impl SliceOutcome {
    /// From when to when the request ran, ns.
    #[inline]
    pub(crate) fn span_ns(&self) -> Range<u64> {
        self.span.start.ns..self.span.end.ns
    }
}

/// Runs the request from `now` on, for `slice_ns` where it has a slice, and as much longer as its owner renews it. The owner hears of the end
/// before anything is counted, since others may wait for the worker.
#[inline(always)]
pub(crate) fn run_slice<O: SliceOwner>(
    fibers: &mut Fibers<'_>,
    executor: &mut Executor,
    owner: &mut O,
    request: TakenRequest,
    now: ClockReading,
    slice_ns: Option<u64>,
) -> SliceOutcome {
    let TakenRequest { slot, suspended } = request.begun(executor, now.ns);
    let own_before_ns = fibers.own_time_of_suspect(executor, &slot);
    let RanSlice {
        mut slot,
        end,
        span,
        held,
    } = fibers.run(slot, now, slice_ns, owner);
    let own_ns = own_before_ns.and_then(|before_ns| fibers.own_time_since(before_ns));
    let span_ns = span.start.ns..span.end.ns;
    let now_ns = span_ns.end;
    let asked_ns = owner.unanswered_since_ns(fibers);
    owner.stopped(now_ns);
    let yielded = matches!(end, SliceEnd::Yielded { .. } | SliceEnd::AtHome { .. });
    let class = match end {
        SliceEnd::Finished {
            response,
            cpu_ns,
            late_ns,
        } => {
            executor.respond(&mut slot, response, cpu_ns, now_ns);
            let (job, slot) = executor.job(slot);
            let said_long = response.feedback.said_long;
            owner.finished(now_ns, &Job { said_long, ..job }, cpu_ns, slot);
            executor.count(&Ran {
                class: job.class.0,
                span_ns,
                cpu_ns,
            });
            let ended = EndedLate {
                class: job.class,
                was_asked: asked_ns.is_some(),
                run: LateRun {
                    late_ns: asked_ns.map_or(late_ns, |asked_ns| now_ns.saturating_sub(asked_ns)),
                    ran_ns: span.end.ns - span.start.ns,
                    own_ns,
                },
            };
            if ended.run.late_ns > 0 {
                fibers.count_late(&executor.tally, &ended);
            }
            job.class
        }
        SliceEnd::Yielded { job, sliced } => {
            owner.yielded(now_ns, &job, slot, fibers.granted_message());
            let own = sliced && owner.counts_interruptions();
            Fibers::count_yield(&executor.tally, job.class, own);
            job.class
        }
        SliceEnd::AtHome { job } => {
            owner.yielded(now_ns, &job, slot, 0);
            return SliceOutcome { span, yielded };
        }
        SliceEnd::NoStack => refuse(executor, owner, slot, now_ns),
    };
    let renewals = owner.renewals();
    let tally = executor.tally.class(class.0);
    tally.resumed.add(u64::from(suspended));
    tally.renewals.add(renewals);
    executor.tally.held(class.0, held, yielded);
    SliceOutcome { span, yielded }
}

/// There was no stack for the request, which is answered as shed. Returns its class.
#[cold]
fn refuse<O: SliceOwner>(
    executor: &mut Executor,
    owner: &mut O,
    slot: SlotId,
    now_ns: u64,
) -> ClassId {
    let slot = executor.refuse(slot, now_ns);
    let (job, slot) = executor.job(slot);
    owner.refused(now_ns, &job, slot);
    job.class
}
