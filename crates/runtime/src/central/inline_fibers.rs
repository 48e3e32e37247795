//! Workers that interrupt themselves and take turns as the dispatcher: preemption without a dispatcher's core.
//!
//! A request's own probes end its slice. At that moment the worker tries to lead: it takes requests in, hears of what is done, and
//! asks the monitor about what runs, its own request included. Then it goes on, or runs what the policy chose. If another
//! worker leads, that one looks for all, and the request goes on for a part of a slice. So an arrival is seen by a busy server
//! one slice after it came at the latest.

use std::sync::Arc;

use headway_policy::WorkerId;
use headway_policy::server::role::{Ingress, Local, Monitor};

use super::fiber_worker::{
    Expiry, FiberWorker, FiberWorkerParts, SHORT_SLICE_NS, Slices, WorkerTurn,
};
use super::inline::{Leading, Shared, close, follow, hears_now, lead_until, resign, rests};
use super::view::CentralQueues;
use super::watch::Look;
use crate::request::slice::ClockReading;
use crate::threads::control::{ServerControl, ServerPhase};
use crate::threads::hosted::{HostedCores, LOOK_FOR_ORDERS_NS, WorkerCore};

/// A worker that another kept from leading tries again so often in the time between two looks: who led may stop at any moment, without a word.
const TRIES_PER_LOOK: u64 = 4;

/// A worker thread that may lead, and whose requests may be interrupted.
pub(super) struct InlineFiberWorker<I, L, M> {
    pub(super) parts: FiberWorkerParts<L>,
    pub(super) shared: Arc<Shared<I, M>>,
    /// How often a worker polls for arrivals while its request runs, ns, above 0; it leads as often, or more often where a quantum ends.
    pub(super) look_ns: u64,
    /// Of a server whose workers come and go.
    pub(super) cores: Option<Arc<HostedCores>>,
}

impl<I, L, M> InlineFiberWorker<I, L, M>
where
    I: Ingress,
    L: Local,
    M: Monitor,
{
    /// Runs and leads until the server stops.
    pub(super) fn run(self) {
        let Self {
            parts,
            shared,
            look_ns,
            cores,
        } = self;
        parts.run(true, |worker| {
            // The dispatcher has a flag of every worker, and each worker waits at its end until its flags are gone: so drop it before.
            let shared = shared;
            let core = cores.map(|cores| WorkerCore::enter(&cores, worker.view.me.index()));
            let slices = LeaderSlices {
                shared: &shared,
                core,
                control: Arc::clone(&worker.control),
                me: worker.view.me,
                may_sleep: worker.backoff.may_sleep(),
                look_ns,
                quantum_ns: u64::MAX,
                own_due_ns: u64::MAX,
                lead: None,
            };
            let mut thread = InlineFiberThread {
                worker,
                slices,
                interrupted_at: None,
            };
            while thread.step() {}
            thread.worker.give_up();
            close(thread.slices.shared);
        });
    }
}

/// The worker, once its thread can run fibers.
struct InlineFiberThread<'a, I, L, M> {
    worker: FiberWorker<'a, L>,
    slices: LeaderSlices<'a, I, M>,
    /// When the last request was interrupted: the next begins then.
    interrupted_at: Option<ClockReading>,
}

impl<I, L, M> InlineFiberThread<'_, I, L, M>
where
    I: Ingress,
    L: Local,
    M: Monitor,
{
    /// Runs one request for as long as it may; without one it leads, or waits a little. `false` once the server has stopped.
    #[inline(always)]
    fn step(&mut self) -> bool {
        if self.worker.control.phase() == ServerPhase::Stopped {
            return false;
        }
        if self.slices.must_leave() {
            self.step_aside();
            self.interrupted_at = None;
        }
        let interrupted_at = self.interrupted_at.take();
        let now = interrupted_at.unwrap_or_else(|| self.worker.fibers.now());
        let turn = self.worker.turn(now, &mut self.slices);
        if !matches!(turn, WorkerTurn::Idle) {
            self.worker.backoff.reset();
        }
        match (turn, self.slices.lead.take()) {
            (_, Some(lead)) => self.lead(lead),
            (WorkerTurn::Idle, None) => self.look_for_work(),
            (WorkerTurn::Ran, None) => {}
            (WorkerTurn::Interrupted(now), None) => self.interrupted_at = Some(now),
        }
        true
    }

    fn look_for_work(&mut self) {
        let shared = self.slices.shared;
        if let Some(core) = &self.slices.core {
            let worker = &mut self.worker;
            let has_news = || worker.control.wants_worker(!worker.view.is_empty());
            let me = worker.view.me.index();
            if rests(core, shared, me, &mut worker.backoff, has_news) {
                self.step_aside();
            }
            return;
        }
        let lead = shared.try_lead().or_else(|| {
            let worker = &mut self.worker;
            follow(shared, worker.view.me.index(), &mut worker.backoff, || {
                worker.control.wants_worker(!worker.view.is_empty())
            })
        });
        if let Some(lead) = lead {
            self.lead(lead);
        }
    }

    /// The core is revoked, or of no use: the worker gives it back, and gets on when it has one again. What it has begun waits for it.
    #[cold]
    fn step_aside(&mut self) {
        let Self { worker, slices, .. } = self;
        let Some(core) = &mut slices.core else { return };
        if core.withdraw(|| hears_now(slices.shared)) {
            let cores = Arc::clone(core.cores());
            let waits = worker.has_suspended() || !worker.view.is_empty();
            core.leave(waits, &mut || {
                !waits && (cores.has_active() || worker.rx_backlog() == 0)
            });
        }
        worker.backoff.slept();
    }

    /// Leads until there is something to run here.
    fn lead(&mut self, lead: Leading<'_, I, M>) {
        let worker = &mut self.worker;
        if self.slices.core.is_some() {
            // The worker looks for work in its own way.
            return drop(lead);
        }
        lead_until(
            lead,
            self.slices.shared,
            worker.view.me.index(),
            &mut worker.backoff,
            || worker.control.wants_worker(!worker.view.is_empty()),
        );
    }
}

