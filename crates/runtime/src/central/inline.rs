//! The layout without a dispatcher thread: the workers take turns (see [`leader`](headway_sync::leader)).

use std::sync::Arc;

use headway_policy::server::role::{Ingress, Monitor};

use super::dispatcher::Dispatcher;
use super::worker::CentralWorker;
use crate::threads::control::ServerPhase;
use crate::threads::hosted::{HostedCores, WorkerCore};
use crate::threads::park::Backoff;
use headway_sync::leader::{Lead, Leadership};

/// The dispatcher that the workers share.
pub(super) type Shared<I, M> = Leadership<Dispatcher<I, M>>;

/// The right to be that dispatcher.
pub(super) type Leading<'a, I, M> = Lead<'a, Dispatcher<I, M>>;

/// A worker thread that may lead.
pub(super) struct InlineWorker<I, M> {
    pub(super) worker: CentralWorker,
    pub(super) shared: Arc<Shared<I, M>>,
    /// Of a server whose workers come and go.
    pub(super) cores: Option<Arc<HostedCores>>,
}

impl<I, M> InlineWorker<I, M>
where
    I: Ingress,
    M: Monitor,
{
    /// Runs and leads until the server stops.
    pub(super) fn run(self) {
        let index = self.worker.index;
        let mut thread = InlineThread {
            core: self.cores.map(|cores| WorkerCore::enter(&cores, index)),
            worker: self.worker,
            shared: self.shared,
        };
        while thread.step() {}
        thread.worker.give_up();
        close(&thread.shared);
    }
}

/// The worker, once it has a core.
struct InlineThread<I, M> {
    /// Of a server whose workers come and go. The first to be dropped.
    core: Option<WorkerCore>,
    worker: CentralWorker,
    shared: Arc<Shared<I, M>>,
}

impl<I, M> InlineThread<I, M>
where
    I: Ingress,
    M: Monitor,
{
    /// Runs one request; without one it leads, or waits a little. `false` once the server has stopped.
    #[inline]
    fn step(&mut self) -> bool {
        if self.worker.control.phase() == ServerPhase::Stopped {
            return false;
        }
        if self.core.as_ref().is_some_and(WorkerCore::is_revoked) {
            self.step_aside();
        }
        if self.worker.turn() {
            self.worker.backoff.reset();
        } else {
            self.look_for_work();
        }
        true
    }

    fn look_for_work(&mut self) {
        let Self {
            core,
            worker,
            shared,
        } = self;
        let (link, control, backoff) = (&worker.link, &worker.control, &mut worker.backoff);
        let has_news = || control.wants_worker(!link.jobs.is_empty());
        if let Some(core) = core {
            if rests(core, shared, worker.index, backoff, has_news) {
                self.step_aside();
            }
            return;
        }
        let lead = shared
            .try_lead()
            .or_else(|| follow(shared, worker.index, backoff, has_news));
        if let Some(lead) = lead {
            lead_until(lead, shared, worker.index, backoff, has_news);
        }
    }

    /// The core is revoked, or of no use: the worker gives it back, and gets on when it has one again.
    fn step_aside(&mut self) {
        let Self {
            core,
            worker,
            shared,
        } = self;
        let Some(core) = core else { return };
        if core.withdraw(|| hears_now(shared)) {
            // Handed out before the dispatcher heard of it, and not to be interrupted.
            while worker.turn() {}
            let cores = Arc::clone(core.cores());
            core.leave(false, &mut || {
                cores.has_active() || worker.rx_waker.rx().backlog_hint() == 0
            });
        }
        worker.backoff.slept();
    }
}

/// Whether the dispatcher is idle, so that who leads next hears of all that was said before. Nobody may lead for long then, so the arbiter is shown now
/// what the calling worker gave back.
pub(super) fn hears_now<I, M>(shared: &Shared<I, M>) -> bool
where
    I: Ingress,
    M: Monitor,
{
    let Some(mut lead) = shared.try_lead() else {
        return false;
    };
    lead.hear();
    true
}

/// Looks for work of a worker that comes and goes, and leads if nobody does. `true` when it is time to give the core back.
pub(super) fn rests<I, M>(
    core: &WorkerCore,
    shared: &Shared<I, M>,
    me: usize,
    backoff: &mut Backoff,
    has_news: impl Fn() -> bool,
) -> bool
where
    I: Ingress,
    M: Monitor,
{
    let Some(mut lead) = shared.try_lead() else {
        return backoff.exhausted();
    };
    loop {
        let progress = lead.step();
        backoff.saw(lead.now_ns());
        // Nobody sleeps but those without a core.
        lead.wake_given(Some(me), |_| {});
        if has_news() {
            backoff.reset();
            return false;
        }
        if core.is_revoked() {
            return true;
        }
        if progress > 0 {
            backoff.reset();
        } else if backoff.exhausted() {
            return true;
        }
    }
}

/// Sleeps until there is something to run or nobody leads, if it is time to sleep.
pub(super) fn follow<'a, D>(
    shared: &'a Leadership<D>,
    me: usize,
    backoff: &mut Backoff,
    has_news: impl FnOnce() -> bool,
) -> Option<Lead<'a, D>> {
    if !backoff.exhausted() {
        return None;
    }
    let lead = shared.follow(me, has_news);
    backoff.slept();
    lead
}

/// Leads until there is something to run here.
pub(super) fn lead_until<I, M>(
    mut lead: Leading<'_, I, M>,
    shared: &Shared<I, M>,
    me: usize,
    backoff: &mut Backoff,
    has_news: impl Fn() -> bool,
) where
    I: Ingress,
    M: Monitor,
{
    backoff.reset();
    loop {
        let progress = lead.step();
        backoff.saw(lead.now_ns());
        if backoff.may_sleep() {
            lead.wake_given(Some(me), |worker| shared.wake(worker));
        }
        if has_news() {
            break;
        }
        if progress > 0 || lead.is_wakeful() {
            backoff.reset();
        } else if backoff.exhausted() {
            lead.sleep();
            backoff.slept();
        }
    }
    backoff.reset();
    resign(shared, lead, backoff.may_sleep());
}

/// The server has stopped: whoever leads last closes the dispatcher.
pub(super) fn close<I, M>(shared: &Shared<I, M>)
where
    I: Ingress,
    M: Monitor,
{
    if let Some(mut lead) = shared.try_lead() {
        lead.close();
    }
}

/// Stops leading. Where workers sleep, one of them wakes to lead.
#[inline]
pub(super) fn resign<D>(shared: &Leadership<D>, lead: Lead<'_, D>, may_sleep: bool) {
    if may_sleep {
        shared.resign(lead);
    } else {
        drop(lead);
    }
}
