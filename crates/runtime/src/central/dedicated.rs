//! The layout with a dispatcher on a core of its own.

use std::sync::Arc;

use headway_fiber::Attached;
use headway_net::classify::Classifier;
use headway_net::datapath::{Rx, Tx};
use headway_policy::role::{Ingress, Monitor};

use super::dispatcher::Dispatcher;
use super::dispatcher_worker::{DispatcherWorker, DispatcherWorkerParts};
use super::worker_link::WorkerEnd;
use crate::control::{Control, Phase};
use crate::executor::Executor;
use crate::park::{Backoff, Parkers};
use crate::rx_waker::RxWaker;
use crate::service::Service;

/// The dispatcher thread: until everything is answered after a drain, or given up.
pub(super) fn dispatch<I, M, R, T, C, S>(
    mut dispatcher: Dispatcher<I, M, R, T, C>,
    worker_parts: Option<DispatcherWorkerParts<S, T>>,
    control: &Control,
    parkers: &Parkers,
    mut backoff: Backoff,
) where
    I: Ingress,
    M: Monitor,
    R: Rx,
    T: Tx,
    C: Classifier,
    S: Service,
{
    let attached = worker_parts.is_some().then(Attached::new);
    let mut dispatcher_worker = attached
        .as_ref()
        .zip(worker_parts)
        .map(|(attached, parts)| DispatcherWorker::new(parts, attached));
    while control.phase() != Phase::Stopped {
        let progress = dispatcher.step();
        backoff.saw(dispatcher.now_ns());
        if backoff.may_sleep() {
            dispatcher.wake_given(None, |worker| {
                parkers.wake(worker);
            });
        }
        let ran_ns = dispatcher_worker
            .as_mut()
            .filter(|_| control.phase() < Phase::Abandoning)
            .and_then(|worker| worker.work(&mut dispatcher));
        if let Some(ran_ns) = ran_ns {
            backoff.reset();
            backoff.ran(&ran_ns);
        } else if progress > 0 || dispatcher.is_wakeful() {
            backoff.reset();
        } else if backoff.exhausted() {
            dispatcher.sleep();
            backoff.slept();
        }
    }
}

/// One worker thread.
pub(super) struct Worker<S, T, R> {
    pub(super) index: usize,
    pub(super) link: WorkerEnd,
    pub(super) executor: Executor<S, T>,
    pub(super) rx_waker: Arc<RxWaker<R>>,
    pub(super) control: Arc<Control>,
    pub(super) parkers: Parkers,
    pub(super) backoff: Backoff,
}

impl<S: Service, T: Tx, R: Rx> Worker<S, T, R> {
    /// Runs what it is given until the server stops.
    pub(super) fn run(mut self) {
        while self.control.phase() != Phase::Stopped {
            if self.turn() {
                self.backoff.reset();
            } else if self.backoff.exhausted() {
                self.sleep();
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

    fn sleep(&mut self) {
        let (link, control) = (&self.link, &self.control);
        self.parkers.park_unless(self.index, || {
            !link.jobs.is_empty() || control.phase() == Phase::Stopped
        });
        self.backoff.slept();
    }
}