/// A running request's slices, at whose ends its worker leads.
struct LeaderSlices<'a, I, M> {
    shared: &'a Shared<I, M>,
    /// Of a worker that comes and goes.
    core: Option<WorkerCore>,
    control: Arc<ServerControl>,
    me: WorkerId,
    may_sleep: bool,
    /// How often to poll for arrivals, and the longest slice, ns.
    look_ns: u64,
    /// The time after which the monitor wanted to look at the last request, ns: a request that begins while another worker leads gets as much.
    quantum_ns: u64,
    /// When the slice ends that the local policy gave.
    own_due_ns: u64,
    /// Kept from the end of a slice, for the choice of what comes next.
    lead: Option<Leading<'a, I, M>>,
}

impl<'a, I, M> LeaderSlices<'a, I, M>
where
    I: Ingress,
    M: Monitor,
{
    /// Whether the worker must give its core back.
    #[inline]
    fn must_leave(&self) -> bool {
        self.core.as_ref().is_some_and(WorkerCore::is_revoked)
    }

    /// How often to look at all, ns.
    #[inline]
    fn patience_ns(&self) -> u64 {
        if self.core.is_some() {
            self.look_ns.min(LOOK_FOR_ORDERS_NS)
        } else {
            self.look_ns
        }
    }

    /// How long the request goes on where another worker leads. That one asks it to yield for as long as it leads.
    #[inline]
    fn until_next_try_ns(&self) -> u64 {
        let look_ns = self.patience_ns().min(self.quantum_ns);
        (look_ns / TRIES_PER_LOOK).max(SHORT_SLICE_NS)
    }

    /// A turn as the leader at the end of a slice: until when the request may go on, if the monitor lets it.
    #[inline]
    fn step(&mut self, mut lead: Leading<'a, I, M>, epoch: u64) -> Option<u64> {
        let me = self.me.index();
        lead.step_polling_after(self.look_ns);
        if self.may_sleep {
            lead.wake_given(Some(me), |worker| self.shared.wake(worker));
        }
        match lead.look_at(me, epoch) {
            Look::GoesOn { due_ns, after_ns } => {
                self.quantum_ns = after_ns;
                let now_ns = lead.now_ns();
                resign(self.shared, lead, self.may_sleep);
                Some(due_ns.saturating_sub(now_ns))
            }
            Look::Yields => {
                self.lead = Some(lead);
                None
            }
        }
    }

    /// How long the request goes on, at most `for_ns`, if its local policy lets it.
    #[inline]
    fn own<L: Local>(
        &mut self,
        now_ns: u64,
        for_ns: u64,
        local: &mut L,
        view: &CentralQueues,
    ) -> Option<u64> {
        if now_ns >= self.own_due_ns {
            self.own_due_ns = now_ns + local.renew(now_ns, view)?;
            view.renewed();
        }
        Some(
            for_ns
                .min(self.patience_ns())
                .min(self.own_due_ns - now_ns)
                .max(1),
        )
    }
}

impl<I, L, M> Slices<L> for LeaderSlices<'_, I, M>
where
    I: Ingress,
    L: Local,
    M: Monitor,
{
    const TAKES_HINTS: bool = false;

    #[inline]
    fn begin(&mut self, now_ns: u64, own_ns: Option<u64>) -> Option<u64> {
        let own_ns = own_ns.unwrap_or(u64::MAX);
        self.own_due_ns = now_ns.saturating_add(own_ns);
        Some(own_ns.min(self.patience_ns()).min(self.quantum_ns))
    }

    #[inline]
    fn renew(&mut self, expiry: Expiry, local: &mut L, view: &CentralQueues) -> Option<u64> {
        if expiry.asked || self.control.phase() >= ServerPhase::Abandoning || self.must_leave() {
            return None;
        }
        let for_ns = match self.shared.try_lead() {
            Some(lead) => self.step(lead, expiry.epoch)?,
            None => self.until_next_try_ns(),
        };
        self.own(expiry.now_ns, for_ns, local, view)
    }
}
