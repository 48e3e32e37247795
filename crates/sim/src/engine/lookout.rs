//! The delay until an arrival is seen. A dispatcher's thread sees it at once; where workers take turns as the dispatcher, one of them must
//! first look.

use super::Engine;
use crate::Costs;
use crate::server::NEVER;
use headway_policy::server::role::{Ingress, Local, Monitor, Owner};

impl<I: Ingress, L: Local, M: Monitor> Engine<I, L, M> {
    /// The time when a request that arrives now is first seen.
    #[inline]
    pub(super) fn seen_from_ns(&mut self, now_ns: u64) -> u64 {
        let takes_turns = self.costs.look_ns > 0 && (M::PREEMPTS || L::SLICES);
        if takes_turns && self.idle == 0 {
            self.seen_by_worker_ns(now_ns)
        } else {
            now_ns
        }
    }

    /// The time that a worker spends on looks for arrivals during a request's own `service_ns`. Where each worker ends its own slices it looks at their ends, and
    /// pays there.
    #[inline]
    pub(super) fn looks_during_ns(&self, service_ns: u64) -> u64 {
        let takes_turns = I::OWNER == Owner::Dispatcher && M::PREEMPTS && !L::SLICES;
        match (takes_turns, self.costs.look_ns) {
            (true, look_ns @ 1..) => service_ns / look_ns * self.costs.renew_ns,
            _ => 0,
        }
    }

    /// The time when the first of the workers, all of them busy, looks for arrivals: at the end of its request or of a slice. That worker
    /// pays for the request that it finds.
    fn seen_by_worker_ns(&mut self, now_ns: u64) -> u64 {
        let Costs {
            look_ns,
            dispatch_ns,
            ..
        } = self.costs;
        // None that is there is free: a free one is removed.
        let first = (0..self.workers.len())
            .filter(|&worker| !self.workers[worker].is_free())
            .min_by_key(|&worker| self.workers[worker].looks_up_ns(now_ns, look_ns));
        let Some(first) = first else { return now_ns };
        let at = &mut self.workers[first];
        let seen_ns = at.looks_up_ns(now_ns, look_ns);
        if dispatch_ns > 0 && at.is_serving() && seen_ns < at.done_ns {
            at.done_ns += dispatch_ns;
            self.requests.get_mut(at.running).needs_ns += dispatch_ns;
            self.stops.set(first, at.next_ns());
        }
        if seen_ns == NEVER { now_ns } else { seen_ns }
    }
}
