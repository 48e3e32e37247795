//! The loop's side: takes requests and finishes them.
#![expect(
    unsafe_code,
    reason = "reaches the request through the call that brought it, which waits on another stack"
)]

use std::fmt;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::thread;

use headway_fiber::yield_now;
use headway_machine::thread::fork;
use headway_policy::{ClassId, WorkerId};

use super::state::{Loop, Ticket};
use crate::request::service::Call;

/// Where a loop takes its requests from. Stays in the loop:
///
/// ```compile_fail,E0277
/// fn may_change_threads(_: impl Send) {}
/// fn serve(requests: &headway_runtime::Requests) {
///     may_change_threads(requests.recv());
/// }
/// ```
pub struct Requests {
    of: NonNull<Loop>,
    /// Neither `Send` nor `Sync`.
    bound: PhantomData<*mut ()>,
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Requests")
            .field("held", &self.held())
            .finish()
    }
}

impl Requests {
    /// Of this loop, on whose fiber the caller runs.
    pub(super) fn of(of: NonNull<Loop>) -> Self {
        let bound = PhantomData;
        Self { of, bound }
    }

    fn state(&self) -> &Loop {
        // SAFETY: a loop's state outlives the run of the loop that has this.
        unsafe { self.of.as_ref() }
    }

    /// How many requests the loop has and is not finished with.
    #[must_use]
    pub fn held(&self) -> usize {
        self.state().held.borrow().len()
    }

    /// The next request that the policy begins at this worker.
    ///
    /// Without a request in hand the loop waits for it, and `None` says that the server has ended. With requests in hand, `None` says that nothing else is
    /// to begin now, or that the loop may not have more at once: finish some of those. A loop may hold several
    /// only where the policy can suspend them: it interrupts requests, which stay at their worker, and the server does not go by feedback. A request that is held
    /// has begun: while its quantum lasts, or where it is the most urgent, the policy lets the loop go on with it.
    ///
    /// # Panics
    /// In a [`NoPreempt`](crate::NoPreempt) section, in which the loop cannot be suspended.
    #[must_use]
    pub fn recv(&self) -> Option<Request<'_>> {
        let state = self.state();
        if let Some(request) = self.take() {
            return Some(request);
        }
        let held = self.held();
        let may_wait = held == 0 || state.may_hold.get() && held < state.most_held;
        if state.has_ended.get() || !may_wait || thread::panicking() {
            return None;
        }
        // The next request is the parent's.
        fork::end_child();
        state.in_recv.set(true);
        yield_now();
        // Whoever goes on with a loop takes this back; nobody did if the loop was not suspended.
        assert!(
            !state.in_recv.take(),
            "recv() in a section that must not be interrupted"
        );
        self.take()
    }

    /// The request that was brought, if one was.
    #[inline]
    fn take(&self) -> Option<Request<'_>> {
        let state = self.state();
        let ticket = state.inbox.take()?;
        state.held.borrow_mut().push(ticket);
        let request = Request {
            requests: self,
            ticket,
        };
        // SAFETY: as in `Request::call_mut`.
        unsafe { (*request.call().as_ptr()).enter_loop() };
        Some(request)
    }

    /// A request that was given away by [`Request::into_raw`], if the loop has it still. For interfaces to other languages.
    #[must_use]
    pub fn request_at(&self, call: *mut Call<'static>) -> Option<Request<'_>> {
        let held = self.state().held.borrow();
        let ticket = *held.iter().find(|ticket| {
            // SAFETY: the call that has a held ticket does not return before the request is done.
            unsafe { ticket.as_ref() }.call.as_ptr() == call
        })?;
        Some(Request {
            requests: self,
            ticket,
        })
    }
}

/// A request that a loop has. Dropped without an answer, it is answered as an error.
///
/// It ends before the loop does, and in the loop's own thread.
#[must_use = "a request that is dropped is answered as an error"]
pub struct Request<'a> {
    requests: &'a Requests,
    ticket: NonNull<Ticket>,
}

impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Request").field(self.as_call()).finish()
    }
}

impl Request<'_> {
    fn call(&self) -> NonNull<Call<'static>> {
        // SAFETY: the call that has the ticket does not return before the request is done, which is when this is dropped.
        unsafe { self.ticket.as_ref() }.call
    }

    fn as_call(&self) -> &Call<'static> {
        // SAFETY: as above; the call waits for the loop, and uses nothing of the request meanwhile.
        unsafe { &*self.call().as_ptr() }
    }

    fn as_call_mut(&mut self) -> &mut Call<'static> {
        // SAFETY: as above, and of each request there is one `Request`.
        unsafe { &mut *self.call().as_ptr() }
    }

    /// As [`Call::class`].
    #[must_use]
    pub fn class(&self) -> ClassId {
        self.as_call().class()
    }

    /// As [`Call::worker`].
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.as_call().worker()
    }

    /// As [`Call::payload`].
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.as_call().payload()
    }

    /// As [`Call::buffer_mut`], for [`reply_first`](Self::reply_first).
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        self.as_call_mut().buffer_mut()
    }

    /// As [`Call::header_time_ns`].
    #[must_use]
    pub fn header_time_ns(&self) -> u32 {
        self.as_call().header_time_ns()
    }

    /// As [`Call::service_hint_ns`].
    #[must_use]
    pub fn service_hint_ns(&self) -> u64 {
        self.as_call().service_hint_ns()
    }

    /// As [`Call::feedback_start`].
    pub fn feedback_start(&mut self) {
        self.as_call_mut().feedback_start();
    }

    /// As [`Call::feedback_finished`].
    pub fn feedback_finished(&mut self) {
        self.as_call_mut().feedback_finished();
    }

    /// Answers with these bytes, as [`Call::reply`]. The answer leaves when the loop waits for the next request, or when the policy lets this one go on.
    pub fn reply(mut self, response: &[u8]) {
        self.as_call_mut().reply(response);
    }

    /// Answers with the first `len` bytes of [`buffer_mut`](Self::buffer_mut); more than the buffer has are answered as too large.
    pub fn reply_first(mut self, len: usize) {
        self.as_call_mut().reply_with(|_| len);
    }

    /// Answers with the request's own bytes, as [`Call::reply_in_place`].
    pub fn reply_in_place(mut self) {
        self.as_call_mut().reply_in_place();
    }

    /// Answers that the service could not do it, without payload.
    pub fn fail(mut self) {
        self.as_call_mut().fail();
    }

    /// Answers that this is no request of the service, without payload.
    pub fn bad_request(mut self) {
        self.as_call_mut().bad_request();
    }

    /// Gives the request away as the call that brought it, for interfaces to other languages; [`Requests::request_at`] takes it back. The pointer
    /// is valid until then, for the loop alone.
    #[must_use]
    pub fn into_raw(self) -> *mut Call<'static> {
        ManuallyDrop::new(self).call().as_ptr()
    }
}

impl Drop for Request<'_> {
    fn drop(&mut self) {
        self.as_call_mut().leave_loop();
        let mut held = self.requests.state().held.borrow_mut();
        held.retain(|ticket| *ticket != self.ticket);
        // SAFETY: as in `call`; the last use of the ticket.
        unsafe { self.ticket.as_ref() }.done.set(true);
    }
}
