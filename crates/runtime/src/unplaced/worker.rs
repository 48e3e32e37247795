//! A worker that helps itself: it takes, runs, interrupts and receives.

use std::sync::Arc;

use headway_fiber::Attached;
use headway_net::pool::SlotId;
use headway_policy::server::role::{Local, Next, Queues};
use headway_policy::{Job, JobId, WorkerId};

use super::arrivals::LeaderIntake;
use super::common::{ARRIVALS, Common};
use super::view::UnplacedQueues;
use crate::queue::rx_waker::RxWaker;
use crate::request::executor::Executor;
use crate::request::fibers::Fibers;
use crate::request::run_slice::{SliceOwner, TakenRequest, run_slice};
use crate::request::shared_fibers::FiberContext;
use crate::request::slice::SliceLimits;
use crate::threads::control::{ServerControl, ServerPhase};
use crate::threads::hosted::{LOOK_FOR_ORDERS_NS, WorkerCore};
use crate::threads::park::Backoff;
use crate::threads::rules::RulesReceiver;
use headway_sync::leader::{Lead, Leadership};
use headway_sync::park::announce;

/// The right to receive, which the workers share.
pub(super) type Receiving = Leadership<LeaderIntake>;

/// What a worker's thread is made of.
pub(super) struct WorkerParts<L> {
    pub(super) me: WorkerId,
    pub(super) local: L,
    pub(super) rules: RulesReceiver<L>,
    pub(super) view: UnplacedQueues,
    pub(super) executor: Executor,
    pub(super) fiber_context: FiberContext,
    pub(super) common: Arc<Common>,
    pub(super) receiving: Arc<Receiving>,
    pub(super) rx_waker: Arc<RxWaker>,
    pub(super) control: Arc<ServerControl>,
    pub(super) backoff: Backoff,
}

impl<L> WorkerParts<L>
where
    L: Local,
{
    /// Serves until the server stops.
    pub(super) fn run(self) {
        let attached = Attached::new();
        attached.self_timed(true);
        let cores = self.common.cores.as_ref();
        let core = cores.map(|cores| WorkerCore::enter(cores, self.me.index()));
        let worker = UnplacedWorker {
            me: self.me,
            local: self.local,
            rules: self.rules,
            view: self.view,
            executor: self.executor,
            fibers: Fibers::new(self.fiber_context, self.me, &attached),
            common: self.common,
            receiving: &self.receiving,
            rx_waker: self.rx_waker,
            control: self.control,
            backoff: self.backoff,
            owes_lead: false,
            core,
        };
        worker.serve();
    }
}

/// A worker whose thread can run fibers.
struct UnplacedWorker<'a, L> {
    me: WorkerId,
    local: L,
    rules: RulesReceiver<L>,
    view: UnplacedQueues,
    executor: Executor,
    fibers: Fibers<'a>,
    common: Arc<Common>,
    receiving: &'a Receiving,
    rx_waker: Arc<RxWaker>,
    control: Arc<ServerControl>,
    backoff: Backoff,
    /// Whether it may have been woken to lead, and has neither led nor seen a leader since.
    owes_lead: bool,
    /// Its core, where an arbiter grants it.
    core: Option<WorkerCore>,
}

