//! The switch's record of its servers: addresses, unanswered requests, liveness.

use crate::{ServerAddresses, ServerInterfaces};
use headway_net::header::{Flag, QUEUE_BYTES};
use headway_net::slot::Peer;
use headway_policy::rack::{Liveness, ServerId};
use std::sync::Arc;

/// The servers behind a switch.
pub(crate) struct SwitchServers {
    pub(crate) addresses: ServerAddresses,
    /// Each server's unanswered requests that the policy counts.
    pub(crate) unanswered: Vec<u32>,
    /// Each server's unanswered requests that were written off when it fell silent.
    written_off: Vec<u32>,
    /// Whether each place has a server that gets requests by order.
    pub(crate) serves: Vec<bool>,
    /// The servers' liveness, where the switch watches it.
    pub(crate) liveness: Option<Liveness>,
    /// The interfaces that lead to the servers, where the switch knows them.
    pub(crate) interfaces: Option<Arc<ServerInterfaces>>,
    /// Whether the switch asks servers for their queue lengths.
    pub(crate) asks_queues: bool,
}

impl SwitchServers {
    pub(crate) fn new(addresses: ServerAddresses, asks_queues: bool) -> Self {
        Self {
            unanswered: vec![0; addresses.count()],
            written_off: vec![0; addresses.count()],
            serves: (0..addresses.count() as u16)
                .map(|place| addresses.peer(ServerId(place)) != Peer::NOBODY)
                .collect(),
            addresses,
            liveness: None,
            interfaces: None,
            asks_queues,
        }
    }

    /// Whether a packet that came by `interface` may be the server's.
    #[inline]
    pub(crate) fn is_on_its_side(&self, server: ServerId, interface: u32) -> bool {
        let leads = self.interfaces.as_ref();
        let leads = leads.map_or(0, |interfaces| interfaces.get(server));
        leads == 0 || interface == 0 || leads == interface
    }

    /// Counts a copy that is sent to a server, and returns the server's address.
    #[inline]
    pub(crate) fn sent(&mut self, now_ns: u64, server: ServerId) -> Peer {
        self.unanswered[server.index()] += 1;
        if let Some(liveness) = &mut self.liveness {
            liveness.sent(server, now_ns);
        }
        self.addresses.peer(server)
    }

    /// Counts one unanswered request less for the server.
    #[inline]
    pub(crate) fn settled(&mut self, server: ServerId, was_written_off: bool) {
        let counted = if was_written_off {
            &mut self.written_off
        } else {
            &mut self.unanswered
        };
        counted[server.index()] -= 1;
    }

    /// Counts an unanswered request of the server as written off.
    pub(crate) fn write_off(&mut self, server: ServerId) {
        self.unanswered[server.index()] -= 1;
        self.written_off[server.index()] += 1;
    }

    /// The server's requests that it may still answer, written off or not.
    pub(crate) fn awaited(&self, server: ServerId) -> u32 {
        self.unanswered[server.index()] + self.written_off[server.index()]
    }

    /// Records that a packet came from the server.
    #[inline]
    pub(crate) fn heard(&mut self, server: ServerId) {
        if let Some(liveness) = &mut self.liveness {
            liveness.heard(server);
        }
    }

    /// The server's queue length: its own count at the end of this response, or else its unanswered requests. Also returns the body without that
    /// count.
    #[inline]
    pub(crate) fn queue<'a>(
        &self,
        server: ServerId,
        flag: Flag,
        body: &'a [u8],
    ) -> (u32, &'a [u8]) {
        if self.asks_queues
            && flag.has_queue()
            && let Some((body, said)) = body.split_last_chunk::<QUEUE_BYTES>()
        {
            return (u32::from(u16::from_be_bytes(*said)), body);
        }
        (self.unanswered[server.index()], body)
    }
}
