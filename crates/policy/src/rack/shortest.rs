//! Join the shortest queue, as far as the switch knows (RackSched, OSDI '20).

use super::present::PresentServers;
use super::{Forward, LaidOutTables, Packet, Reply, ServerId, Shaper, Switch};
use crate::Rng;
use alloc::vec;
use alloc::vec::Vec;

/// How the switch keeps a server's length between replies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reported {
    /// A reply overwrites it, every request sent later adds one.
    AndSent,
    /// A reply overwrites it, nothing else changes it.
    Only,
}

/// Sends to the server whose queue was last known to be the shortest.
#[derive(Clone, Debug)]
pub struct ShortestSwitch {
    lengths: Vec<u32>,
    present: PresentServers,
    reported: Reported,
    /// 0: all servers are compared.
    choices: usize,
    rng: Rng,
}

impl ShortestSwitch {
    /// Compares `choices` servers drawn at random with replacement, all of them for 0.
    #[must_use]
    pub fn new(servers: usize, reported: Reported, choices: usize, seed: u64) -> Self {
        Self {
            lengths: vec![0; servers],
            present: PresentServers::all(servers),
            reported,
            choices,
            rng: Rng::new(seed),
        }
    }

    /// The shortest of all, ties at random.
    #[inline]
    fn shortest(&mut self) -> usize {
        let (mut least, mut equals) = (u32::MAX, 0);
        for server in self.present.iter() {
            let length = self.lengths[server];
            if length < least {
                (least, equals) = (length, 0);
            }
            equals += usize::from(length == least);
        }
        let is_least = |&server: &usize| self.lengths[server] == least;
        let nth = self.rng.below(equals);
        self.present.iter().filter(is_least).nth(nth).unwrap_or(0)
    }

    /// The shortest of a few, the first drawn among equals.
    #[inline]
    fn shortest_of_few(&mut self) -> usize {
        let servers = self.present.count();
        let mut best = self.present.at(self.rng.below(servers));
        for _ in 1..self.choices {
            let other = self.present.at(self.rng.below(servers));
            if self.lengths[other] < self.lengths[best] {
                best = other;
            }
        }
        best
    }
}

impl Switch for ShortestSwitch {
    #[inline]
    fn request(&mut self, _now_ns: u64, _packet: Packet) -> Forward {
        if self.present.count() == 0 {
            return Forward::Shed;
        }
        let server = match self.choices {
            0 => self.shortest(),
            _ => self.shortest_of_few(),
        };
        if self.reported == Reported::AndSent {
            self.lengths[server] += 1;
        }
        Forward::To(ServerId(server as u16))
    }

    #[inline]
    fn reply(&mut self, _now_ns: u64, reply: &Reply) -> bool {
        self.lengths[reply.server.index()] = reply.queue;
        true
    }

    fn release(&mut self) -> Option<(ServerId, Packet)> {
        None
    }

    fn capacity(&mut self, server: ServerId, cores: usize) {
        if cores == 0 || !self.present.has(server) {
            // What it had is not there any more when it comes back, whatever late replies said, and another server may have its place.
            self.lengths[server.index()] = 0;
        }
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
        true
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

    fn ask(switch: &mut ShortestSwitch) -> usize {
        match switch.request(0, Packet::new(ClassId(0), 0)) {
            Forward::To(server) => server.index(),
            other => panic!("{other:?}"),
        }
    }

    fn reply(server: u16, queue: u32) -> Reply {
        Reply {
            server: ServerId(server),
            class: ClassId(0),
            index: 0,
            mark: Mark::Plain,
            execution_ns: 1,
            queue,
        }
    }

    #[test]
    fn sends_count_until_a_reply_overwrites_them() {
        let mut switch = ShortestSwitch::new(3, Reported::AndSent, 0, 1);
        let mut seen = [0; 3];
        (0..30).for_each(|_| seen[ask(&mut switch)] += 1);
        assert_eq!(seen, [10, 10, 10]);
        switch.reply(0, &reply(1, 3));
        let next: Vec<usize> = (0..7).map(|_| ask(&mut switch)).collect();
        assert_eq!(next, [1; 7]);
    }

    #[test]
    fn a_server_without_cores_gets_nothing_until_it_has_some() {
        for choices in [0, 2] {
            let mut switch = ShortestSwitch::new(3, Reported::Only, choices, 1);
            switch.capacity(ServerId(1), 0);
            assert!((0..100).all(|_| ask(&mut switch) != 1));
            switch.capacity(ServerId(1), 2);
            assert!((0..100).any(|_| ask(&mut switch) == 1));
        }
    }

    #[test]
    fn a_late_reply_of_a_server_that_left_is_not_the_next_ones_queue() {
        let mut switch = ShortestSwitch::new(2, Reported::Only, 0, 1);
        switch.capacity(ServerId(1), 0);
        switch.reply(0, &reply(1, 9));
        switch.capacity(ServerId(1), 2);
        assert!((0..100).any(|_| ask(&mut switch) == 1));
    }

    #[test]
    fn plain_counters_herd() {
        let mut switch = ShortestSwitch::new(3, Reported::Only, 0, 1);
        switch.reply(0, &reply(0, 1));
        switch.reply(0, &reply(2, 1));
        assert!((0..100).all(|_| ask(&mut switch) == 1));
    }

    #[test]
    fn ties_are_broken_at_random() {
        let mut switch = ShortestSwitch::new(4, Reported::Only, 0, 1);
        let mut seen = [0; 4];
        (0..4000).for_each(|_| seen[ask(&mut switch)] += 1);
        assert!(seen.iter().all(|&n| (900..1100).contains(&n)), "{seen:?}");
    }

    #[test]
    fn few_choices_never_take_the_longest_of_them() {
        let mut switch = ShortestSwitch::new(2, Reported::Only, 8, 1);
        switch.reply(0, &reply(0, 9));
        let longer = (0..10_000).filter(|_| ask(&mut switch) == 0).count();
        // All eight draws hit the longer queue with probability 2⁻⁸.
        assert!((10..80).contains(&longer), "{longer}");
    }
}
