//! What a user of the server writes: a handler from request to response.

use std::time::Duration;

use headway_fiber::{WorkMeter, checkpoint, say_long, shield, unshield};
use headway_machine::Clock;
use headway_net::header::{HEADER_BYTES, Status};
use headway_net::slot::{PAYLOAD_BYTES, Slot};
use headway_policy::{ClassId, WorkerId};

use crate::error::SetupFailure;
use crate::stats::tally::FeedbackUse;

/// The most bytes a response may have, wire header not included.
pub const MAX_REPLY_BYTES: usize = PAYLOAD_BYTES - HEADER_BYTES;

/// Handles requests; called by all workers at once. Closures are services.
///
/// ```
/// use headway_runtime::{Call, Service};
///
/// fn runs(_: impl Service) {}
/// runs(|call: &mut Call<'_>| call.reply(b"pong"));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not answer requests",
    label = "not a `Service`",
    note = "give the builder what answers requests before `.start()`: `.service(…)` with a type that implements `Service`, or `.handler(|call| …)`",
    note = "a closure is a service if it takes `&mut Call<'_>`, and is `Send + Sync + 'static`; in `.service(…)` it must say so: `|call: &mut Call<'_>| …`"
)]
pub trait Service: Send + Sync + 'static {
    /// Answers one request. Returning without a reply sends an empty one; a panic is answered as an error.
    fn handle(&self, call: &mut Call<'_>);

    /// Makes the calling thread ready to handle requests as `worker`: called once in each that will, before the first request, and
    /// not interrupted. `core` is the one it is pinned to, if it is. A dispatcher that works is the worker after the last.
    ///
    /// # Errors
    /// Whatever keeps it from being ready; the server does not start then.
    fn setup_worker(&self, worker: WorkerId, core: Option<usize>) -> Result<(), SetupFailure> {
        let _ = (worker, core);
        Ok(())
    }

    /// Makes the calling thread ready to lend a request its state: called once in each of those threads, before the first request, where requests may be
    /// interrupted and so have a [thread's state of their own](crate::Builder::resume). What [`setup_worker`](Self::setup_worker) left in thread-local variables is
    /// not there. It may be interrupted as a handler may.
    fn setup_fiber(&self) {}

    /// Whether handlers run on stacks of the service's own, in the thread of their worker.
    #[doc(hidden)]
    fn has_own_stacks(&self) -> bool {
        false
    }

    /// The calling thread, made ready by [`setup_worker`](Self::setup_worker), handles no more requests. Not called where the thread panicked or did not end.
    fn leave_worker(&self) {}
}

impl<F> Service for F
where
    F: Fn(&mut Call<'_>) + Send + Sync + 'static,
{
    #[inline]
    fn handle(&self, call: &mut Call<'_>) {
        self(call);
    }
}

/// The response of a handler, beside the payload in the buffer.
#[derive(Clone, Copy)]
pub(crate) struct Response {
    pub(crate) status: Status,
    pub(crate) payload_bytes: usize,
    pub(crate) panicked: bool,
    pub(crate) feedback: FeedbackUse,
}

/// One request, and the place of its response: the same buffer, so nothing is copied that the handler
/// does not copy.
#[derive(Debug)]
pub struct Call<'a> {
    slot: &'a mut Slot,
    worker: WorkerId,
    status: Status,
    replied: bool,
    mode: CallMode,
    /// How many long parts it is in.
    long_parts: u32,
    /// Whether it began a long part.
    said_long: bool,
    /// Ends of long parts that it did not begin.
    unbegun: u32,
}

/// How a request may be interrupted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallMode {
    /// Only while it says that it is long.
    pub(crate) heard: bool,
    /// Whoever limits its slices is told once it says that it is long.
    pub(crate) says_long: bool,
    /// Wherever its code calls for it, and it goes on at the same worker: a loop may hold it and take others.
    pub(crate) may_be_held: bool,
}

