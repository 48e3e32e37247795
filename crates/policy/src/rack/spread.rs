//! Switches that know nothing of the servers: at random, and in turn.

use super::{Forward, Packet, Reply, ServerId, Shaper, Switch};
use crate::Rng;

/// Any server, each as likely.
#[derive(Clone, Debug)]
pub struct RandomSwitch {
    servers: usize,
    rng: Rng,
}

impl RandomSwitch {
    /// Over `servers` servers.
    #[must_use]
    pub fn new(servers: usize, seed: u64) -> Self {
        Self {
            servers,
            rng: Rng::new(seed),
        }
    }
}

impl Switch for RandomSwitch {
    #[inline]
    fn request(&mut self, _now_ns: u64, _packet: Packet) -> Forward {
        Forward::To(ServerId(self.rng.below(self.servers) as u16))
    }

    fn reply(&mut self, _now_ns: u64, _reply: &Reply) -> bool {
        true
    }

    fn release(&mut self) -> Option<(ServerId, Packet)> {
        None
    }

    fn capacity(&mut self, _server: ServerId, _cores: usize) {}

    fn grow(&mut self, _held: usize) {}

    fn held(&self) -> usize {
        0
    }

    fn shaper(&mut self) -> Option<&mut Shaper> {
        None
    }
}

/// One server after the other.
#[derive(Clone, Debug)]
pub struct RoundRobinSwitch {
    servers: u16,
    next: u16,
}

impl RoundRobinSwitch {
    /// Over `servers` servers.
    #[must_use]
    pub fn new(servers: usize) -> Self {
        Self {
            servers: servers as u16,
            next: 0,
        }
    }
}

impl Switch for RoundRobinSwitch {
    #[inline]
    fn request(&mut self, _now_ns: u64, _packet: Packet) -> Forward {
        let server = self.next;
        self.next = if server + 1 == self.servers {
            0
        } else {
            server + 1
        };
        Forward::To(ServerId(server))
    }

    fn reply(&mut self, _now_ns: u64, _reply: &Reply) -> bool {
        true
    }

    fn release(&mut self) -> Option<(ServerId, Packet)> {
        None
    }

    fn capacity(&mut self, _server: ServerId, _cores: usize) {}

    fn grow(&mut self, _held: usize) {}

    fn held(&self) -> usize {
        0
    }

    fn shaper(&mut self) -> Option<&mut Shaper> {
        None
    }
}
