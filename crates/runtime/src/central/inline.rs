//! The layout without a dispatcher thread: the workers take turns (see [`leader`](crate::leader)).

use std::sync::Arc;

use headway_net::classify::Classifier;
use headway_net::datapath::{Rx, Tx};
use headway_policy::role::{Ingress, Monitor};

use super::desk::Desk;
use super::dispatcher::Dispatcher;
use crate::bell::Bell;
use crate::control::{Control, Phase};
use crate::executor::Executor;
use crate::leader::{Lead, Leadership};
use crate::park::Patience;
use crate::service::Service;

/// The dispatcher that the workers share.
pub(super) type Shared<I, M, R, T, C> = Leadership<Dispatcher<I, M, R, T, C>>;

/// The right to be that dispatcher.
type Leading<'a, I, M, R, T, C> = Lead<'a, Dispatcher<I, M, R, T, C>>;

/// One worker thread, which may lead.
pub(super) struct Worker<I, M, S, T, R: Rx, C> {
    pub(super) index: usize,
    pub(super) desk: Desk,
    pub(super) executor: Executor<S, T>,
    pub(super) shared: Arc<Shared<I, M, R, T, C>>,
    pub(super) bell: Arc<Bell<R>>,
    pub(super) control: Arc<Control>,
    pub(super) patience: Patience,
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
                self.patience.reset();
            } else if let Some(lead) = shared.try_lead().or_else(|| self.follow(&shared)) {
                self.lead(lead);
            }
        }
        self.desk.give_up(&self.executor.tally);
    }

    /// Runs one request, if there is one and the server has not given up.
    #[inline]
    fn turn(&mut self) -> bool {
        if self.control.phase() >= Phase::Abandoning {
            return false;
        }
        let Some(ran) = self.desk.turn(&mut self.executor) else {
            return false;
        };
        self.patience.ran(&ran.span_ns);
        if self.patience.may_sleep() {
            self.bell.ring();
        }
        true
    }

    fn follow<'a>(
        &mut self,
        shared: &'a Shared<I, M, R, T, C>,
    ) -> Option<Leading<'a, I, M, R, T, C>> {
        if !self.patience.exhausted() {
            return None;
        }
        let (desk, control) = (&self.desk, &self.control);
        let lead = shared.follow(self.index, || {
            !desk.jobs.is_empty() || control.phase() == Phase::Stopped
        });
        self.patience.slept();
        lead
    }

    /// Leads until there is something to run here.
    fn lead(&mut self, mut lead: Leading<'_, I, M, R, T, C>) {
        self.patience.reset();
        loop {
            let progress = lead.step();
            self.patience.saw(lead.now_ns());
            if self.patience.may_sleep() {
                lead.wake_given(Some(self.index), |worker| {
                    self.shared.wake(worker);
                });
            }
            if !self.desk.jobs.is_empty() || self.control.phase() == Phase::Stopped {
                break;
            }
            if progress > 0 {
                self.patience.reset();
            } else if self.patience.exhausted() {
                lead.sleep();
                self.patience.slept();
            }
        }
        self.patience.reset();
        self.resign(lead);
    }

    #[inline]
    fn resign(&self, lead: Leading<'_, I, M, R, T, C>) {
        if self.patience.may_sleep() {
            self.shared.resign(lead);
        } else {
            drop(lead);
        }
    }
}
