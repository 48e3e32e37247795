//! Idle servers first, else the shorter of two (Horus, NSDI '24, within one rack).

use super::present::PresentServers;
use super::{Forward, LaidOutTables, Packet, Reply, ServerId, Shaper, Switch};
use crate::Rng;
use alloc::vec::Vec;

/// Keeps account of each server's requests itself: one more for each it sends, one less for each reply. Sends to a server
/// with an idle core, any of them; with none left to the less loaded of two drawn at random.
#[derive(Clone, Debug)]
pub struct Horus {
    outstanding: Vec<u32>,
    cores: Vec<u32>,
    present: PresentServers,
    /// Servers known to have an idle core, and where each is in that list.
    idle: Vec<u16>,
    place: Vec<u16>,
    rng: Rng,
}

const BUSY: u16 = u16::MAX;

impl Horus {
    /// Over servers of so many cores.
    #[must_use]
    pub fn new(cores: &[usize], seed: u64) -> Self {
        let servers = cores.len();
        let mut switch = Self {
            outstanding: alloc::vec![0; servers],
            cores: alloc::vec![0; servers],
            present: PresentServers::all(servers),
            idle: Vec::with_capacity(servers),
            place: alloc::vec![BUSY; servers],
            rng: Rng::new(seed),
        };
        for (server, &cores) in cores.iter().enumerate() {
            switch.capacity(ServerId(server as u16), cores);
        }
        switch
    }

    /// Enters the server among the idle ones, or takes it out.
    #[inline]
    fn note(&mut self, server: usize) {
        let idle = self.outstanding[server] < self.cores[server];
        match (idle, self.place[server]) {
            (true, BUSY) => {
                self.place[server] = self.idle.len() as u16;
                self.idle.push(server as u16);
            }
            (false, place) if place != BUSY => {
                self.idle.swap_remove(usize::from(place));
                if let Some(&moved) = self.idle.get(usize::from(place)) {
                    self.place[usize::from(moved)] = place;
                }
                self.place[server] = BUSY;
            }
            _ => {}
        }
    }

    #[inline]
    fn less_loaded_of_two(&mut self) -> usize {
        let servers = self.present.count();
        let (a, b) = (self.rng.below(servers), self.rng.below(servers));
        let (a, b) = (self.present.at(a), self.present.at(b));
        // Load per core, compared without a division.
        let load = |server: usize, other: usize| {
            u64::from(self.outstanding[server]) * u64::from(self.cores[other])
        };
        if load(b, a) < load(a, b) { b } else { a }
    }
}

impl Switch for Horus {
    #[inline]
    fn request(&mut self, _now_ns: u64, _packet: Packet) -> Forward {
        if self.present.count() == 0 {
            return Forward::Shed;
        }
        let server = match self.idle.len() {
            0 => self.less_loaded_of_two(),
            idle => usize::from(self.idle[self.rng.below(idle)]),
        };
        self.outstanding[server] += 1;
        self.note(server);
        Forward::To(ServerId(server as u16))
    }

    #[inline]
    fn reply(&mut self, _now_ns: u64, reply: &Reply) -> bool {
        let server = reply.server.index();
        self.outstanding[server] -= 1;
        self.note(server);
        true
    }

    fn release(&mut self) -> Option<(ServerId, Packet)> {
        None
    }

    fn capacity(&mut self, server: ServerId, cores: usize) {
        self.cores[server.index()] = cores as u32;
        self.present.capacity(server, cores);
        self.note(server.index());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClassId;
    use crate::rack::Mark;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_idle_core_is_used_while_one_is_known(
            cores in prop::collection::vec(1usize..4, 1..6),
            moves in prop::collection::vec(prop::option::of(0usize..6), 1..300),
        ) {
            let mut switch = Horus::new(&cores, 3);
            let mut at = alloc::vec![0usize; cores.len()];
            for step in moves {
                let idle = (0..cores.len()).any(|server| at[server] < cores[server]);
                match step {
                    None => {
                        let Forward::To(server) = switch.request(0, Packet::new(ClassId(0), 0)) else {
                            panic!("it always sends");
                        };
                        prop_assert!(!idle || at[server.index()] < cores[server.index()]);
                        at[server.index()] += 1;
                    }
                    Some(server) if at[server % cores.len()] > 0 => {
                        let server = server % cores.len();
                        at[server] -= 1;
                        let (class, mark) = (ClassId(0), Mark::Plain);
                        let server = ServerId(server as u16);
                        switch.reply(0, &Reply { server, class, index: 0, mark, execution_ns: 1, queue: 0 });
                    }
                    Some(_) => {}
                }
            }
        }
    }
}