impl<'a, L> UnplacedWorker<'a, L>
where
    L: Local,
{
    fn serve(mut self) {
        while self.step() {}
        self.view.give_up();
        // Whoever else leads now comes by here later.
        if let Some(mut lead) = self.receiving.try_lead() {
            lead.close(self.fibers.now().ns);
        }
    }

    /// Runs one request for a slice; without one it leads, or waits a little. `false` once the server gives up, or has stopped.
    #[inline]
    fn step(&mut self) -> bool {
        if self.control.phase() >= ServerPhase::Abandoning {
            return false;
        }
        if self.core.as_ref().is_some_and(WorkerCore::is_revoked) {
            self.step_aside();
        }
        if self.turn() {
            self.backoff.reset();
        } else {
            self.look_for_work();
        }
        true
    }

    /// Runs one request for a slice, if there is one behind the receive queue.
    #[inline]
    fn turn(&mut self) -> bool {
        let Self { local, control, .. } = self;
        self.rules.adopt(control, |fresh| {
            local.adopt(fresh);
            true
        });
        let now_ns = self.fibers.now().ns;
        let waits = !self.view.is_empty() || self.common.shares_work();
        if !waits || self.common.poll_is_due(now_ns) {
            poll(self.receiving, now_ns, self.backoff.may_sleep());
        }
        let next = self.local.next(now_ns, &mut self.view);
        if let Some(core) = &mut self.core {
            let took = matches!(next, Next::Run { .. });
            core.show_run_queue(took, self.view.queued());
        }
        match next {
            Next::Run { job, slice_ns } => {
                // Where workers come and go the arbiter wakes them.
                if self.core.is_none() && self.backoff.may_sleep() {
                    self.wake_another();
                }
                self.run(job, slice_ns);
            }
            Next::Retry => {}
            Next::Idle => return false,
        }
        true
    }

    /// Leads, or sleeps until it is time to, or gives its core back.
    fn look_for_work(&mut self) {
        if self.core.is_some() {
            if self.backoff.exhausted() {
                self.step_aside();
            }
            return;
        }
        let lead = self.receiving.try_lead().or_else(|| self.follow());
        if let Some(lead) = lead {
            self.lead(lead);
        }
    }

    /// The core is revoked, or of no use: the worker gives it back, with all that it helped itself to, and gets on when it has one again.
    #[cold]
    fn step_aside(&mut self) {
        let Some(core) = &mut self.core else { return };
        self.view.give_back();
        core.show_run_queue(false, 0);
        if core.withdraw(|| true) {
            let (common, rx_waker) = (&self.common, &self.rx_waker);
            let cores = Arc::clone(core.cores());
            let mut finds_nothing =
                || !common.has_work() && (cores.has_active() || rx_waker.rx().backlog_hint() == 0);
            let waits = !cores.has_active() && common.has_work();
            core.leave(waits, &mut finds_nothing);
        }
        self.backoff.slept();
    }

    fn follow(&mut self) -> Option<Lead<'a, LeaderIntake>> {
        self.owes_lead = false;
        let receiving = self.receiving;
        if self.control.phase() != ServerPhase::Running {
            // The leader may sleep, and this worker's last request have been the last of all.
            self.rx_waker.wake();
        }
        if !self.backoff.exhausted() {
            return None;
        }
        let lead = receiving.follow(self.me.index(), || {
            self.common.has_work() || self.control.phase() >= ServerPhase::Abandoning
        });
        self.backoff.slept();
        self.owes_lead = lead.is_none();
        lead
    }

    /// Leads until there is something to run.
    fn lead(&mut self, mut lead: Lead<'_, LeaderIntake>) {
        self.owes_lead = false;
        self.backoff.reset();
        loop {
            let now_ns = self.fibers.now().ns;
            let received = lead.poll(now_ns);
            self.backoff.saw(now_ns);
            if self.common.has_work() || self.control.phase() >= ServerPhase::Abandoning {
                break;
            }
            if received > 0 {
                self.backoff.reset();
            } else if self.backoff.exhausted() {
                lead.sleep();
                self.backoff.slept();
            }
        }
        self.backoff.reset();
        resign(self.receiving, lead, self.backoff.may_sleep());
    }

    /// Before this worker runs a request: the work that it leaves behind is another's, and so is the lead that it was woken for.
    #[inline]
    fn wake_another(&mut self) {
        let leaves_work = !self.view.is_empty() || self.common.shares_work();
        let leaves_lead = std::mem::take(&mut self.owes_lead) && !self.receiving.is_led();
        if leaves_work || leaves_lead {
            announce();
            if !self.receiving.wake_follower() && leaves_work {
                self.rx_waker.wake_announced();
            }
        }
    }

    #[inline]
    fn run(&mut self, id: JobId, slice_ns: Option<u64>) {
        let Self {
            local,
            view,
            executor,
            fibers,
            common,
            receiving,
            control,
            backoff,
            core,
            ..
        } = self;
        let core = core.as_ref();
        let request = view.take(id);
        let suspended = request.is_suspended();
        let slot = request.into_slot();
        fibers.next_epoch();
        let now = fibers.now();
        // A slice may be longer than a revoked core may be kept.
        let look_ns = core.map_or(u64::MAX, |_| LOOK_FOR_ORDERS_NS);
        let first_ns = slice_ns.unwrap_or(u64::MAX).min(look_ns);
        let first_ns = (first_ns < u64::MAX).then_some(first_ns);
        let (slot, _) = fibers.take_up(slot, suspended, first_ns.is_some());
        let mut owner = UnplacedOwner {
            local,
            view,
            common,
            receiving,
            control,
            core,
            may_sleep: backoff.may_sleep(),
            look_ns,
            slice_end_ns: slice_ns.map_or(u64::MAX, |slice_ns| now.ns + slice_ns),
            renewals: 0,
        };
        let taken = TakenRequest { slot, suspended };
        let ran = run_slice(fibers, executor, &mut owner, taken, now, first_ns);
        backoff.ran(&ran.span_ns());
    }
}

