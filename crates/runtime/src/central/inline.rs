//! The layout without a dispatcher thread: the workers take turns (see [`leader`](crate::leader)).

use std::sync::Arc;

use headway_net::classify::Classifier;
use headway_net::datapath::{Rx, Tx};
use headway_policy::role::{Ingress, Monitor};

use super::dispatcher::Dispatcher;
use super::worker_link::WorkerEnd;
use crate::control::{Control, Phase};
use crate::executor::Executor;
use crate::leader::{Lead, Leadership};
use crate::park::Backoff;
use crate::rx_waker::RxWaker;
use crate::service::Service;

/// The dispatcher that the workers share.
pub(super) type Shared<I, M, R, T, C> = Leadership<Dispatcher<I, M, R, T, C>>;

/// The right to be that dispatcher.
type Leading<'a, I, M, R, T, C> = Lead<'a, Dispatcher<I, M, R, T, C>>;

/// One worker thread, which may lead.
pub(super) struct Worker<I, M, S, T, R: Rx, C> {
    pub(super) index: usize,
    pub(super) link: WorkerEnd,
    pub(super) executor: Executor<S, T>,
    pub(super) shared: Arc<Shared<I, M, R, T, C>>,
    pub(super) rx_waker: Arc<RxWaker<R>>,
    pub(super) control: Arc<Control>,
    pub(super) backoff: Backoff,
}

impl<I, M, S, T, R, C> Worker<I, M, S, T, R, C>
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
        while self.control.phase() != Phase::Stopped {
            if self.turn() {
                self.backoff.reset();
            } else if let Some(lead) = shared.try_lead().or_else(|| self.follow(&shared)) {
                self.lead(lead);
            }
        }
        self.link.give_up(&self.executor.tally);
    }

    /// Runs one request, if there is one and the server has not given up.
    #[inline]
    fn turn(&mut self) -> bool {
        if self.control.phase() >= Phase::Abandoning {
            return false;
        }
        let Some(ran) = self.link.turn(&mut self.executor) else {
            return false;
        };
        self.backoff.ran(&ran.span_ns);
        if self.backoff.may_sleep() {
            self.rx_waker.wake();
        }
        true
    }

    fn follow<'a>(
        &mut self,
        shared: &'a Shared<I, M, R, T, C>,
    ) -> Option<Leading<'a, I, M, R, T, C>> {
        if !self.backoff.exhausted() {
            return None;
        }
        let (link, control) = (&self.link, &self.control);
        let lead = shared.follow(self.index, || {
            !link.jobs.is_empty() || control.phase() == Phase::Stopped
        });
        self.backoff.slept();
        lead
    }

    /// Leads until there is something to run here.
    fn lead(&mut self, mut lead: Leading<'_, I, M, R, T, C>) {
        self.backoff.reset();
        loop {
            let progress = lead.step();
            self.backoff.saw(lead.now_ns());
            if self.backoff.may_sleep() {
                lead.wake_given(Some(self.index), |worker| {
                    self.shared.wake(worker);
                });
            }
            if !self.link.jobs.is_empty() || self.control.phase() == Phase::Stopped {
                break;
            }
            if progress > 0 {
                self.backoff.reset();
            } else if self.backoff.exhausted() {
                lead.sleep();
                self.backoff.slept();
            }
        }
        self.backoff.reset();
        self.resign(lead);
    }

    #[inline]
    fn resign(&self, lead: Leading<'_, I, M, R, T, C>) {
        if self.backoff.may_sleep() {
            self.shared.resign(lead);
        } else {
            drop(lead);
        }
    }
}
