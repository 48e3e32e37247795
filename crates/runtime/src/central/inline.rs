//! The layout without a dispatcher thread: the workers take turns (see [`leader`](crate::leader)).

use std::sync::Arc;

use headway_net::classify::Classifier;
use headway_net::datapath::{Rx, Tx};
use headway_policy::role::{Ingress, Monitor};

use super::dispatcher::Dispatcher;
use super::worker::Worker;
use crate::control::Phase;
use crate::leader::{Lead, Leadership};
use crate::service::Service;

/// The dispatcher that the workers share.
pub(super) type Shared<I, M, R, T, C> = Leadership<Dispatcher<I, M, R, T, C>>;

/// The right to be that dispatcher.
type Leading<'a, I, M, R, T, C> = Lead<'a, Dispatcher<I, M, R, T, C>>;

/// A worker thread that may lead.
pub(super) struct InlineWorker<I, M, S, T, R: Rx, C> {
    pub(super) worker: Worker<S, T, R>,
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
        let shared = Arc::clone(&self.shared);
        while self.worker.control.phase() != Phase::Stopped {
            if self.worker.turn() {
                self.worker.backoff.reset();
            } else if let Some(lead) = shared.try_lead().or_else(|| self.follow(&shared)) {
                self.lead(lead);
            }
        }
        self.worker.give_up();
    }

    fn follow<'a>(
        &mut self,
        shared: &'a Shared<I, M, R, T, C>,
    ) -> Option<Leading<'a, I, M, R, T, C>> {
        if !self.worker.backoff.exhausted() {
            return None;
        }
        let worker = &self.worker;
        let lead = shared.follow(worker.index, || worker.has_news());
        self.worker.backoff.slept();
        lead
    }

    /// Leads until there is something to run here.
    fn lead(&mut self, mut lead: Leading<'_, I, M, R, T, C>) {
        self.worker.backoff.reset();
        loop {
            let progress = lead.step();
            self.worker.backoff.saw(lead.now_ns());
            if self.worker.backoff.may_sleep() {
                lead.wake_given(Some(self.worker.index), |worker| {
                    self.shared.wake(worker);
                });
            }
            if self.worker.has_news() {
                break;
            }
            if progress > 0 {
                self.worker.backoff.reset();
            } else if self.worker.backoff.exhausted() {
                lead.sleep();
                self.worker.backoff.slept();
            }
        }
        self.worker.backoff.reset();
        self.resign(lead);
    }

    #[inline]
    fn resign(&self, lead: Leading<'_, I, M, R, T, C>) {
        if self.worker.backoff.may_sleep() {
            self.shared.resign(lead);
        } else {
            drop(lead);
        }
    }
}
