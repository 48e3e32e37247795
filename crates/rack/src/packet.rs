//! Packets as they come to the switch and leave it.

use headway_net::header::HEADER_BYTES;
use headway_net::slot::Peer;

/// A packet that a port received.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedPacket<'a> {
    /// Its sender.
    pub from: Peer,
    /// The bytes received.
    pub bytes: &'a [u8],
    /// Whether the packet was longer than these bytes.
    pub is_cut: bool,
    /// The system's number of the interface by which it came; 0 where the port does not know.
    pub interface: u32,
}

impl<'a> ReceivedPacket<'a> {
    /// A packet of this sender, received in full by an unknown interface.
    #[must_use]
    pub fn of(from: Peer, bytes: &'a [u8]) -> Self {
        Self {
            from,
            bytes,
            is_cut: false,
            interface: 0,
        }
    }
}

/// The sink for packets that a switch sends.
pub trait PacketSink {
    /// Sends a datagram of this header and this body to this address.
    fn send(&mut self, to: Peer, header: [u8; HEADER_BYTES], body: &[u8]);
}
