//! What a switch does with each packet.

use super::packet::{Forward, Packet, Reply, ServerId};
use super::shaper::Shaper;
use super::{Demand, Grouping, RackLayout, TieredLayout};

/// What a switch does per packet; it never allocates. No method has a default, so that a wrapper cannot forget to forward one.
pub trait Switch {
    /// A request arrived, from a client or bounced by a server.
    fn request(&mut self, now_ns: u64, packet: Packet) -> Forward;

    /// A response arrived. `false`: it is the slower of two and goes no further.
    fn reply(&mut self, now_ns: u64, reply: &Reply) -> bool;

    /// The next held request that may go now; asked for after every reply until there is none.
    fn release(&mut self) -> Option<(ServerId, Packet)>;

    /// A server reported how many cores it has.
    fn capacity(&mut self, server: ServerId, cores: usize);

    /// Whether a request may go to the server by what the switch knows now. A server that leaves may stop once this is false.
    fn may_send(&self, server: ServerId) -> bool;

    /// Makes room for `held` requests to be held; for engines in virtual time.
    fn grow(&mut self, held: usize);

    /// Requests held.
    fn held(&self) -> usize;

    /// Whether it goes by [`Reply::queue`], which servers are asked for.
    fn compares_queues(&self) -> bool;

    /// The switch whose registers a control plane reads, where there is one.
    fn shaper(&mut self) -> Option<&mut Shaper>;

    /// Writes the tables that a control plane made; nothing where the switch has none.
    fn install(&mut self, tables: &LaidOutTables<'_>);
}

/// What a control plane's tables are made of.
#[derive(Clone, Copy, Debug)]
pub struct LaidOutTables<'a> {
    /// Which types are served together.
    pub grouping: &'a Grouping,
    /// Which cores are whose.
    pub layout: &'a RackLayout,
    /// The same by racks, where the servers stand in several.
    pub tiers: Option<&'a TieredLayout>,
    /// What each type needs.
    pub demand: &'a Demand,
}

impl Switch for Shaper {
    #[inline]
    fn request(&mut self, now_ns: u64, packet: Packet) -> Forward {
        Shaper::request(self, now_ns, packet)
    }

    #[inline]
    fn reply(&mut self, _now_ns: u64, reply: &Reply) -> bool {
        Shaper::reply(self, reply)
    }

    fn release(&mut self) -> Option<(ServerId, Packet)> {
        None
    }

    fn capacity(&mut self, server: ServerId, cores: usize) {
        Shaper::capacity(self, server, cores);
    }

    fn may_send(&self, server: ServerId) -> bool {
        (0..self.groups()).any(|group| self.round_of(group).contains(&server.0))
    }

    fn grow(&mut self, _held: usize) {}

    fn held(&self) -> usize {
        0
    }

    fn compares_queues(&self) -> bool {
        false
    }

    fn shaper(&mut self) -> Option<&mut Shaper> {
        Some(self)
    }

    fn install(&mut self, tables: &LaidOutTables<'_>) {
        Shaper::install(self, tables.grouping, tables.layout, tables.demand);
    }
}
