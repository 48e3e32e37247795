//! A core switch above the switches of racks: which rack, then which of its servers (Pallas § 7 proposes it).

use super::{Forward, LaidOutTables, Mark, Packet, Reply, ServerId, Shaper, Switch};
use alloc::vec::Vec;

/// A core switch, which takes each rack for a large server, and the switch of each rack. Servers are counted over all racks. The core switch
/// neither holds requests nor clones them.
#[derive(Clone, Debug)]
pub struct Tiers<C, T> {
    core: C,
    racks: Vec<T>,
    servers_of_a_rack: usize,
    /// Of all servers.
    cores: Vec<usize>,
    /// The rack whose server answered last: only it may have a request to release.
    answered: usize,
}

impl<C, T> Tiers<C, T> {
    /// Above racks of equally many servers, which have so many cores each. `rack_switch` makes a rack's switch for its servers' cores and a number
    /// of the rack.
    ///
    /// # Panics
    /// When the servers cannot be divided among so many racks.
    pub fn new(
        core: C,
        cores: &[usize],
        racks: usize,
        rack_switch: impl Fn(&[usize], u64) -> T,
    ) -> Self {
        assert!(
            racks > 0 && cores.len().is_multiple_of(racks),
            "{} servers do not stand in {racks} equal racks",
            cores.len()
        );
        let servers_of_a_rack = cores.len() / racks;
        let racks = cores.chunks(servers_of_a_rack).zip(0..);
        Self {
            core,
            racks: racks
                .map(|(cores, number)| rack_switch(cores, number))
                .collect(),
            servers_of_a_rack,
            cores: cores.to_vec(),
            answered: 0,
        }
    }

    /// The rack of a server, and which of its servers it is.
    #[inline]
    fn place(&self, server: ServerId) -> (usize, ServerId) {
        let own = server.index() % self.servers_of_a_rack;
        (
            server.index() / self.servers_of_a_rack,
            ServerId(own as u16),
        )
    }

    /// The number over all racks of a rack's server.
    #[inline]
    fn server(&self, rack: usize, own: ServerId) -> ServerId {
        ServerId((rack * self.servers_of_a_rack) as u16 + own.0)
    }
}

impl<C: Switch, T: Switch> Switch for Tiers<C, T> {
    #[inline]
    fn request(&mut self, now_ns: u64, packet: Packet) -> Forward {
        let Forward::To(rack) = self.core.request(now_ns, packet) else {
            return Forward::Shed;
        };
        let at = rack.index();
        match self.racks[at].request(now_ns, packet) {
            Forward::To(own) => Forward::To(self.server(at, own)),
            Forward::Both(own, clone) => {
                Forward::Both(self.server(at, own), self.server(at, clone))
            }
            Forward::Held => Forward::Held,
            Forward::Shed => {
                let refusal = Reply {
                    server: rack,
                    class: packet.class,
                    index: packet.index,
                    mark: Mark::Plain,
                    execution_ns: 0,
                    queue: 0,
                };
                self.core.reply(now_ns, &refusal);
                Forward::Shed
            }
        }
    }

    #[inline]
    fn reply(&mut self, now_ns: u64, reply: &Reply) -> bool {
        let (rack, server) = self.place(reply.server);
        self.answered = rack;
        if !self.racks[rack].reply(now_ns, &Reply { server, ..*reply }) {
            return false;
        }
        // The rack's switch let one of two copies pass: above it there is one.
        let above = Reply {
            server: ServerId(rack as u16),
            mark: Mark::Plain,
            ..*reply
        };
        self.core.reply(now_ns, &above)
    }

    fn release(&mut self) -> Option<(ServerId, Packet)> {
        let (own, packet) = self.racks[self.answered].release()?;
        Some((self.server(self.answered, own), packet))
    }

    fn capacity(&mut self, server: ServerId, cores: usize) {
        let (rack, own) = self.place(server);
        self.cores[server.index()] = cores;
        self.racks[rack].capacity(own, cores);
        let first = rack * self.servers_of_a_rack;
        let total = self.cores[first..first + self.servers_of_a_rack]
            .iter()
            .sum();
        self.core.capacity(ServerId(rack as u16), total);
        self.answered = rack;
    }

    fn may_send(&self, server: ServerId) -> bool {
        let (rack, own) = self.place(server);
        self.core.may_send(ServerId(rack as u16)) && self.racks[rack].may_send(own)
    }

    fn grow(&mut self, held: usize) {
        self.racks.iter_mut().for_each(|rack| rack.grow(held));
    }

    fn held(&self) -> usize {
        self.racks.iter().map(Switch::held).sum()
    }

    fn compares_queues(&self) -> bool {
        self.core.compares_queues() || self.racks.iter().any(Switch::compares_queues)
    }

    fn shaper(&mut self) -> Option<&mut Shaper> {
        self.core.shaper()
    }

    fn install(&mut self, tables: &LaidOutTables<'_>) {
        let Some(tiers) = tables.tiers else { return };
        self.core.install(&LaidOutTables {
            layout: tiers.racks(),
            tiers: None,
            ..*tables
        });
        for (number, rack) in self.racks.iter_mut().enumerate() {
            rack.install(&LaidOutTables {
                layout: tiers.rack(number),
                tiers: None,
                ..*tables
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rack::{Cloning, ControlPlane, ControlRules, Turns};
    use crate::{ClassHint, ClassId};
    use alloc::vec;

    /// A round of a group visits each of its cores once, whichever rack they are in.
    #[test]
    fn turns_are_exact_over_all_racks() {
        let types = [ClassHint::new(1e4, 0.9), ClassHint::new(1e5, 0.1)];
        let cores = [4, 4, 4, 2, 2, 8, 1, 7, 4];
        let control = ControlPlane::new(&cores, &types, ControlRules::default());
        let mut control = control.behind_core_switch(3);
        control.choose(&[2.0, 1.0]);
        let shaper = |cores: &[usize]| {
            let cores = cores.iter().sum();
            Shaper::new(2, cores, Turns::Even, Cloning::Off, 64)
        };
        let mut switch = Tiers::new(shaper(&cores), &cores, 3, |cores, _| shaper(cores));
        control.install(&mut switch);
        for group in 0..2 {
            let round = control.layout().of_group(group);
            let mut visits = vec![0; cores.len()];
            for index in 0..3 * round {
                let packet = Packet::new(ClassId(group as u16), index as u32);
                let Forward::To(server) = switch.request(0, packet) else {
                    panic!("one copy");
                };
                visits[server.index()] += 1;
            }
            for (server, &visits) in visits.iter().enumerate() {
                assert_eq!(visits, 3 * control.layout().cores(server, group));
            }
        }
    }
}
