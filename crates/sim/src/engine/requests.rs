//! The requests in flight, in slots that are used again.

use headway_policy::JobId;
use headway_workload::Arrival;

/// A request in flight.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) arrived_ns: u64,
    pub(super) service_ns: u64,
    pub(super) attained_ns: u64,
    pub(super) flow: u32,
    /// What it is.
    pub(super) class: u16,
    /// What the server takes it for.
    pub(super) taken_for: u16,
    /// Whether it is measured.
    pub(super) counted: bool,
}

impl Request {
    pub(super) fn new(arrival: &Arrival, taken_for: u16, counted: bool) -> Self {
        Self {
            arrived_ns: arrival.at_ns,
            service_ns: arrival.service_ns,
            attained_ns: 0,
            flow: arrival.flow,
            class: arrival.class,
            taken_for,
            counted,
        }
    }
}

/// A slab of requests.
#[derive(Default)]
pub(super) struct Requests {
    slots: Vec<Request>,
    free: Vec<JobId>,
}

impl Requests {
    /// Stores a request; the flag says that ids have grown beyond what there was.
    #[inline]
    pub(super) fn insert(&mut self, request: Request) -> (JobId, bool) {
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

    #[inline]
    pub(super) fn get(&self, id: JobId) -> &Request {
        &self.slots[id.index()]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: JobId) -> &mut Request {
        &mut self.slots[id.index()]
    }

    #[inline]
    pub(super) fn remove(&mut self, id: JobId) {
        self.free.push(id);
    }
}
