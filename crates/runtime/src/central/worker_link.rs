//! The link between the dispatcher and one worker: requests one way, reports the other.

use crate::queue::links::{SlotReceiver, SlotSender, link};

/// The dispatcher's end of its link with one worker.
pub(super) struct DispatcherEnd {
    pub(super) jobs: SlotSender,
    pub(super) done: SlotReceiver,
    /// Requests given and not yet reported done: while there are none the ring is empty, and is not read.
    pub(super) held: usize,
}

/// A worker's end of its link with the dispatcher.
pub(super) struct WorkerEnd {
    pub(super) jobs: SlotReceiver,
    pub(super) done: SlotSender,
}

/// A link with a worker that holds at most `depth` requests.
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
