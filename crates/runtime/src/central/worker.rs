//! What a worker of a dispatcher consists of, and a turn of one that nobody interrupts.

use std::sync::Arc;

use headway_net::pool::Prefetch;

use super::worker_link::WorkerEnd;
use crate::queue::rx_waker::RxWaker;
use crate::request::executor::Executor;
use crate::threads::control::{ServerControl, ServerPhase};
use crate::threads::park::Backoff;

/// A worker of any layout.
pub(super) struct CentralWorker {
    /// Its place among the workers of its dispatcher.
    pub(super) index: usize,
    pub(super) link: WorkerEnd,
    pub(super) executor: Executor,
    pub(super) rx_waker: Arc<RxWaker>,
    pub(super) control: Arc<ServerControl>,
    pub(super) backoff: Backoff,
}

impl CentralWorker {
    /// Runs the next request to its end and reports it done, if there is one and the server has not given up.
    #[inline]
    pub(super) fn turn(&mut self) -> bool {
        if self.control.phase() >= ServerPhase::Abandoning {
            return false;
        }
        let Some(request) = self.link.jobs.receive() else {
            return false;
        };
        let mut slot = request.into_slot();
        self.executor.prefetch(Prefetch::of(&slot));
        // The next request comes over while the handler runs.
        if let Some(next) = self.link.jobs.next() {
            self.executor.prefetch(next);
        }
        let ran = self.executor.run(&mut slot);
        self.link.done.send(slot, ran.cpu_ns);
        // The dispatcher goes on meanwhile.
        self.executor.count(&ran);
        self.backoff.ran(&ran.span_ns);
        if self.backoff.may_sleep() {
            self.rx_waker.wake();
        }
        true
    }

    /// Whether a request waits, or the server stopped: no time to sleep.
    #[inline]
    pub(super) fn has_news(&self) -> bool {
        self.control.wants_worker(!self.link.jobs.is_empty())
    }

    /// Counts the requests that it was given and will not run.
    pub(super) fn give_up(&mut self) {
        self.executor.tally.abandoned.add(self.link.end() as u64);
    }
}
