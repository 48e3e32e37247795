//! The layout without a dispatcher thread: the workers take turns (see [`leader`](crate::leader)).

use std::sync::Arc;

use headway_net::classify::Classifier;
use headway_net::datapath::{Rx, Tx};
use headway_policy::role::{Ingress, Monitor};

use super::dispatcher::Dispatcher;
use super::worker::CentralWorker;
use crate::control::ServerPhase;
use crate::leader::{Lead, Leadership};
use crate::park::Backoff;
use crate::service::Service;

/// The dispatcher that the workers share.
pub(super) type Shared<I, M, R, T, C> = Leadership<Dispatcher<I, M, R, T, C>>;

/// The right to be that dispatcher.
pub(super) type Leading<'a, I, M, R, T, C> = Lead<'a, Dispatcher<I, M, R, T, C>>;

/// A worker thread that may lead.
pub(super) struct InlineWorker<I, M, S, T, R: Rx, C> {
    pub(super) worker: CentralWorker<S, T, R>,
    pub(super) shared: Arc<Shared<I, M, R, T, C>>,
}

impl<I, M, S, T, R, C> InlineWorker<I, M, S, T, R, C>
where
    I: Ingress,
    M: Monitor,
    S: Service,
    T: Tx,
    R: Rx,
    C: Classifier,
{
    /// Runs and leads until the server stops.
    pub(super) fn run(mut self) {
        while self.worker.control.phase() != ServerPhase::Stopped {
            if self.worker.turn() {
                self.worker.backoff.reset();
            } else {
                self.look_for_work();
            }
        }
        self.worker.give_up();
        close(&self.shared);
    }

    fn look_for_work(&mut self) {
        let Self { worker, shared } = self;
        let (link, control, backoff) = (&worker.link, &worker.control, &mut worker.backoff);
        let has_news = || !link.jobs.is_empty() || control.phase() == ServerPhase::Stopped;
        let lead = shared
            .try_lead()
            .or_else(|| follow(shared, worker.index, backoff, has_news));
        if let Some(lead) = lead {
            lead_until(lead, shared, worker.index, backoff, has_news);
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
pub(super) fn lead_until<I, M, R, T, C>(
    mut lead: Leading<'_, I, M, R, T, C>,
    shared: &Shared<I, M, R, T, C>,
    me: usize,
    backoff: &mut Backoff,
    has_news: impl Fn() -> bool,
) where
    I: Ingress,
    M: Monitor,
    R: Rx,
    T: Tx,
    C: Classifier,
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
pub(super) fn close<I, M, R, T, C>(shared: &Shared<I, M, R, T, C>)
where
    I: Ingress,
    M: Monitor,
    R: Rx,
    T: Tx,
    C: Classifier,
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
