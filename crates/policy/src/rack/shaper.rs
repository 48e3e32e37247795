//! Pallas' step: group, burst, turn (§ 4.2, § 4.5, Algorithm 2).

use super::{
    Burst, Demand, DemandMonitor, Duplicates, Forward, Grouping, Mark, Overflow, Packet,
    RackLayout, Reply, ServerId, ServerLoads, Turns, Wheel,
};
use crate::ClassId;
use alloc::vec::Vec;
use core::mem;

/// Which requests in excess are sent to a second server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cloning {
    /// None.
    Off,
    /// All, to the group with the lowest degree of burst, in windows of so many ns (the paper's).
    Calmest(u64),
    /// The same, but only to groups of longer requests: a long clone keeps the short ones waiting that come after it
    /// (ours).
    Longer(u64),
}

/// The tables of the workload shaper and the registers beside them.
#[derive(Clone, Debug)]
pub struct Shaper {
    group_of: Vec<u16>,
    groups: Vec<ShapedGroup>,
    active: usize,
    turns: Turns,
    cloning: Cloning,
    monitor: DemandMonitor,
    duplicates: Duplicates,
    /// What servers have, where requests overflow.
    loads: Option<ServerLoads>,
}

#[derive(Clone, Debug)]
struct ShapedGroup {
    wheel: Wheel,
    burst: Burst,
}

impl Shaper {
    /// For so many types (UNKNOWN not counted) and cores; nothing is shaped before the first [`Self::install`].
    ///
    /// `slots` registers tell duplicates.
    #[must_use]
    pub fn new(types: usize, cores: usize, turns: Turns, cloning: Cloning, slots: usize) -> Self {
        let window_ns = match cloning {
            Cloning::Off => 1,
            Cloning::Calmest(ns) | Cloning::Longer(ns) => ns,
        };
        Self {
            group_of: alloc::vec![0; types + 1],
            groups: (0..types.max(1))
                .map(|_| ShapedGroup {
                    wheel: Wheel::new(cores),
                    burst: Burst::new(window_ns),
                })
                .collect(),
            active: 0,
            turns,
            cloning,
            monitor: DemandMonitor::new(types + 1),
            duplicates: Duplicates::new(slots),
            loads: None,
        }
    }

    /// Requests that find the server of their turn full go elsewhere, from now on; `servers` is the number of all servers.
    #[must_use]
    pub fn overflowing(mut self, servers: usize, overflow: Overflow) -> Self {
        self.loads = match overflow {
            Overflow::Off => None,
            Overflow::PerCore(most) => Some(ServerLoads::new(servers, self.group_of.len(), most)),
        };
        self
    }

    /// What servers have, where requests overflow.
    #[must_use]
    pub fn loads(&self) -> Option<&ServerLoads> {
        self.loads.as_ref()
    }

    /// The registers that a control plane reads and resets.
    pub fn monitor(&mut self) -> &mut DemandMonitor {
        &mut self.monitor
    }

    /// What is cloned.
    #[must_use]
    pub fn cloning(&self) -> Cloning {
        self.cloning
    }

    /// In which order servers take their turns.
    #[must_use]
    pub fn turns(&self) -> Turns {
        self.turns
    }

    /// Writes the tables. Counters go on where they were.
    pub fn install(&mut self, grouping: &Grouping, layout: &RackLayout, demand: &Demand) {
        for (class, group) in self.group_of.iter_mut().enumerate() {
            *group = grouping.of(class) as u16;
        }
        self.active = grouping.groups();
        for (index, group) in self.groups.iter_mut().take(self.active).enumerate() {
            group.wheel.set(
                layout.servers(),
                |server| layout.cores(server, index),
                self.turns,
            );
            let mean_ns = demand.mean_of_types_ns(grouping.members(index));
            group.burst.provision(group.wheel.round(), mean_ns);
        }
        if let Some(loads) = &mut self.loads {
            loads.lay_out(layout, &self.group_of);
        }
    }

