//! The counts of a switch's packets, by fate.

/// Counts of packets by fate, since the switch began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketCounts {
    /// Requests of clients.
    pub requests: u64,
    /// Responses that went on to their clients.
    pub answered: u64,
    /// Requests sent to two servers.
    pub cloned: u64,
    /// The slower responses of cloned requests, which the switch filtered.
    pub filtered: u64,
    /// Copies of cloned requests that a server refused to begin. The switch awaits the other copy.
    pub copies_refused: u64,
    /// Requests that servers handed back.
    pub bounced: u64,
    /// Requests that the policy shed, or for which the switch had no room. The switch told their clients.
    pub shed: u64,
    /// Copies of requests that no server answered in time, and that the switch forgot.
    pub expired: u64,
    /// Copies of requests that a server had when it was removed by order: nobody answers them.
    pub lost: u64,
    /// Times that a server was taken out of service for its silence.
    pub left: u64,
    /// Times that such a server came back.
    pub returned: u64,
    /// Probes that the switch sent to servers out of service.
    pub asked: u64,
    /// Dropped: datagrams shorter than the header.
    pub truncated: u64,
    /// Dropped: datagrams longer than the switch forwards.
    pub too_long: u64,
    /// Dropped: responses, and requests handed back, that match no request under way.
    pub unexpected: u64,
    /// Dropped: responses, and requests handed back, from another address than the server's that was asked; requests in the name
    /// of a server or of the switch itself.
    pub spoofed: u64,
    /// Dropped: responses, and requests handed back, by another interface than the one that leads to the server that was asked.
    pub wrong_side: u64,
    /// Requests whose type byte names no type. They were forwarded as UNKNOWN.
    pub unknown_type: u64,
}

/// Counts of packets that only a switch in the kernel tells apart, since it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KernelCounts {
    /// Left to the network stack: fragments.
    pub fragment: u64,
    /// Left to the network stack: packets with IP options or extension headers.
    pub options: u64,
    /// Dropped: requests whose server has addresses of the other family.
    pub other_family: u64,
    /// Dropped: requests whose turn fell on a place whose server was removed, until there are new tables.
    pub no_server: u64,
    /// Dropped: packets whose VLAN tag their sender left to hardware, so that it lies beside them.
    pub hidden_tag: u64,
}

impl PacketCounts {
    /// Packets that the switch dropped silently.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.truncated + self.too_long + self.unexpected + self.spoofed + self.wrong_side
    }
}
