//! Requests on fibers: each in the place of its slot while it runs and while it is suspended.
#![expect(
    unsafe_code,
    reason = "a place is reached by whoever has its request's token"
)]

use std::cell::UnsafeCell;
use std::ptr::NonNull;

use headway_fiber::SendFiber;
use headway_net::slot::Slot;
use headway_policy::{ClassId, Job, JobId, WorkerId};

use crate::request::service::Response;

/// What a fiber is handed: the buffer, and the place for the handler's response.
pub(super) struct FiberWork {
    pub(super) buffer: NonNull<Slot>,
    pub(super) worker: WorkerId,
    pub(super) response: Option<Response>,
}

// SAFETY: the buffer goes with its token, which is sent along.
unsafe impl Send for FiberWork {}

/// A request on a fiber: it runs, or is suspended.
pub(crate) struct Suspended {
    pub(super) fiber: SendFiber<FiberWork>,
    /// The worker that began it.
    pub(super) worker: WorkerId,
    pub(super) class: u16,
    pub(super) arrived_ns: u64,
    pub(super) attained_ns: u64,
}

impl Suspended {
    /// The request as policies see it.
    #[inline]
    pub(super) fn job(&self, id: JobId) -> Job {
        Job {
            attained_ns: self.attained_ns,
            said_long: self.fiber.said_long(),
            ..Job::new(id, ClassId(self.class), self.arrived_ns)
        }
    }
}

/// The requests that have begun on a fiber, one place for each slot. A request keeps its place while it runs and while it is suspended.
pub(crate) struct SuspendedRequests {
    places: Box<[UnsafeCell<Option<Suspended>>]>,
}

// SAFETY: a place is reached only with a mutable borrow of its slot's token, of which there is one; tokens cross threads by
// rings that synchronise (see `SlotPool`, whose slots are shared the same way). What lies there may be sent: it is a `SendFiber`.
unsafe impl Sync for SuspendedRequests {}
// SAFETY: as above; nothing here belongs to the thread that made it.
unsafe impl Send for SuspendedRequests {}

impl SuspendedRequests {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            places: (0..slots).map(|_| UnsafeCell::new(None)).collect(),
        }
    }

    /// The place of this request.
    ///
    /// # Safety
    /// The caller has the request's token, which is unique (see `Sync`), and keeps it and `self` for longer than this.
    #[inline]
    pub(super) unsafe fn place<'a>(&self, id: JobId) -> &'a mut Option<Suspended> {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.places[id.index()].get() }
    }
}

impl Drop for SuspendedRequests {
    /// Handlers of requests that were given up never go on: their frames may be another language's, or hold what belongs to
    /// another thread, so they are left as they are.
    fn drop(&mut self) {
        for place in &mut self.places {
            // A suspended fiber leaves its stack behind.
            drop(place.get_mut().take());
        }
    }
}

/// The request that has begun in this place.
#[inline(always)]
pub(super) fn request_in(place: Option<&mut Suspended>) -> &mut Suspended {
    place.expect("a request that has begun is kept with its token")
}
