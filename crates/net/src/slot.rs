//! The buffer of one request, which becomes the buffer of its response.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Bytes of a slot: metadata, payload, destination address; a whole number of cache lines.
pub const SLOT_BYTES: usize = 2112;

/// Capacity for the payload: more than an Ethernet frame carries.
pub const PAYLOAD_BYTES: usize = 2000;

/// Capacity for data that a datapath below IP needs for the response, besides addresses and ports.
pub const LINK_BYTES: usize = 16;

/// One request in flight: its sender, its arrival time, and its bytes.
///
/// The metadata takes 48 bytes, so that the first cache line also holds the first 16 bytes of the payload:
/// dispatching and classifying by the wire header touch one line.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Slot {
    /// Arrival time of the request: when it was taken from the socket, or the intended time of a replay.
    pub arrived_ns: u64,
    /// The service time of a replayed request, in nanoseconds; 0 where unknown.
    pub service_hint_ns: u64,
    /// The request's index in its replay's workload; 0 for requests from a network.
    pub index: u32,
    /// The sender of the request, who gets the response.
    pub peer: Peer,
    len: u16,
    /// The class assigned by the dispatcher, or [`Slot::UNCLASSIFIED`].
    pub class: u16,
    /// Whether the datagram was longer than [`PAYLOAD_BYTES`] and was truncated.
    pub truncated: bool,
    /// The request's class in a replay's schedule, which may differ from the classifier's.
    pub(crate) replay_class: u8,
    data: [u8; PAYLOAD_BYTES],
    /// The request's destination address on this machine, IPv4 mapped; [`Slot::ANY_IP`] if the socket has only one address. It lies
    /// behind the payload, since only servers on all addresses read it.
    pub asked_ip: [u8; 16],
    /// The data of the request's frame that the response needs, for datapaths that write frames themselves.
    pub link: [u8; LINK_BYTES],
}

const _: () = assert!(size_of::<Slot>() == SLOT_BYTES);

impl Slot {
    /// The [`class`](Slot::class) of a request no classifier has seen.
    pub const UNCLASSIFIED: u16 = u16::MAX;

    pub(crate) const EMPTY: Slot = Slot {
        arrived_ns: 0,
        service_hint_ns: 0,
        index: 0,
        peer: Peer::NOBODY,
        len: 0,
        class: Slot::UNCLASSIFIED,
        truncated: false,
        replay_class: 0,
        data: [0; PAYLOAD_BYTES],
        asked_ip: Slot::ANY_IP,
        link: [0; LINK_BYTES],
    };

    /// No address in particular.
    pub const ANY_IP: [u8; 16] = [0; 16];

    /// The request; later the response, written over it.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        &self.data[..usize::from(self.len)]
    }

    /// The payload, to change in place.
    #[inline]
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.data[..usize::from(self.len)]
    }

    /// The whole buffer, to write a response into; then [`set_len`](Slot::set_len).
    #[inline]
    pub fn buffer_mut(&mut self) -> &mut [u8; PAYLOAD_BYTES] {
        &mut self.data
    }

    /// Declares the first `len` bytes of the buffer to be the payload.
    ///
    /// # Panics
    ///
    /// If `len` is more than [`PAYLOAD_BYTES`].
    #[inline]
    pub fn set_len(&mut self, len: usize) {
        assert!(
            len <= PAYLOAD_BYTES,
            "a payload of {len} bytes exceeds {PAYLOAD_BYTES}"
        );
        self.len = len as u16;
    }

    /// The address for a kernel to write a datagram to, derived without borrowing the slot.
    #[inline]
    pub(crate) fn data_ptr(slot: *mut Slot) -> *mut u8 {
        slot.wrapping_byte_add(std::mem::offset_of!(Slot, data))
            .cast()
    }
}

/// A socket address in 22 bytes: IPv4 addresses are kept mapped (`::ffff:a.b.c.d`), so that no tag is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer {
    ip: [u8; 16],
    port: u16,
    scope: [u8; 4],
}

