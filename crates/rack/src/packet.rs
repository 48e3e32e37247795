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
    /// The port's address to which it was sent.
    pub to: LocalAddress,
}

impl<'a> ReceivedPacket<'a> {
    /// A packet of this sender, received in full by an unknown interface and to any address of the port.
    #[must_use]
    pub fn of(from: Peer, bytes: &'a [u8]) -> Self {
        Self {
            from,
            bytes,
            is_cut: false,
            interface: 0,
            to: LocalAddress::ANY,
        }
    }
}

/// One of its port's addresses, by the number that the port gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LocalAddress(pub(crate) u8);

impl LocalAddress {
    /// Any of them: the system chooses the source of a packet.
    pub const ANY: Self = Self(0);
    /// One that the port has no number for: the system has to choose.
    pub const UNNUMBERED: Self = Self(u8::MAX);
}

/// The sink for packets that a switch sends.
pub trait PacketSink {
    /// Sends a datagram of this header and this body from one address of the port to another's address.
    fn send(&mut self, from: LocalAddress, to: Peer, header: [u8; HEADER_BYTES], body: &[u8]);
}
