//! A composition of the three roles: what an engine runs.

use crate::BitSet;
use crate::server::PreemptionCosts;
use crate::server::role::Never;
use crate::spec::Params;
use alloc::vec::Vec;

/// A composition: the three roles, one `Local` a worker.
pub struct System<I, L, M = Never> {
    /// Its name.
    pub name: &'static str,
    /// The parameters it was built with.
    pub params: Params,
    /// Who gets which request.
    pub ingress: I,
    /// What each worker runs next.
    pub locals: Vec<L>,
    /// Who is interrupted.
    pub monitor: M,
    /// Requests a worker may hold, the running one included.
    pub depth: usize,
    /// Queues that all workers share.
    pub shared_queues: SharedQueues,
    /// Classes that an engine refuses first as its buffers run out, until a worker [says otherwise](crate::server::role::Queues::set_sheds_first): requests of
    /// these wait, interrupted, in buffers that others then lack.
    pub sheds_first: BitSet,
    /// What interrupting costs.
    pub preemption_costs: PreemptionCosts,
}

/// Of a worker's buffers, one in so many is kept from the classes that are [refused first](System::sheds_first).
pub const KEPT_FROM_LONGS: usize = 4;

/// The queues that all workers of a system share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedQueues {
    /// How many there are, at least one.
    pub count: usize,
    /// Requests that each has room for, at least one; `usize::MAX` for all there are.
    pub room: usize,
}

impl SharedQueues {
    /// One, for all requests there are.
    pub const ONE: Self = Self {
        count: 1,
        room: usize::MAX,
    };

    /// The requests that they have room for in all, of `requests` that there are.
    #[must_use]
    pub const fn most(&self, requests: usize) -> usize {
        let room = self.room.saturating_mul(self.count);
        if room < requests { room } else { requests }
    }
}

impl<I, L> System<I, L> {
    /// The same under a monitor.
    pub(super) fn under<M>(
        self,
        monitor: M,
        preemption_costs: PreemptionCosts,
        params: Params,
    ) -> System<I, L, M> {
        System {
            name: self.name,
            params,
            ingress: self.ingress,
            locals: self.locals,
            monitor,
            depth: self.depth,
            shared_queues: self.shared_queues,
            sheds_first: self.sheds_first,
            preemption_costs,
        }
    }
}