impl Peer {
    /// The peer of a request without a network.
    pub const NOBODY: Peer = Peer {
        ip: [0; 16],
        port: 0,
        scope: [0; 4],
    };

    /// The address, an IPv4 one as such.
    pub fn socket_addr(&self) -> SocketAddr {
        let v6 = self.mapped();
        match v6.ip().to_ipv4_mapped() {
            Some(ip) => SocketAddr::new(IpAddr::V4(ip), self.port),
            None => SocketAddr::V6(v6),
        }
    }

    /// The peer at this address, an IPv4 one mapped, and this port.
    #[inline]
    #[must_use]
    pub fn at(ip: [u8; 16], port: u16) -> Peer {
        Peer {
            ip,
            port,
            scope: [0; 4],
        }
    }

    /// The address, an IPv4 one mapped.
    #[inline]
    #[must_use]
    pub fn ip(&self) -> [u8; 16] {
        self.ip
    }

    /// The port.
    #[inline]
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The interface of a link-local address, or the number under which a datapath below IP stores the route to the peer; 0 without either.
    #[inline]
    #[must_use]
    pub fn scope(&self) -> u32 {
        u32::from_ne_bytes(self.scope)
    }

    /// The same address and port with this scope.
    #[inline]
    #[must_use]
    pub fn with_scope(self, scope: u32) -> Peer {
        Peer {
            scope: scope.to_ne_bytes(),
            ..self
        }
    }

    /// Whether it equals this address, an IPv4 one mapped, and this port.
    #[inline]
    pub(crate) fn is_at(&self, ip: [u8; 16], port: u16) -> bool {
        self.port == port && self.ip == ip
    }

    /// A word to hash the address by: the last eight bytes of the IP address and the port, mixed.
    #[inline]
    #[must_use]
    pub fn hash_word(&self) -> u64 {
        const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
        let [.., a, b, c, d, e, f, g, h] = self.ip;
        let tail = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        let mixed = (tail ^ u64::from(self.port)).wrapping_mul(ODD);
        mixed >> 32
    }

    /// The address for an IPv6 socket, an IPv4 one mapped.
    pub(crate) fn mapped(&self) -> SocketAddrV6 {
        SocketAddrV6::new(Ipv6Addr::from(self.ip), self.port, 0, self.scope())
    }
}

impl From<SocketAddr> for Peer {
    fn from(addr: SocketAddr) -> Peer {
        let (ip, scope) = match addr {
            SocketAddr::V4(v4) => (v4.ip().to_ipv6_mapped(), 0),
            SocketAddr::V6(v6) => (*v6.ip(), v6.scope_id()),
        };
        Peer {
            ip: ip.octets(),
            port: addr.port(),
            scope: scope.to_ne_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::HEADER_BYTES;

    #[test]
    fn the_wire_header_lies_in_the_first_cache_line() {
        assert!(std::mem::offset_of!(Slot, data) + HEADER_BYTES <= 64);
    }

    #[test]
    fn addresses_survive_the_compact_form() {
        for text in [
            "127.0.0.1:80",
            "[::1]:65535",
            "[fe80::1%7]:9",
            "0.0.0.0:0",
            "[2001:db8::2]:53",
        ] {
            let addr: SocketAddr = text.parse().unwrap();
            assert_eq!(Peer::from(addr).socket_addr(), addr);
        }
    }

    #[test]
    fn the_payload_is_what_was_declared() {
        let mut slot = Slot::EMPTY;
        slot.buffer_mut()[..3].copy_from_slice(b"abc");
        slot.set_len(2);
        assert_eq!(slot.payload(), b"ab");
        slot.payload_mut()[0] = b'x';
        assert_eq!(slot.payload(), b"xb");
    }

    #[test]
    #[should_panic(expected = "exceeds")]
    fn a_payload_longer_than_the_buffer_is_refused() {
        let mut slot = Slot::EMPTY;
        slot.set_len(PAYLOAD_BYTES + 1);
    }
}
