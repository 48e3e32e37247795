//! Dispatcher and worker, either's side of the other.

use headway_net::datapath::Tx;
use headway_net::pool::Prefetch;

use crate::executor::{Executor, Ran};
use crate::service::Service;
use crate::tally::Tally;
use crate::token::{Receiver, Sender, link};

/// The dispatcher's ends of the links with one worker.
pub(super) struct Port {
    pub(super) jobs: Sender,
    pub(super) done: Receiver,
    /// Requests given and not yet reported done: a ring that must be empty is not looked into.
    pub(super) held: usize,
}

/// Links with a worker that holds at most `depth` requests.
pub(super) fn connect(depth: usize) -> (Port, Desk) {
    let (jobs, from_dispatcher) = link(depth);
    let (to_dispatcher, done) = link(depth);
    let port = Port {
        jobs,
        done,
        held: 0,
    };
    let desk = Desk {
        jobs: from_dispatcher,
        done: to_dispatcher,
    };
    (port, desk)
}

/// A worker's ends of the links with the dispatcher.
pub(super) struct Desk {
    pub(super) jobs: Receiver,
    pub(super) done: Sender,
}

impl Desk {
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
