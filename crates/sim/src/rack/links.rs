//! The links between the switch and the servers. All have the same delay, so packets arrive in the order in which they left.

use super::ring::Ring;
use crate::server::NEVER;
use headway_policy::ClassId;
use headway_policy::rack::{Mark, Packet, Reply, ServerId};

/// One direction.
pub(super) struct Link<T> {
    delay_ns: u64,
    under_way: Ring<(u64, T)>,
    /// Arrival time of the first packet, in a field of its own: the loop reads it before every event.
    next_ns: u64,
}

/// A copy of a request on its way to a server.
#[derive(Clone, Copy)]
pub(super) struct ToServer {
    pub(super) server: ServerId,
    pub(super) index: u64,
    pub(super) mark: Mark,
}

/// A packet from a server to the switch.
#[derive(Clone, Copy)]
pub(super) enum Upward {
    Reply(Reply),
    /// A request that the server hands back, not begun.
    Bounced(ServerId, Packet),
    /// A server does not take this clone of a request of this class: it cannot start it at once.
    Refused(ServerId, u64, ClassId),
}

impl<T: Copy> Link<T> {
    pub(super) fn new(delay_ns: u64) -> Self {
        Self {
            delay_ns,
            under_way: Ring::default(),
            next_ns: NEVER,
        }
    }

    /// When the next arrives.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    #[inline]
    pub(super) fn send(&mut self, now_ns: u64, what: T) {
        let at_ns = now_ns + self.delay_ns;
        self.under_way.push((at_ns, what));
        self.next_ns = self.next_ns.min(at_ns);
    }

    #[inline]
    pub(super) fn receive(&mut self) -> Option<T> {
        let what = self.under_way.first().map(|(_, what)| *what);
        self.under_way.drop_first();
        self.next_ns = self.under_way.first().map_or(NEVER, |(at_ns, _)| *at_ns);
        what
    }
}
