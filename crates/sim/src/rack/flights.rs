//! The requests between their arrival at the switch and their last response, by index.

use super::ring::Ring;
use crate::server::SimRequest;
use headway_policy::rack::Mark;

/// A request that is somewhere in the rack.
#[derive(Clone, Copy)]
pub(super) struct Flight {
    pub(super) request: SimRequest,
    /// Its copies on the links, at servers, or held by the switch.
    pub(super) copies: u8,
    pub(super) answered: bool,
}

/// Flights by index, in a moving window: they begin in order and end out of order.
#[derive(Default)]
pub(super) struct Flights {
    window: Ring<Flight>,
}

impl Flights {
    /// Adds a request. Returns its index.
    #[inline]
    pub(super) fn begin(&mut self, request: SimRequest) -> u64 {
        self.window.push(Flight {
            request,
            copies: 1,
            answered: false,
        })
    }

    #[inline]
    pub(super) fn get(&mut self, index: u64) -> &mut Flight {
        self.window.get_mut(index)
    }

    /// The index whose low 32 bits are in the header.
    #[inline]
    pub(super) fn index(&self, in_header: u32) -> u64 {
        let first = self.window.head();
        first + u64::from(in_header.wrapping_sub(first as u32))
    }

    /// Removes one copy.
    #[inline]
    pub(super) fn end_copy(&mut self, index: u64) {
        self.get(index).copies -= 1;
        while self.window.first().is_some_and(|flight| flight.copies == 0) {
            self.window.drop_first();
        }
    }

    /// Length of the window: an upper bound of the requests in flight.
    #[inline]
    pub(super) fn span(&self) -> usize {
        self.window.len()
    }
}

/// The tag of a copy: the name under which a server holds it.
#[inline]
pub(super) fn tag(index: u64, mark: Mark) -> u64 {
    let mark = match mark {
        Mark::Plain => 0,
        Mark::Original => 1,
        Mark::Clone => 2,
    };
    index << 2 | mark
}

/// The index of the copied request, and the copy's mark.
#[inline]
pub(super) fn untag(tag: u64) -> (u64, Mark) {
    let mark = match tag & 3 {
        0 => Mark::Plain,
        1 => Mark::Original,
        _ => Mark::Clone,
    };
    (tag >> 2, mark)
}
