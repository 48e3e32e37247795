//! How the switch takes silent servers out of service, and probes them.

use crate::nat::NatCopy;
use crate::{LocalAddress, PacketSink, RackSwitch};
use headway_net::header::{Flag, Header};
use headway_net::slot::Peer;
use headway_policy::MAX_WORKERS;
use headway_policy::rack::{LivenessChange, ServerId, Switch};

/// The type of the switch's own probes: UNKNOWN.
const QUESTION_TYPE: u8 = 255;

impl<S: Switch> RackSwitch<S> {
    /// Applies each server's liveness change, or probes it, when one is due.
    pub(crate) fn look_at_servers(&mut self, now_ns: u64, out: &mut impl PacketSink) {
        for number in 0..self.servers.addresses.count() as u16 {
            let server = ServerId(number);
            let Some(liveness) = &mut self.servers.liveness else {
                return;
            };
            let before = liveness.cores(server);
            match liveness.look(server, now_ns) {
                Some(LivenessChange::Cores(cores)) => {
                    self.counted_cores(now_ns, server, before, cores);
                }
                Some(LivenessChange::Ask) => self.ask(now_ns, server, out),
                None => {}
            }
        }
    }

    /// Takes an agent's report that its server lives and has this many cores; with 0 the server takes no more requests. The next report
    /// is due within the silence timeout. Without a watch, and of a server that drains by order, it changes nothing.
    pub fn agent_said(&mut self, now_ns: u64, server: ServerId, cores: usize) {
        let Some(liveness) = &mut self.servers.liveness else {
            return;
        };
        if !self.servers.serves[server.index()] {
            return;
        }
        let before = liveness.cores(server);
        liveness.heard(server);
        if cores > 0 {
            liveness.sent(server, now_ns);
        }
        if let Some(LivenessChange::Cores(cores)) =
            liveness.capacity(server, cores.min(MAX_WORKERS))
        {
            self.counted_cores(now_ns, server, before, cores);
        }
    }

    fn counted_cores(&mut self, now_ns: u64, server: ServerId, before: usize, cores: usize) {
        self.counts.left += u64::from(cores == 0);
        self.counts.returned += u64::from(before == 0);
        self.policy.capacity(server, cores);
        if cores == 0 {
            self.write_off(now_ns, server);
        }
    }

    /// Tells the policy that it no longer has to expect the responses of a server that left. Responses that still arrive go to their clients.
    #[cold]
    fn write_off(&mut self, now_ns: u64, server: ServerId) {
        for slot in 0..self.nat.capacity() {
            let Some(index) = self.nat.older_than(slot, u64::MAX) else {
                continue;
            };
            for copy in NatCopy::BOTH {
                let Some(entry) = self.nat.get(index) else {
                    continue;
                };
                if entry.client == Peer::NOBODY
                    || entry.server(copy) != Some(server)
                    || entry.is_written_off(copy)
                {
                    continue;
                }
                entry.write_off(copy);
                let class = entry.class;
                self.servers.write_off(server);
                self.forget_at(now_ns, index, class, server);
            }
        }
    }

    /// Probes a server with an empty request of the switch. Any answer proves that the server lives.
    fn ask(&mut self, now_ns: u64, server: ServerId, out: &mut impl PacketSink) {
        let header = Header {
            class: QUESTION_TYPE,
            flag: Flag::REQUEST,
            index: 0,
            time_ns: 0,
        };
        let class = self.types.unknown();
        // A full table skips the probe; it is full of requests that other servers leave unanswered too.
        let Some((index, entry)) =
            self.nat
                .begin(now_ns, &Peer::NOBODY, LocalAddress::ANY, header, class)
        else {
            return;
        };
        entry.sent(NatCopy::First, server);
        self.counts.asked += 1;
        let header = Header { index, ..header };
        let to = self.servers.addresses.peer(server);
        out.send(LocalAddress::ANY, to, header.encode(), &[]);
    }
}
