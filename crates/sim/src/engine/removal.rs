//! The requests that wait at a worker which is removed, where the others would take them anyway.

use super::Engine;
use headway_policy::WorkerId;
use headway_policy::server::role::{Ingress, Local, Monitor, Owner, Queues};

impl<I: Ingress, L: Local, M: Monitor> Engine<I, L, M> {
    /// Gives the requests in a removed worker's queue to the others, where workers steal. A worker that is not there does not look for work,
    /// and thieves may leave short queues alone. So the requests are steered again, or return to the shared queue.
    pub(super) fn hand_over(&mut self, from: WorkerId) {
        while let Some(id) = self.queues.seen_by(from).pop() {
            if I::OWNER == Owner::Nobody {
                self.share(id);
            } else {
                let job = self.job(id);
                self.ingress.yielded(self.now_ns, from, job);
            }
        }
        self.place_accepted();
        self.wake(0, self.costs.handoff_ns);
    }

    /// Steers the requests that wait at the ingress. The limit of queues does not apply: it applied when they arrived.
    pub(super) fn place_accepted(&mut self) {
        if I::OWNER != Owner::Steering {
            return;
        }
        while let Some(dispatch) = self.ingress.poll(self.now_ns) {
            self.dispatched += 1;
            self.enqueue(dispatch.worker, dispatch.job);
        }
    }
}