impl<'a> Call<'a> {
    pub(crate) fn new(slot: &'a mut Slot, worker: WorkerId, mode: CallMode) -> Self {
        if mode.heard {
            shield();
        }
        Self {
            slot,
            worker,
            status: Status::Ok,
            replied: false,
            mode,
            long_parts: 0,
            said_long: false,
            unbegun: 0,
        }
    }

    /// A long part of the request: where the server goes [by feedback](crate::Builder::by_feedback), it may be interrupted here and nowhere else.
    #[inline]
    pub fn long<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.feedback_start();
        let result = work(self);
        self.feedback_finished();
        result
    }

    /// As the beginning of [`long`](Self::long), for parts that are no block of code. The request yields here if it was asked to before. Such parts nest.
    #[inline]
    pub fn feedback_start(&mut self) {
        self.long_parts += 1;
        if self.mode.heard && self.long_parts == 1 {
            unshield();
        }
        if !self.said_long {
            self.said_long = true;
            if self.mode.says_long {
                say_long();
            }
        }
    }

    /// The end of a part that [`feedback_start`](Self::feedback_start) began. Without one it changes nothing, and is counted as `unbegun`. The end of the
    /// request ends all parts, and those still open are counted as `unended` ([`FeedbackStats`](crate::FeedbackStats)).
    #[inline]
    pub fn feedback_finished(&mut self) {
        if self.mode.heard && self.long_parts == 1 {
            shield();
        }
        match self.long_parts.checked_sub(1) {
            Some(left) => self.long_parts = left,
            None => self.unbegun += 1,
        }
    }

    /// The class the request was scheduled as; the number of declared classes stands for UNKNOWN.
    #[inline]
    #[must_use]
    pub fn class(&self) -> ClassId {
        ClassId(self.slot.class)
    }

    /// The worker that runs it: a stable index below the number of workers, for data kept per worker.
    #[inline]
    #[must_use]
    pub fn worker(&self) -> WorkerId {
        self.worker
    }

    /// The request without its wire header; once replied, the reply.
    #[inline]
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.slot.payload()[HEADER_BYTES..]
    }

    /// The same bytes, to be changed in place for [`reply_in_place`](Self::reply_in_place).
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.slot.payload_mut()[HEADER_BYTES..]
    }

    /// The work the request stands for, in ns: what a synthetic workload asks [`Spin`] to do. 0 where unknown.
    #[inline]
    #[must_use]
    pub fn service_hint_ns(&self) -> u64 {
        self.slot.service_hint_ns
    }

    /// The `time` field of the wire header, by which a load generator gives the same hint over a network, in ns.
    #[inline]
    #[must_use]
    pub fn header_time_ns(&self) -> u32 {
        let time = self.slot.payload()[6..HEADER_BYTES].first_chunk();
        time.map_or(0, |bytes| u32::from_be_bytes(*bytes))
    }

    /// Answers with these bytes. More than [`MAX_REPLY_BYTES`] are answered as too large. Of several replies the
    /// last one counts.
    #[inline]
    pub fn reply(&mut self, response: &[u8]) {
        match self.buffer_mut().get_mut(..response.len()) {
            Some(place) => {
                place.copy_from_slice(response);
                self.finish(response.len());
            }
            None => self.refuse(Status::TooLarge),
        }
    }

    /// Lets `write` put the response into the buffer, all [`MAX_REPLY_BYTES`] of it, and say how long it is.
    /// The buffer still begins with the request. A length beyond the buffer is answered as too large.
    #[inline]
    pub fn reply_with(&mut self, write: impl FnOnce(&mut [u8]) -> usize) {
        let len = write(self.buffer_mut());
        if len <= MAX_REPLY_BYTES {
            self.finish(len);
        } else {
            self.refuse(Status::TooLarge);
        }
    }

    /// The room for the response, all [`MAX_REPLY_BYTES`] of it, which begins with the request; for
    /// [`reply_with`](Self::reply_with) to say later how much of it counts.
    #[inline]
    pub fn buffer_mut(&mut self) -> &mut [u8] {
        &mut self.slot.buffer_mut()[HEADER_BYTES..]
    }

    /// Answers with the request's own bytes, changed or not.
    #[inline]
    pub fn reply_in_place(&mut self) {
        self.finish(self.payload().len());
    }

    /// Answers that the handler could not do it, without payload.
    #[inline]
    pub fn fail(&mut self) {
        self.refuse(Status::Error);
    }

    /// Answers that this is no request of the service, without payload.
    #[inline]
    pub fn bad_request(&mut self) {
        self.refuse(Status::BadRequest);
    }

    /// Whether a loop may have it beside others.
    #[inline]
    pub(crate) fn may_be_held(&self) -> bool {
        self.mode.may_be_held
    }

    /// The request's own code is not the call's but a loop's, which opens the section in which it is not interrupted itself.
    #[inline]
    pub(crate) fn hand_over(&self) {
        if self.mode.heard {
            unshield();
        }
    }

    /// A loop begins with the request.
    #[inline]
    pub(crate) fn enter_loop(&self) {
        if self.mode.heard {
            shield();
        }
    }

    /// A loop is finished with the request, which fails if it gave no answer.
    #[inline]
    pub(crate) fn leave_loop(&mut self) {
        if !self.replied && self.status == Status::Ok {
            self.fail();
        }
        if self.mode.heard && self.long_parts == 0 {
            unshield();
        }
    }

    /// The response to be sent.
    #[inline]
    pub(crate) fn response(&self) -> Response {
        let payload_bytes = if self.replied {
            self.payload().len()
        } else {
            0
        };
        Response {
            status: self.status,
            payload_bytes,
            panicked: false,
            feedback: FeedbackUse {
                unended: self.long_parts,
                ..self.feedback_until_panic()
            },
        }
    }

    /// How a handler that panicked used the feedback calls: the panic ended its long parts, so none of them is left open by mistake.
    #[inline]
    pub(crate) fn feedback_until_panic(&self) -> FeedbackUse {
        FeedbackUse {
            said_long: self.said_long,
            unended: 0,
            unbegun: self.unbegun,
        }
    }

    #[inline]
    fn finish(&mut self, len: usize) {
        self.slot.set_len(HEADER_BYTES + len);
        self.status = Status::Ok;
        self.replied = true;
    }

    fn refuse(&mut self, status: Status) {
        self.status = status;
        self.replied = false;
    }
}

