//! The link between the dispatcher and one worker: requests one way, reports the other.

use std::iter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::queue::links::{SlotReceiver, SlotSender, link};

/// The dispatcher's end of its link with one worker.
pub(super) struct DispatcherEnd {
    pub(super) jobs: SlotSender,
    pub(super) done: SlotReceiver,
    /// Requests given and not yet reported done: while there are none the ring is empty, and is not read.
    pub(super) held: usize,
    ended: LinkEnded,
}

/// A worker's end of its link with the dispatcher.
pub(super) struct WorkerEnd {
    pub(super) jobs: SlotReceiver,
    pub(super) done: SlotSender,
    ended: LinkEnded,
}

/// A link with a worker that holds at most `depth` requests.
pub(super) fn worker_link(depth: usize) -> (DispatcherEnd, WorkerEnd) {
    let (jobs, from_dispatcher) = link(depth);
    let (to_dispatcher, done) = link(depth);
    let ended = LinkEnded::default();
    let dispatcher_end = DispatcherEnd {
        jobs,
        done,
        held: 0,
        ended: ended.clone(),
    };
    let worker_end = WorkerEnd {
        jobs: from_dispatcher,
        done: to_dispatcher,
        ended,
    };
    (dispatcher_end, worker_end)
}

/// Which side has ended, once the server has stopped: the last one counts the requests that the worker gave back and nobody took.
#[derive(Clone, Default)]
struct LinkEnded(Arc<Mutex<EndedSide>>);

#[derive(Default)]
enum EndedSide {
    #[default]
    Neither,
    Worker,
    /// The worker may still give requests back, over the link whose other end this is.
    Dispatcher(SlotReceiver),
    Both,
}

impl LinkEnded {
    fn side(&self) -> MutexGuard<'_, EndedSide> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DispatcherEnd {
    /// The dispatcher collects no more reports. The suspended requests that nobody takes and nobody else counts; none the second time.
    #[cold]
    pub(super) fn end(&mut self) -> usize {
        let mut side = self.ended.side();
        match *side {
            EndedSide::Neither => {
                let (_, nothing) = link(1);
                *side = EndedSide::Dispatcher(std::mem::replace(&mut self.done, nothing));
                0
            }
            EndedSide::Worker => {
                *side = EndedSide::Both;
                suspended_in(&mut self.done)
            }
            EndedSide::Dispatcher(_) | EndedSide::Both => 0,
        }
    }
}

impl WorkerEnd {
    /// The worker begins no more requests. Those given to it that it did not begin, and those it gave back that nobody takes and nobody else counts.
    #[cold]
    pub(super) fn end(&mut self) -> usize {
        let unbegun = iter::from_fn(|| self.jobs.receive()).count();
        let mut side = self.ended.side();
        let before = std::mem::replace(&mut *side, EndedSide::Both);
        match before {
            EndedSide::Dispatcher(mut done) => unbegun + suspended_in(&mut done),
            EndedSide::Neither | EndedSide::Worker => {
                *side = EndedSide::Worker;
                unbegun
            }
            EndedSide::Both => unbegun,
        }
    }
}

/// Takes what is left there. Finished requests are counted already.
fn suspended_in(done: &mut SlotReceiver) -> usize {
    let left = iter::from_fn(|| done.receive());
    left.filter(|request| request.is_suspended()).count()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use headway_net::pool::{SlotId, SlotPool};

    /// A worker that was given one request more, and gave one back beside one that it finished; and the request that it runs.
    fn link_with_reports() -> (DispatcherEnd, WorkerEnd, SlotId) {
        let (_pool, mut free) = SlotPool::new(4).expect("a small pool");
        let mut slot = || free.take().expect("there are four");
        let (mut dispatcher, mut worker) = worker_link(4);
        dispatcher.jobs.send(slot(), 0);
        worker.done.send(slot(), 0);
        worker.done.send_suspended(slot(), 0);
        (dispatcher, worker, slot())
    }

    #[test]
    fn whoever_ends_last_counts_what_was_given_back() {
        let (mut dispatcher, mut worker, _) = link_with_reports();
        assert_eq!((worker.end(), dispatcher.end()), (1, 1));
        assert_eq!(dispatcher.end(), 0, "once");
        let (mut dispatcher, mut worker, runs) = link_with_reports();
        assert_eq!(dispatcher.end(), 0);
        worker.done.send_suspended(runs, 0);
        assert_eq!((worker.end(), dispatcher.end()), (3, 0));
    }
}
