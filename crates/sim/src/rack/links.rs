//! What is between the switch and the servers. Every way takes the same time, so that what left first arrives first.

use crate::server::NEVER;
use headway_policy::rack::{Mark, Packet, Reply, ServerId};
use std::collections::VecDeque;

/// One direction.
pub(super) struct Link<T> {
    delay_ns: u64,
    under_way: VecDeque<(u64, T)>,
}

/// A copy of a request on its way to a server.
#[derive(Clone, Copy)]
pub(super) struct Delivery {
    pub(super) server: ServerId,
    pub(super) index: u64,
    pub(super) mark: Mark,
}

/// What servers send to the switch.
#[derive(Clone, Copy)]
pub(super) enum Upward {
    Reply(Reply),
    Bounced(Packet),
}

impl<T: Copy> Link<T> {
    pub(super) fn new(delay_ns: u64) -> Self {
        Self {
            delay_ns,
            under_way: VecDeque::new(),
        }
    }

    /// When the next arrives.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.under_way.front().map_or(NEVER, |(at_ns, _)| *at_ns)
    }

    #[inline]
    pub(super) fn send(&mut self, now_ns: u64, what: T) {
        self.under_way.push_back((now_ns + self.delay_ns, what));
    }

    #[inline]
    pub(super) fn receive(&mut self) -> Option<T> {
        self.under_way.pop_front().map(|(_, what)| what)
    }
}
