//! The requests in flight, in reused slots.

use crate::server::SimRequest;
use headway_policy::{ClassId, Job, JobId};

/// A request in flight, on a cache line of its own. The order of the fields keeps separately written fields out of one
/// wide load: a load wider than the last store waits for it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct InFlight {
    /// Its service time plus the costs of probes and interruptions, ns.
    pub(super) needs_ns: u64,
    pub(super) request: SimRequest,
    /// Service it received before it was last interrupted, ns.
    pub(super) attained_ns: u64,
}

impl InFlight {
    #[inline]
    pub(super) fn new(request: SimRequest, needs_ns: u64) -> Self {
        Self {
            request,
            needs_ns,
            attained_ns: 0,
        }
    }

    #[inline]
    pub(super) fn left_ns(&self) -> u64 {
        self.needs_ns - self.attained_ns
    }

    /// The request as policies see it.
    #[inline]
    pub(super) fn job(&self, id: JobId) -> Job {
        Job {
            id,
            class: ClassId(self.request.taken_for),
            flow: self.request.flow,
            arrived_ns: self.request.arrived_ns,
            size_ns: self.needs_ns,
            attained_ns: self.attained_ns,
            said_long: false,
        }
    }
}

/// A slab of requests.
#[derive(Default)]
pub(super) struct RequestSlab {
    slots: Vec<InFlight>,
    free: Vec<JobId>,
}

impl RequestSlab {
    /// Stores a request. The flag tells whether the range of ids has grown.
    #[inline]
    pub(super) fn insert(&mut self, request: InFlight) -> (JobId, bool) {
        if let Some(id) = self.free.pop() {
            self.slots[id.index()] = request;
            return (id, false);
        }
        let id = JobId(self.slots.len() as u32);
        let grown = self.slots.len() == self.slots.capacity();
        self.slots.push(request);
        (id, grown || id.0 == 0)
    }

    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Number of requests in flight.
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    #[inline]
    pub(super) fn get(&self, id: JobId) -> &InFlight {
        &self.slots[id.index()]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: JobId) -> &mut InFlight {
        &mut self.slots[id.index()]
    }

    #[inline]
    pub(super) fn remove(&mut self, id: JobId) {
        self.free.push(id);
    }
}
