//! Requests on fibers: each in the place of its slot while it runs and while it is suspended.
#![expect(
    unsafe_code,
    reason = "a place is reached by whoever has its request's token"
)]

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

use headway_fiber::{SendFiber, Turn};
use headway_net::slot::Slot;
use headway_policy::{ClassId, Job, JobId, WorkerId};
use headway_sync::job_holder::{FoundJob, JobHolder, TakenJob};

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
    /// When it last stopped, ns; 0 in its first turn.
    pub(super) stopped_ns: u64,
    /// Whether it had said that it is long when it last stopped.
    pub(super) said_long: ByteFlag,
    /// Whether its fiber has a thread's state of its own.
    pub(super) owns_thread_state: ByteFlag,
}

/// Yes or no in a byte of which every value means one of the two: who looks at suspended requests reads it while another thread writes it, or before.
#[derive(Clone, Copy)]
pub(super) struct ByteFlag(u8);

impl From<bool> for ByteFlag {
    #[inline]
    fn from(is_set: bool) -> Self {
        Self(u8::from(is_set))
    }
}

impl ByteFlag {
    #[inline]
    pub(super) fn is_set(self) -> bool {
        self.0 != 0
    }
}

// The address of its fiber tells whether a request is there, and no other field has values that may not be read: such a field would have room for a second `None`.
const _: () = assert!(
    size_of::<Option<Suspended>>() == size_of::<Suspended>()
        && size_of::<Option<Option<Suspended>>>() > size_of::<Suspended>()
);

impl Suspended {
    /// The request as policies see it.
    #[inline]
    pub(super) fn job(&self, id: JobId) -> Job {
        Job {
            attained_ns: self.attained_ns,
            said_long: self.said_long.is_set(),
            ..Job::new(id, ClassId(self.class), self.arrived_ns)
        }
    }
}

/// The place of a request.
pub(super) struct RequestPlace {
    /// Who may touch it.
    pub(super) holder: JobHolder,
    pub(super) request: UnsafeCell<Option<Suspended>>,
}

/// How a request is that its worker takes up.
pub(super) enum TakenUp<'a> {
    /// It is the worker's.
    Ready(&'a mut Suspended),
    /// Its own thread goes on with it.
    AtHome(&'a mut Suspended),
    /// It was at home, where this turn ended.
    WasAtHome(&'a mut Suspended, Turn<FiberWork>),
}

/// The requests that have begun on a fiber, one place for each slot. A request keeps its place while it runs and while it is suspended.
pub(crate) struct SuspendedRequests {
    places: Box<[RequestPlace]>,
    /// Where the next rescue begins to look.
    next: AtomicUsize,
}

// SAFETY: a place is reached only with a mutable borrow of its slot's token, of which there is one, or by who took it from nobody; tokens cross threads by
// rings that synchronise (see `SlotPool`, whose slots are shared the same way). What lies there may be sent: it is a `SendFiber`.
unsafe impl Sync for SuspendedRequests {}
// SAFETY: as above; nothing here belongs to the thread that made it.
unsafe impl Send for SuspendedRequests {}

impl SuspendedRequests {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            places: (0..slots)
                .map(|_| RequestPlace {
                    holder: JobHolder::default(),
                    request: UnsafeCell::new(None),
                })
                .collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// All places.
    pub(super) fn places(&self) -> &[RequestPlace] {
        &self.places
    }

    /// The request was suspended, and has a thread's state of its own: from now on it may go home.
    ///
    /// Called by the holder of its token.
    #[inline]
    pub(super) fn may_go_home(&self, id: JobId) {
        self.places[id.index()].holder.may_go_home();
    }

    /// Its own thread goes on with this request, which was suspended.
    ///
    /// Called by the holder of its token.
    pub(super) fn go_home(&self, id: JobId, request: &mut Suspended) {
        request.fiber.run_at_home();
        self.places[id.index()].holder.is_home();
    }

    /// Takes up a suspended request, which may have gone home meanwhile.
    ///
    /// # Safety
    /// As for [`place`](Self::place).
    #[inline]
    pub(super) unsafe fn take_up<'a>(&self, id: JobId) -> TakenUp<'a> {
        let place = &self.places[id.index()];
        // SAFETY: the caller has the token, and looks at the request only when nobody else has it.
        let request = || request_in(unsafe { &mut *place.request.get() }.as_mut());
        match place.holder.take_up() {
            FoundJob::Ready => TakenUp::Ready(request()),
            FoundJob::OnItsWay => TakenUp::AtHome(request()),
            FoundJob::SentHome => {
                let request = request();
                match request.fiber.turn_at_home() {
                    Some(turn) => TakenUp::WasAtHome(request, turn),
                    None => {
                        place.holder.is_home();
                        TakenUp::AtHome(request)
                    }
                }
            }
        }
    }

    /// Sends up to `most` suspended requests home, where their own threads go on with them, and tells the class of each. One that was suspended again at home, as
    /// at the end of a section, is sent again.
    pub(crate) fn send_home(&self, most: usize, mut tell: impl FnMut(usize)) {
        let (places, mut sent) = (self.places.len(), 0);
        let first = self.next.load(Ordering::Relaxed);
        for step in 0..places {
            let index = (first + step) % places;
            let place = &self.places[index];
            let Some(taken) = place.holder.take_to_send() else {
                continue;
            };
            // SAFETY: it was nobody's, or at home and claimed, so it is this thread's until it is home.
            let request = request_in(unsafe { &mut *place.request.get() }.as_mut());
            let goes = taken == TakenJob::Suspended || request.fiber.is_suspended_at_home();
            if goes {
                tell(usize::from(request.class));
                request.fiber.run_at_home();
            }
            place.holder.is_home();
            sent += usize::from(goes);
            if sent == most {
                self.next.store((index + 1) % places, Ordering::Relaxed);
                return;
            }
        }
    }

    /// The place of this request.
    ///
    /// # Safety
    /// The caller has the request's token, which is unique (see `Sync`), and keeps it and `self` for longer than this.
    #[inline]
    pub(super) unsafe fn place<'a>(&self, id: JobId) -> &'a mut Option<Suspended> {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.places[id.index()].request.get() }
    }
}

impl Drop for SuspendedRequests {
    /// Handlers of requests that were given up never go on: their frames may be another language's, or hold what belongs to
    /// another thread, so they are left as they are.
    fn drop(&mut self) {
        for place in &mut self.places {
            // A suspended fiber leaves its stack behind.
            drop(place.request.get_mut().take());
        }
    }
}

/// The request that has begun in this place.
#[inline(always)]
pub(super) fn request_in(place: Option<&mut Suspended>) -> &mut Suspended {
    place.expect("a request that has begun is kept with its token")
}
