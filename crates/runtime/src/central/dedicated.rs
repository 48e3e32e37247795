//! The layout with a dispatcher on a core of its own.

use std::sync::Arc;

use headway_fiber::Attached;
use headway_net::classify::Classifier;
use headway_net::datapath::{Rx, Tx};
use headway_policy::role::{Ingress, Monitor};

use super::desk::Desk;
use super::dispatcher::Dispatcher;
use super::hands::{Hands, Spare};
use crate::bell::Bell;
use crate::control::{Control, Phase};
use crate::executor::Executor;
use crate::park::{Parker, Patience};
use crate::service::Service;
use crate::sync::Padded;

/// Where the workers sleep.
pub(super) type Beds = Arc<[Padded<Parker>]>;

/// The dispatcher thread: until everything is answered after a drain, or given up.
pub(super) fn dispatch<I, M, R, T, C, S>(
    mut dispatcher: Dispatcher<I, M, R, T, C>,
    spare: Option<Spare<S, T>>,
    control: &Control,
    beds: &Beds,
    mut patience: Patience,
) where
    I: Ingress,
    M: Monitor,
    R: Rx,
    T: Tx,
    C: Classifier,
    S: Service,
{
    let attached = spare.is_some().then(Attached::new);
    let mut hands = attached
        .as_ref()
        .zip(spare)
        .map(|(attached, spare)| Hands::new(spare, attached));
    while control.phase() != Phase::Stopped {
        let progress = dispatcher.step();
        patience.saw(dispatcher.now_ns());
        if patience.may_sleep() {
            dispatcher.wake_given(None, |worker| {
                beds[worker].wake();
            });
        }
        let working = hands
            .as_mut()
            .filter(|_| control.phase() < Phase::Abandoning);
        if let Some(worked) = working.and_then(|hands| hands.work(&mut dispatcher)) {
            patience.reset();
            patience.ran(&worked);
        } else if progress > 0 || dispatcher.is_wakeful() {
            patience.reset();
        } else if patience.exhausted() {
            dispatcher.sleep();
            patience.slept();
        }
    }
}

/// One worker thread.
pub(super) struct Worker<S, T, R> {
    pub(super) index: usize,
    pub(super) desk: Desk,
    pub(super) executor: Executor<S, T>,
    pub(super) bell: Arc<Bell<R>>,
    pub(super) control: Arc<Control>,
    pub(super) beds: Beds,
    pub(super) patience: Patience,
}

impl<S: Service, T: Tx, R: Rx> Worker<S, T, R> {
    /// Runs what it is given until the server stops.
    pub(super) fn run(mut self) {
        while self.control.phase() != Phase::Stopped {
            if self.turn() {
                self.patience.reset();
            } else if self.patience.exhausted() {
                self.sleep();
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

    fn sleep(&mut self) {
        let (desk, control) = (&self.desk, &self.control);
        self.beds[self.index]
            .park_unless(|| !desk.jobs.is_empty() || control.phase() == Phase::Stopped);
        self.patience.slept();
    }
}