/// A worker that helps itself, while it runs a request.
struct UnplacedOwner<'a, L> {
    local: &'a mut L,
    view: &'a mut UnplacedQueues,
    common: &'a Common,
    receiving: &'a Receiving,
    control: &'a ServerControl,
    core: Option<&'a WorkerCore>,
    may_sleep: bool,
    look_ns: u64,
    slice_end_ns: u64,
    renewals: u64,
}

impl<L: Local> SliceLimits for UnplacedOwner<'_, L> {
    #[inline]
    fn renew(&mut self, now_ns: u64, _asked: bool) -> Option<u64> {
        let leaves = self.core.is_some_and(WorkerCore::is_revoked);
        if leaves || self.control.phase() >= ServerPhase::Abandoning {
            return None;
        }
        if self.common.poll_is_due(now_ns) {
            poll(self.receiving, now_ns, self.may_sleep);
        }
        if now_ns >= self.slice_end_ns {
            let renewed_ns = self.local.renew(now_ns, self.view)?;
            self.renewals += 1;
            self.slice_end_ns = now_ns + renewed_ns;
        }
        Some((self.slice_end_ns - now_ns).min(self.look_ns))
    }

    /// No policy of this layout goes by it.
    fn said_long(&mut self, _now_ns: u64, _job: &Job) -> Option<u64> {
        None
    }
}

impl<L: Local> SliceOwner for UnplacedOwner<'_, L> {
    #[inline]
    fn unanswered_since_ns(&self, _fibers: &Fibers<'_>) -> Option<u64> {
        None
    }

    #[inline]
    fn stopped(&mut self, _now_ns: u64) {}

    #[inline]
    fn finished(&mut self, now_ns: u64, job: &Job, cpu_ns: u64, slot: SlotId) {
        self.local.finished(now_ns, job, cpu_ns, self.view);
        self.common.release(slot);
    }

    #[inline]
    fn yielded(&mut self, now_ns: u64, job: &Job, slot: SlotId, _message: u64) {
        self.view.keep(slot);
        if self.control.phase() >= ServerPhase::Abandoning {
            self.view.push(job.id);
        } else if !self.local.yielded(now_ns, job, self.view) {
            let fits = self.view.push_shared(ARRIVALS, job.id);
            assert!(fits, "the queue of all that arrives has room for it");
        }
    }

    fn refused(&mut self, _now_ns: u64, _job: &Job, slot: SlotId) {
        self.common.release(slot);
    }

    #[inline]
    fn renewals(&mut self) -> u64 {
        self.renewals
    }

    #[inline]
    fn counts_interruptions(&self) -> bool {
        true
    }
}

/// Moves what came into the shared queue, unless another worker does.
#[inline]
fn poll(receiving: &Receiving, now_ns: u64, may_sleep: bool) {
    if let Some(mut lead) = receiving.try_lead() {
        lead.poll(now_ns);
        resign(receiving, lead, may_sleep);
    }
}

/// Stops leading. Where workers sleep, one of them wakes to lead.
#[inline]
fn resign(receiving: &Receiving, lead: Lead<'_, LeaderIntake>, may_sleep: bool) {
    if may_sleep {
        receiving.resign(lead);
    } else {
        drop(lead);
    }
}