/// Spins for as long as the request says, interruptions not counted: synthetic work, for benchmarks. It may change threads.
///
/// The wire header can ask for 4.3 s of a worker, so a request from a network that asks for more than [`longest`](Self::longest) is refused.
#[derive(Clone, Copy, Debug)]
pub struct Spin {
    clock: Clock,
    longest_ns: u64,
}

impl Default for Spin {
    fn default() -> Self {
        Self {
            clock: Clock::global(),
            longest_ns: LONGEST_SPIN_NS,
        }
    }
}

/// Of a request from a network, unless chosen otherwise.
const LONGEST_SPIN_NS: u64 = 100_000_000;

impl Spin {
    /// The most work that a request from a network may ask for, 100 ms unless chosen; more is answered as a bad request. The hint of a replayed
    /// request has no such bound: it is the program's own.
    #[must_use]
    pub fn longest(mut self, work: Duration) -> Self {
        self.longest_ns = u64::try_from(work.as_nanos()).unwrap_or(u64::MAX);
        self
    }

    /// Keeps its worker for this long, or yields at its checkpoints.
    #[inline]
    fn work(&self, work_ns: u64) {
        let work = self.clock.ticks_in(work_ns);
        let mut meter = WorkMeter::begin(self.clock.ticks());
        while meter.done() < work {
            checkpoint();
            meter.look(self.clock.ticks());
        }
    }
}

impl Service for Spin {
    /// Spins by the hint of a replayed request, or by the wire header's time of one from a network.
    #[inline]
    fn handle(&self, call: &mut Call<'_>) {
        let asked_ns = u64::from(call.header_time_ns());
        match call.service_hint_ns() {
            0 if asked_ns > self.longest_ns => call.bad_request(),
            0 => self.work(asked_ns),
            hint_ns => self.work(hint_ns),
        }
    }
}
