//! Servers that come to a switch in user space, drain and go.

use crate::nat::NatCopy;
use crate::roster::{RackMember, RosterPlane};
use crate::{RackRoster, RackSwitch, RosterFollower};
use headway_net::slot::Peer;
use headway_policy::rack::{ServerId, Switch};

/// A switch at one moment.
struct SwitchMembers<'a, S> {
    now_ns: u64,
    switch: &'a mut RackSwitch<S>,
}

impl<S: Switch> RosterPlane for SwitchMembers<'_, S> {
    fn join(&mut self, server: ServerId, member: &RackMember) -> bool {
        let servers = &mut self.switch.servers;
        servers.addresses.put(server, Some(member.address));
        servers.serves[server.index()] = true;
        if let Some(liveness) = &mut servers.liveness {
            liveness.join(server, member.cores);
        }
        self.switch.policy.capacity(server, member.cores);
        true
    }

    /// What it has stays its own, and counted.
    fn drain(&mut self, server: ServerId) {
        let servers = &mut self.switch.servers;
        servers.serves[server.index()] = false;
        if let Some(liveness) = &mut servers.liveness {
            liveness.leave(server);
        }
        self.switch.policy.capacity(server, 0);
    }

    fn is_drained(&self, server: ServerId) -> bool {
        self.switch.awaited(server) == 0 && !self.switch.policy.may_send(server)
    }

    fn remove(&mut self, server: ServerId) -> Option<u64> {
        self.drain(server);
        let before = self.switch.counts.lost;
        self.switch.lose(self.now_ns, server);
        self.switch.servers.addresses.put(server, None);
        Some(self.switch.counts.lost - before)
    }
}

impl<S: Switch> RackSwitch<S> {
    /// Carries out what changed in the roster that the switch was built with.
    pub fn follow(&mut self, now_ns: u64, roster: &RackRoster, follower: &mut RosterFollower) {
        let mut plane = SwitchMembers {
            now_ns,
            switch: self,
        };
        follower.follow(roster, &mut plane);
    }

    /// Forgets the copies that a server has, for good: an answer that still comes matches no request.
    #[cold]
    fn lose(&mut self, now_ns: u64, server: ServerId) {
        for slot in 0..self.nat.capacity() {
            let Some(index) = self.nat.older_than(slot, u64::MAX) else {
                continue;
            };
            for copy in NatCopy::BOTH {
                let Some(entry) = self.nat.get(index) else {
                    break;
                };
                if entry.server(copy) != Some(server) {
                    continue;
                }
                entry.came_back(copy);
                let (class, is_written_off) = (entry.class, entry.is_written_off(copy));
                let is_own = entry.client == Peer::NOBODY;
                if !entry.is_under_way() {
                    self.nat.end(index);
                }
                // The policy knows nothing of the switch's own probes.
                if is_own {
                    continue;
                }
                self.counts.lost += 1;
                self.servers.settled(server, is_written_off);
                if !is_written_off {
                    self.forget_at(now_ns, index, class, server);
                }
            }
        }
    }
}
