//! Two copies of every request while two servers seem idle (`NetClone`, SIGCOMM '23).

use super::present::PresentServers;
use super::{Duplicates, Forward, LaidOutTables, Packet, Reply, ServerId, Shaper, Switch};
use crate::Rng;
use alloc::vec::Vec;

/// Draws two servers; if both were last known to have an idle core, both get the request, else the first does. A server
/// drops a clone that it cannot start at once; the first response wins.
#[derive(Clone, Debug)]
pub struct NetClone {
    /// Requests at the server, running ones included, as its last reply said.
    lengths: Vec<u32>,
    cores: Vec<u32>,
    present: PresentServers,
    duplicates: Duplicates,
    rng: Rng,
}

impl NetClone {
    /// Over servers of so many cores; `slots` registers tell duplicates.
    #[must_use]
    pub fn new(cores: &[usize], slots: usize, seed: u64) -> Self {
        Self {
            lengths: alloc::vec![0; cores.len()],
            cores: cores.iter().map(|&cores| cores as u32).collect(),
            present: PresentServers::all(cores.len()),
            duplicates: Duplicates::new(slots),
            rng: Rng::new(seed),
        }
    }

    fn idle(&self, server: usize) -> bool {
        self.lengths[server] < self.cores[server]
    }
}

impl Switch for NetClone {
    #[inline]
    fn request(&mut self, _now_ns: u64, _packet: Packet) -> Forward {
        let servers = self.present.count();
        if servers == 0 {
            return Forward::Shed;
        }
        let first = self.rng.below(servers);
        // Any but the first.
        let second = (first + 1 + self.rng.below((servers - 1).max(1))) % servers;
        let (first, second) = (self.present.at(first), self.present.at(second));
        let (original, clone) = (ServerId(first as u16), ServerId(second as u16));
        if first != second && self.idle(first) && self.idle(second) {
            Forward::Both(original, clone)
        } else {
            Forward::To(original)
        }
    }

    #[inline]
    fn reply(&mut self, _now_ns: u64, reply: &Reply) -> bool {
        self.lengths[reply.server.index()] = reply.queue;
        self.duplicates.passes(reply.index, reply.mark)
    }

    fn release(&mut self) -> Option<(ServerId, Packet)> {
        None
    }

    fn capacity(&mut self, server: ServerId, cores: usize) {
        if cores == 0 || !self.present.has(server) {
            // Another server may have its place when it is back.
            self.lengths[server.index()] = 0;
        }
        self.cores[server.index()] = cores as u32;
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

    #[test]
    fn clones_go_to_two_servers_that_seem_idle() {
        let mut switch = NetClone::new(&[1, 1, 1], 64, 1);
        for index in 0..100 {
            match switch.request(0, Packet::new(ClassId(0), index)) {
                Forward::Both(a, b) => assert_ne!(a, b),
                other => panic!("{other:?}"),
            }
        }
        for server in [0, 1] {
            let (class, mark) = (ClassId(0), Mark::Plain);
            let server = ServerId(server);
            switch.reply(
                0,
                &Reply {
                    server,
                    class,
                    index: 0,
                    mark,
                    execution_ns: 1,
                    queue: 1,
                },
            );
        }
        let cloned = (0..100).filter(|&index| {
            matches!(
                switch.request(0, Packet::new(ClassId(0), index)),
                Forward::Both(..)
            )
        });
        assert_eq!(cloned.count(), 0);
    }

    #[test]
    fn one_server_never_gets_both() {
        let mut switch = NetClone::new(&[4], 64, 1);
        assert_eq!(
            switch.request(0, Packet::new(ClassId(0), 0)),
            Forward::To(ServerId(0))
        );
    }
}
