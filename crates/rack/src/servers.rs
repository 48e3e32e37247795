//! What the switch knows of its servers: their addresses, what they owe, whether they answer.

use crate::ServerAddresses;
use headway_net::header::{Flag, QUEUE_BYTES};
use headway_net::slot::Peer;
use headway_policy::rack::{Liveness, ServerId};

/// The servers behind a switch.
pub(crate) struct SwitchServers {
    pub(crate) addresses: ServerAddresses,
    /// Requests at each server that are not answered yet.
    pub(crate) unanswered: Vec<u32>,
    /// Which servers answer, where that is watched.
    pub(crate) liveness: Option<Liveness>,
    /// Whether they are asked how many requests they have.
    pub(crate) asks_queues: bool,
}

impl SwitchServers {
    pub(crate) fn new(addresses: ServerAddresses, asks_queues: bool) -> Self {
        Self {
            unanswered: vec![0; addresses.count()],
            addresses,
            liveness: None,
            asks_queues,
        }
    }

    /// A copy of a request goes to a server; its address.
    #[inline]
    pub(crate) fn sent(&mut self, now_ns: u64, server: ServerId) -> Peer {
        self.unanswered[server.index()] += 1;
        if let Some(liveness) = &mut self.liveness {
            liveness.sent(server, now_ns);
        }
        self.addresses.peer(server)
    }

    /// The server owes one request less.
    #[inline]
    pub(crate) fn settled(&mut self, server: ServerId) {
        self.unanswered[server.index()] -= 1;
    }

    /// Something came from the server.
    #[inline]
    pub(crate) fn heard(&mut self, server: ServerId) {
        if let Some(liveness) = &mut self.liveness {
            liveness.heard(server);
        }
    }

    /// How many requests the server has, as far as known: by its own word at the end of this response, else those that it owes. The body without
    /// that word.
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
