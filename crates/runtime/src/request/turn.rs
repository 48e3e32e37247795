//! A request in a turn of its worker: what it runs on, and how the turn ends.

use std::ops::Range;

use headway_fiber::{SendFiber, Turn};
use headway_net::pool::SlotId;
use headway_policy::{Job, JobId};

use crate::request::service::Response;
use crate::request::slice::ClockReading;
use crate::request::suspended::{FiberWork, Suspended, request_in};
use crate::stats::tally::HeldTurn;

/// How a slice of service ended.
pub(crate) enum SliceEnd {
    /// The handler returned.
    Finished {
        response: Response,
        /// How long the handler ran in all, ns.
        cpu_ns: u64,
        /// For how long its slice had been over, ns.
        late_ns: u64,
    },
    /// Interrupted.
    Yielded {
        /// The request as policies see it.
        job: Job,
        /// Whether it had a slice, which is over.
        sliced: bool,
    },
    /// It did not run here: its own thread goes on with it still.
    AtHome {
        /// The request as policies see it.
        job: Job,
    },
    /// The request did not begin: no stack was left.
    NoStack,
}

/// A slice of service that is over.
pub(crate) struct RanSlice {
    pub(crate) slot: SlotId,
    pub(crate) end: SliceEnd,
    /// From when to when the request ran.
    pub(crate) span: Range<ClockReading>,
    /// Why it did not end when it was to, if a section kept it.
    pub(crate) held: Option<HeldTurn>,
}

impl RanSlice {
    /// There was no stack for a request that was to begin now.
    #[cold]
    pub(super) fn no_stack(slot: SlotId, now: ClockReading) -> Self {
        Self {
            slot,
            end: SliceEnd::NoStack,
            span: now..now,
            held: None,
        }
    }
}

/// A request that a worker runs: its token, and its place.
pub(super) struct RunningRequest<'p> {
    pub(super) id: JobId,
    pub(super) slot: SlotId,
    pub(super) place: &'p mut Option<Suspended>,
    /// Its own thread goes on with it still.
    pub(super) stays_home: bool,
    /// It is to.
    pub(super) goes_home: bool,
}

impl RunningRequest<'_> {
    /// Its slice was renewed. What kept it from ending kept nobody waiting.
    #[inline(always)]
    pub(super) fn go_on(&mut self) -> Turn<FiberWork> {
        let fiber = &mut request_in(self.place.as_mut()).fiber;
        fiber.take_held();
        fiber.resume()
    }

    pub(super) fn class(&mut self) -> u16 {
        request_in(self.place.as_mut()).class
    }

    /// Whether this turn ended only so that the request's own thread goes on with it.
    #[inline(always)]
    pub(super) fn wants_home(&mut self, turn: &Turn<FiberWork>) -> bool {
        if !self.stays_home && matches!(turn, Turn::Yielded) {
            self.goes_home = request_in(self.place.as_mut()).fiber.take_home_wish();
        }
        self.goes_home
    }

    /// Whether this turn ended only so that the request could say that it is long.
    #[inline(always)]
    pub(super) fn says_long(&mut self, turn: &Turn<FiberWork>) -> bool {
        let says = !self.stays_home
            && matches!(turn, Turn::Yielded)
            && request_in(self.place.as_mut()).fiber.take_saying();
        if says {
            request_in(self.place.as_mut()).said_long = true.into();
        }
        says
    }

    /// Whether this turn ended only so that a section of the request could ask whether it must yield.
    #[inline(always)]
    pub(super) fn asks(&mut self) -> bool {
        !self.stays_home && request_in(self.place.as_mut()).fiber.asks()
    }

    /// The answer.
    pub(super) fn answer(&mut self, is_renewed: bool) -> Turn<FiberWork> {
        let fiber = &mut request_in(self.place.as_mut()).fiber;
        fiber.answer(is_renewed);
        fiber.resume()
    }

    /// It has been heard.
    pub(super) fn resume(&mut self) -> Turn<FiberWork> {
        request_in(self.place.as_mut()).fiber.resume()
    }

    /// The request as policies see it.
    pub(super) fn job(&mut self) -> Job {
        request_in(self.place.as_mut()).job(self.id)
    }
}

/// What a request is on that a worker takes up, until it runs.
pub(super) enum NextTurn {
    /// Nothing: there is no stack for it.
    Nowhere,
    /// A fiber for a request that begins.
    Fresh(SendFiber<FiberWork>),
    /// Its own, in its place.
    Suspended,
    /// Its own, with which its own thread goes on still.
    AtHome,
    /// Its own, whose turn at home ended so.
    WasAtHome(Turn<FiberWork>),
}