    /// A server has so many cores now, whatever the tables say.
    pub(super) fn capacity(&mut self, server: ServerId, cores: usize) {
        if let Some(loads) = &mut self.loads {
            loads.capacity(server, cores);
        }
    }

    /// Exchanges turns and registers with another of the same tables. In a plane of several CPUs each has its own of these, and all share the rest:
    /// bursts, what servers have, and which requests were answered.
    pub fn exchange_turns(&mut self, other: &mut Self) {
        mem::swap(&mut self.monitor, &mut other.monitor);
        for (own, others) in self.groups.iter_mut().zip(&mut other.groups) {
            mem::swap(&mut own.wheel, &mut others.wheel);
        }
    }

    /// The type's group.
    #[must_use]
    pub fn group_of(&self, class: ClassId) -> usize {
        usize::from(self.group_of[class.index()])
    }

    /// Groups in use. Another plane that runs this step copies its tables from here on.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.active
    }

    /// The servers of one round of a group's turns.
    ///
    /// # Panics
    /// When there is no such group.
    #[must_use]
    pub fn round_of(&self, group: usize) -> &[u16] {
        self.groups[group].wheel.order()
    }

    /// Requests of a group in one window beyond which there is a burst.
    ///
    /// # Panics
    /// When there is no such group.
    #[must_use]
    pub fn threshold_of(&self, group: usize) -> u64 {
        self.groups[group].burst.threshold()
    }

    /// The server that gets the clone of a request in excess: the next of the group with the lowest degree of burst.
    fn clone_target(&mut self, now_ns: u64, group: usize) -> Option<ServerId> {
        let first = match self.cloning {
            Cloning::Longer(_) => group + 1,
            _ => 0,
        };
        let others = (first..self.active).filter(|&other| other != group);
        let calmest = others.reduce(|best, other| {
            let (burst, least) = (&self.groups[other].burst, &self.groups[best].burst);
            if burst.is_calmer_than(least, now_ns) {
                other
            } else {
                best
            }
        })?;
        self.groups[calmest].wheel.turn()
    }

    /// Chooses the server of a request, and in excess a second one for its clone.
    #[inline]
    pub fn request(&mut self, now_ns: u64, packet: Packet) -> Forward {
        let index = usize::from(self.group_of[packet.class.index()]);
        let group = &mut self.groups[index];
        let Some(server) = group.wheel.turn() else {
            return Forward::Shed;
        };
        let in_excess = if packet.bounced {
            false
        } else {
            self.monitor.arrived(packet.class);
            self.cloning != Cloning::Off && group.burst.arrived(now_ns)
        };
        if let Some(loads) = &self.loads
            && !loads.has_idle(server, index)
        {
            let other = loads.instead_of(server, index);
            if other != server {
                // It is not cloned: the excess has left its server already.
                return self.overflow(packet.class, index, other);
            }
        }
        self.sent(packet.class, index, server);
        if in_excess
            && packet.mark == Mark::Plain
            && let Some(other) = self.clone_target(now_ns, index)
        {
            self.sent(packet.class, index, other);
            return Forward::Both(server, other);
        }
        Forward::To(server)
    }

    /// Sends a request to another server than that whose turn it was.
    fn overflow(&mut self, class: ClassId, group: usize, server: ServerId) -> Forward {
        let is_own = |loads: &ServerLoads| loads.of(server.index(), group).cores > 0;
        if !self.loads.as_ref().is_some_and(is_own) {
            self.monitor.overflowed();
        }
        self.sent(class, group, server);
        Forward::To(server)
    }

    #[inline]
    fn sent(&mut self, class: ClassId, group: usize, server: ServerId) {
        if let Some(loads) = &mut self.loads {
            loads.sent(server, class.index(), group);
        }
    }

    /// Counts a response. `false`: it is the slower of two and goes no further.
    #[inline]
    pub fn reply(&mut self, reply: &Reply) -> bool {
        self.monitor.finished(reply.class, reply.execution_ns);
        if let Some(loads) = &mut self.loads {
            let group = usize::from(self.group_of[reply.class.index()]);
            loads.came_back(reply.server, reply.class.index(), group);
        }
        self.duplicates.passes(reply.index, reply.mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClassHint;

    const SHORT: ClassId = ClassId(0);
    const LONG: ClassId = ClassId(1);

    fn shaper(cloning: Cloning) -> Shaper {
        let hint = |mean_ns, share| ClassHint::new(mean_ns, share);
        let demand = Demand::declared(&[hint(10_000.0, 0.9), hint(90_000.0, 0.1)]);
        let grouping = Grouping::new(&[0, 1], &demand);
        let layout = RackLayout::new(&[10; 8], 1).updated(&[40, 40], &[None, None]);
        let mut shaper = Shaper::new(2, 80, Turns::Even, cloning, 1024);
        shaper.install(&grouping, &layout, &demand);
        shaper
    }

    fn send(shaper: &mut Shaper, now_ns: u64, class: ClassId, index: u32) -> Forward {
        shaper.request(now_ns, Packet::new(class, index))
    }

    #[test]
    fn each_group_has_its_servers_in_turn() {
        let mut shaper = shaper(Cloning::Off);
        for index in 0..80 {
            let Forward::To(short) = send(&mut shaper, 0, SHORT, index) else {
                panic!("one copy");
            };
            let Forward::To(long) = send(&mut shaper, 0, LONG, index) else {
                panic!("one copy");
            };
            assert_eq!((short.0, long.0), (index as u16 % 4, 4 + index as u16 % 4));
        }
        // UNKNOWN goes with the longest group.
        assert_eq!(shaper.group_of(ClassId(2)), 1);
        assert_eq!(shaper.monitor().readings()[0].count, 80);
    }

    #[test]
    fn cpus_have_turns_of_their_own_and_share_bursts() {
        let mut shaper = shaper(Cloning::Calmest(20_000));
        let mut other = shaper.clone();
        let mut servers_of_two_cpus = Vec::new();
        for index in 0..81 {
            servers_of_two_cpus.push(send(&mut shaper, 0, SHORT, index));
            shaper.exchange_turns(&mut other);
        }
        for (index, pair) in servers_of_two_cpus.chunks(2).take(40).enumerate() {
            assert_eq!(pair, [Forward::To(ServerId(index as u16 % 4)); 2]);
        }
        assert!(matches!(servers_of_two_cpus[80], Forward::Both(..)));
        let counts = [&mut shaper, &mut other].map(|one| one.monitor().readings()[0].count);
        assert_eq!(counts, [40, 41]);
    }

    #[test]
    fn the_excess_of_a_burst_is_cloned_to_the_calmer_group() {
        let mut shaper = shaper(Cloning::Calmest(20_000));
        let cloned: Vec<u32> = (0..100)
            .filter(|&index| match send(&mut shaper, 1_000, SHORT, index) {
                Forward::Both(original, clone) => {
                    assert!(original.0 < 4 && clone.0 >= 4);
                    true
                }
                _ => false,
            })
            .collect();
        assert_eq!(cloned, (80..100).collect::<Vec<_>>());
        assert!(matches!(
            send(&mut shaper, 20_000, SHORT, 100),
            Forward::To(_)
        ));
    }

    #[test]
    fn a_burst_of_longs_goes_to_the_shorts_only_if_allowed() {
        for (cloning, some) in [
            (Cloning::Calmest(20_000), true),
            (Cloning::Longer(20_000), false),
        ] {
            let mut shaper = shaper(cloning);
            assert_eq!(
                (0..50).any(|index| matches!(send(&mut shaper, 0, LONG, index), Forward::Both(..))),
                some,
                "{cloning:?}"
            );
        }
    }

    #[test]
    fn a_bounced_request_is_neither_counted_nor_cloned() {
        let mut shaper = shaper(Cloning::Calmest(20_000));
        for index in 0..80 {
            send(&mut shaper, 0, SHORT, index);
        }
        let mut packet = Packet::new(SHORT, 7);
        packet.bounced = true;
        assert!(matches!(shaper.request(0, packet), Forward::To(_)));
        assert_eq!(shaper.monitor().readings()[0].count, 80);
    }
}
