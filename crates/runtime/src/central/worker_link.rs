//! The link between the dispatcher and one worker: requests one way, reports the other.

use headway_net::datapath::Tx;
use headway_net::pool::Prefetch;

use crate::executor::{Executor, Ran};
use crate::service::Service;
use crate::tally::Tally;
use crate::token::{Receiver, Sender, link};

/// The dispatcher's end of its link with one worker.
pub(super) struct DispatcherEnd {
    pub(super) jobs: Sender,
    pub(super) done: Receiver,
    /// Requests given and not yet reported done: while there are none the ring is empty, and is not read.
    pub(super) held: usize,
}

/// A link with a worker that holds at most `depth` requests: the dispatcher's end and the worker's.
pub(super) fn worker_link(depth: usize) -> (DispatcherEnd, WorkerEnd) {
    let (jobs, from_dispatcher) = link(depth);
    let (to_dispatcher, done) = link(depth);
    let dispatcher_end = DispatcherEnd {
        jobs,
        done,
        held: 0,
    };
    let worker_end = WorkerEnd {
        jobs: from_dispatcher,
        done: to_dispatcher,
    };
    (dispatcher_end, worker_end)
}

/// A worker's end of its link with the dispatcher.
pub(super) struct WorkerEnd {
    pub(super) jobs: Receiver,
    pub(super) done: Sender,
}

impl WorkerEnd {
    /// Runs the next request, if there is one, and reports it done.
    #[inline]
    pub(super) fn turn(&mut self, executor: &mut Executor<impl Service, impl Tx>) -> Option<Ran> {
        let mut slot = self.jobs.receive()?.into_slot();
        executor.prefetch(Prefetch::of(&slot));
        // What waits in the queue comes over while the handler runs.
        if let Some(next) = self.jobs.next() {
            executor.prefetch(next);
        }
        let ran = executor.run(&mut slot);
        self.done.send(slot, ran.cpu_ns);
        // The dispatcher goes on meanwhile.
        executor.count(&ran);
        Some(ran)
    }

    /// Counts what was given but will not be run.
    pub(super) fn give_up(&mut self, tally: &Tally) {
        let left = std::iter::from_fn(|| self.jobs.receive()).count();
        tally.abandoned.add(left as u64);
    }
}
