//! Switches that know nothing of the servers: at random, and in turn.

use super::present::PresentServers;
use super::{Forward, LaidOutTables, Packet, Reply, ServerId, Shaper, Switch};
use crate::Rng;

/// Any server, each as likely.
#[derive(Clone, Debug)]
pub struct RandomSwitch {
    present: PresentServers,
    rng: Rng,
}

impl RandomSwitch {
    /// Over `servers` servers.
    #[must_use]
    pub fn new(servers: usize, seed: u64) -> Self {
        Self {
            present: PresentServers::all(servers),
            rng: Rng::new(seed),
        }
    }
}

impl Switch for RandomSwitch {
    #[inline]
    fn request(&mut self, _now_ns: u64, _packet: Packet) -> Forward {
        let servers = self.present.count();
        if servers == 0 {
            return Forward::Shed;
        }
        let server = self.present.at(self.rng.below(servers));
        Forward::To(ServerId(server as u16))
    }

    fn reply(&mut self, _now_ns: u64, _reply: &Reply) -> bool {
        true
    }

    fn release(&mut self) -> Option<(ServerId, Packet)> {
        None
    }

    fn capacity(&mut self, server: ServerId, cores: usize) {
        self.present.capacity(server, cores);
    }

    fn may_send(&self, server: ServerId) -> bool {
        self.present.has(server)
    }

    fn grow(&mut self, _held: usize) {}

    fn held(&self) -> usize {
        0
    }

    fn compares_queues(&self) -> bool {
        false
    }

    fn shaper(&mut self) -> Option<&mut Shaper> {
        None
    }

    fn install(&mut self, _tables: &LaidOutTables<'_>) {}
}

/// One server after the other.
#[derive(Clone, Debug)]
pub struct RoundRobinSwitch {
    present: PresentServers,
    /// The server after the last one that had a turn.
    next: u16,
}

impl RoundRobinSwitch {
    /// Over `servers` servers.
    #[must_use]
    pub fn new(servers: usize) -> Self {
        Self {
            present: PresentServers::all(servers),
            next: 0,
        }
    }
}

impl Switch for RoundRobinSwitch {
    #[inline]
    fn request(&mut self, _now_ns: u64, _packet: Packet) -> Forward {
        if self.present.count() == 0 {
            return Forward::Shed;
        }
        let place = self.present.place_from(self.next);
        let server = self.present.at(place) as u16;
        self.next = server + 1;
        Forward::To(ServerId(server))
    }

    fn reply(&mut self, _now_ns: u64, _reply: &Reply) -> bool {
        true
    }

    fn release(&mut self) -> Option<(ServerId, Packet)> {
        None
    }

    fn capacity(&mut self, server: ServerId, cores: usize) {
        self.present.capacity(server, cores);
    }

    fn may_send(&self, server: ServerId) -> bool {
        self.present.has(server)
    }

    fn grow(&mut self, _held: usize) {}

    fn held(&self) -> usize {
        0
    }

    fn compares_queues(&self) -> bool {
        false
    }

    fn shaper(&mut self) -> Option<&mut Shaper> {
        None
    }

    fn install(&mut self, _tables: &LaidOutTables<'_>) {}
}
