//! Join the bounded shortest queue (R2P2, ATC '19): the switch holds what would exceed the bound. With a bound of one
//! request per core it is one queue for the whole rack in the switch (Draconis, `EuroSys` '24).

use super::{Forward, LaidOutTables, Packet, Reply, ServerId, Shaper, Switch};
use crate::Rng;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// JBSQ(n): at most `n` requests at a server, the running ones included; the rest waits here, first come first served.
#[derive(Clone, Debug)]
pub struct BoundedSwitch {
    outstanding: Vec<u32>,
    bounds: Vec<u32>,
    /// The bound of a server that has cores, where it does not follow them.
    bound: u32,
    /// The bound as a multiple of the cores, where it follows them.
    per_core: Option<u32>,
    held: VecDeque<Packet>,
    room: usize,
    rng: Rng,
}

impl BoundedSwitch {
    /// At most `bound` requests at each of `servers` servers, and `room` in the switch. Ties are broken by the seed.
    #[must_use]
    pub fn new(servers: usize, bound: u32, room: usize, seed: u64) -> Self {
        Self {
            outstanding: alloc::vec![0; servers],
            bounds: alloc::vec![bound; servers],
            bound,
            per_core: None,
            held: VecDeque::with_capacity(room),
            room,
            rng: Rng::new(seed),
        }
    }

    /// At most `per_core` requests at each server for every core it has.
    #[must_use]
    pub fn per_core(cores: &[usize], per_core: u32, room: usize, seed: u64) -> Self {
        let mut switch = Self::new(cores.len(), 0, room, seed);
        switch.per_core = Some(per_core);
        for (server, &cores) in cores.iter().enumerate() {
            switch.capacity(ServerId(server as u16), cores);
        }
        switch
    }

    /// A server with the fewest outstanding requests of those that have room, any of them among equals.
    #[inline]
    fn shortest(&mut self) -> Option<usize> {
        let lengths = || self.outstanding.iter().zip(&self.bounds);
        let has_room = |(length, bound): &(&u32, &u32)| length < bound;
        let least = *lengths().filter(has_room).map(|(length, _)| length).min()?;
        let is_equal = |at: (&u32, &u32)| *at.0 == least && has_room(&at);
        let nth = self.rng.below(lengths().filter(|&at| is_equal(at)).count());
        let mut equals = lengths().enumerate().filter(|&(_, at)| is_equal(at));
        equals.nth(nth).map(|(server, _)| server)
    }

    #[inline]
    fn send(&mut self) -> Option<ServerId> {
        let server = self.shortest()?;
        self.outstanding[server] += 1;
        Some(ServerId(server as u16))
    }

    /// Requests at a server, as far as replies have told.
    #[must_use]
    pub fn outstanding(&self, server: ServerId) -> u32 {
        self.outstanding[server.index()]
    }
}

impl Switch for BoundedSwitch {
    #[inline]
    fn request(&mut self, _now_ns: u64, packet: Packet) -> Forward {
        // Nobody overtakes: while something is held no server has room.
        if let Some(server) = self.send() {
            return Forward::To(server);
        }
        if self.held.len() >= self.room {
            return Forward::Shed;
        }
        self.held.push_back(packet);
        Forward::Held
    }

    #[inline]
    fn reply(&mut self, _now_ns: u64, reply: &Reply) -> bool {
        self.outstanding[reply.server.index()] -= 1;
        true
    }

    #[inline]
    fn release(&mut self) -> Option<(ServerId, Packet)> {
        if self.held.is_empty() {
            return None;
        }
        let server = self.send()?;
        self.held.pop_front().map(|packet| (server, packet))
    }

    fn capacity(&mut self, server: ServerId, cores: usize) {
        self.bounds[server.index()] = match self.per_core {
            Some(per_core) => per_core * cores as u32,
            None if cores == 0 => 0,
            None => self.bound,
        };
    }

    fn may_send(&self, server: ServerId) -> bool {
        self.bounds[server.index()] > 0
    }

    fn grow(&mut self, held: usize) {
        self.room = self.room.max(held);
        self.held.reserve(self.room.saturating_sub(self.held.len()));
    }

    fn held(&self) -> usize {
        self.held.len()
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
        /// Never more than the bound at a server, nothing held while one has room, first come first served, nothing lost.
        #[test]
        fn the_bound_holds(
            servers in 1usize..6,
            bound in 1u32..5,
            moves in prop::collection::vec(prop::option::of(0usize..6), 1..400),
        ) {
            let mut switch = BoundedSwitch::new(servers, bound, 1000, 1);
            let mut at = alloc::vec![0u32; servers];
            let (mut sent, mut next) = (0, 0);
            for step in moves {
                match step {
                    None => {
                        let forward = switch.request(0, Packet::new(ClassId(0), next));
                        next += 1;
                        if let Forward::To(server) = forward {
                            at[server.index()] += 1;
                            prop_assert_eq!(sent, next - 1, "an arrival overtook what was held");
                            sent = next;
                        }
                    }
                    Some(server) if at[server % servers] > 0 => {
                        let server = ServerId((server % servers) as u16);
                        at[server.index()] -= 1;
                        switch.reply(0, &Reply {
                            server, class: ClassId(0), index: 0, mark: Mark::Plain, execution_ns: 1, queue: 0,
                        });
                        while let Some((server, packet)) = switch.release() {
                            at[server.index()] += 1;
                            prop_assert_eq!(packet.index, sent);
                            sent += 1;
                        }
                    }
                    Some(_) => {}
                }
                prop_assert!(at.iter().all(|&length| length <= bound));
                prop_assert!(switch.held() == 0 || at.iter().all(|&length| length == bound));
                prop_assert_eq!(next - sent, switch.held() as u32);
            }
        }
    }

    #[test]
    fn ties_are_broken_at_random() {
        let first = |seed| {
            let mut switch = BoundedSwitch::new(4, 1, 0, seed);
            match switch.request(0, Packet::new(ClassId(0), 0)) {
                Forward::To(server) => server.index(),
                other => panic!("{other:?}"),
            }
        };
        let mut seen = [0; 4];
        (0..4_000).for_each(|seed| seen[first(seed)] += 1);
        assert!(
            seen.iter().all(|&count| (850..1_150).contains(&count)),
            "{seen:?}"
        );
    }

    #[test]
    fn a_core_more_is_used_at_once() {
        let mut switch = BoundedSwitch::per_core(&[1], 1, 4, 1);
        assert_eq!(
            switch.request(0, Packet::new(ClassId(0), 0)),
            Forward::To(ServerId(0))
        );
        assert_eq!(switch.request(0, Packet::new(ClassId(0), 1)), Forward::Held);
        switch.capacity(ServerId(0), 2);
        assert_eq!(switch.release().map(|(_, packet)| packet.index), Some(1));
        assert_eq!(switch.release(), None);
    }
}
