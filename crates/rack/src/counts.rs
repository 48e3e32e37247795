//! What a switch did with packets.

/// Packets by what became of them, since the switch began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PacketCounts {
    /// Requests of clients.
    pub requests: u64,
    /// Responses that went on to their clients.
    pub answered: u64,
    /// Requests sent to two servers.
    pub cloned: u64,
    /// Responses that were the slower of two, and went no further.
    pub filtered: u64,
    /// Copies of cloned requests that their server did not begin. The other copy is awaited.
    pub copies_refused: u64,
    /// Requests that servers handed back.
    pub bounced: u64,
    /// Requests that the policy shed, or for which the switch had no room. Their clients were told.
    pub shed: u64,
    /// Copies of requests that were not answered in time, and are forgotten.
    pub expired: u64,
    /// Times that a silent server left the turns.
    pub left: u64,
    /// Times that one came back.
    pub returned: u64,
    /// Questions of the switch to servers that left.
    pub asked: u64,
    /// Dropped: datagrams shorter than the header.
    pub truncated: u64,
    /// Dropped: datagrams longer than the switch forwards.
    pub too_long: u64,
    /// Dropped: responses, and requests handed back, that the switch awaits from nobody (any more).
    pub unexpected: u64,
    /// Dropped: responses, and requests handed back, from another address than the server's that was asked; requests in the name
    /// of a server or of the switch itself.
    pub spoofed: u64,
    /// Requests whose type byte names no type. They were forwarded as UNKNOWN.
    pub unknown_type: u64,
}

impl PacketCounts {
    /// Packets that were dropped without a word.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.truncated + self.too_long + self.unexpected + self.spoofed
    }
}
