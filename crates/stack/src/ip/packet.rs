//! Ethernet frames with IPv4 and IPv6 packets: parsing, writing, checksums.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(crate) const ETHERNET_BYTES: usize = 14;
pub(crate) const IPV4_BYTES: usize = 20;
pub(crate) const IPV6_BYTES: usize = 40;

pub(crate) const TYPE_IPV4: u16 = 0x0800;
pub(crate) const TYPE_ARP: u16 = 0x0806;
pub(crate) const TYPE_IPV6: u16 = 0x86DD;

pub(crate) const PROTOCOL_ICMP: u8 = 1;
pub(crate) const PROTOCOL_TCP: u8 = 6;
pub(crate) const PROTOCOL_UDP: u8 = 17;
pub(crate) const PROTOCOL_ICMPV6: u8 = 58;

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

/// A frame's addresses, type and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EthernetFrame<'a> {
    pub(crate) to: Mac,
    pub(crate) from: Mac,
    pub(crate) kind: u16,
    pub(crate) content: &'a [u8],
}

impl<'a> EthernetFrame<'a> {
    pub(crate) fn parse(frame: &'a [u8]) -> Option<Self> {
        let (header, content) = frame.split_first_chunk::<ETHERNET_BYTES>()?;
        Some(Self {
            to: *header.first_chunk()?,
            from: *header[6..].first_chunk()?,
            kind: u16::from_be_bytes([header[12], header[13]]),
            content,
        })
    }
}

pub(crate) fn write_ethernet(to: &mut [u8], destination: Mac, source: Mac, kind: u16) {
    to[..6].copy_from_slice(&destination);
    to[6..12].copy_from_slice(&source);
    to[12..14].copy_from_slice(&kind.to_be_bytes());
}

/// An IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IpPacket<'a> {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) hop_limit: u8,
    pub(crate) payload: &'a [u8],
}

impl<'a> IpPacket<'a> {
    /// Parses a packet of IPv4. `None` for fragments, wrong lengths, and a wrong checksum. Options are skipped.
    pub(crate) fn parse_v4(bytes: &'a [u8]) -> Option<Self> {
        let header: &[u8; IPV4_BYTES] = bytes.first_chunk()?;
        let header_bytes = usize::from(header[0] & 0xF) * 4;
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3FFF != 0;
        if header[0] >> 4 != 4 || is_fragment || header_bytes < IPV4_BYTES {
            return None;
        }
        let payload = bytes.get(..total)?.get(header_bytes..)?;
        if checksum(0, &bytes[..header_bytes]) != 0 {
            return None;
        }
        Some(Self {
            source: Ipv4Addr::from(*header[12..].first_chunk::<4>()?).into(),
            destination: Ipv4Addr::from(*header[16..].first_chunk::<4>()?).into(),
            protocol: header[9],
            hop_limit: header[8],
            payload,
        })
    }

    /// Parses a packet of IPv6. `None` for one with extension headers, fragments among them.
    pub(crate) fn parse_v6(bytes: &'a [u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<IPV6_BYTES>()?;
        if header[0] >> 4 != 6 {
            return None;
        }
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        Some(Self {
            source: Ipv6Addr::from(*header[8..].first_chunk::<16>()?).into(),
            destination: Ipv6Addr::from(*header[24..].first_chunk::<16>()?).into(),
            protocol: header[6],
            hop_limit: header[7],
            payload: rest.get(..length)?,
        })
    }

    /// Whether the checksum over the payload and the addresses is right.
    pub(crate) fn has_right_checksum(&self) -> bool {
        let length = self.payload.len();
        let pseudo = pseudo_sum(self.source, self.destination, self.protocol, length);
        checksum(pseudo, self.payload) == 0
    }
}

/// Bytes of an IP header of this family.
pub(crate) fn header_bytes(ip: IpAddr) -> usize {
    if ip.is_ipv6() { IPV6_BYTES } else { IPV4_BYTES }
}

/// Writes the header of a packet whose payload has `length` bytes; returns the header's length. `hop_limit` is 255 for neighbours.
pub(crate) fn write_header(
    to: &mut [u8],
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    hop_limit: u8,
    length: usize,
) -> usize {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let total = ((IPV4_BYTES + length) as u16).to_be_bytes();
            // Not to be fragmented, so it needs no number (RFC 6864).
            to[..12].copy_from_slice(&[
                0x45, 0, total[0], total[1], 0, 0, 0x40, 0, hop_limit, protocol, 0, 0,
            ]);
            to[12..16].copy_from_slice(&source.octets());
            to[16..20].copy_from_slice(&destination.octets());
            let sum = checksum(0, &to[..IPV4_BYTES]).to_be_bytes();
            to[10..12].copy_from_slice(&sum);
            IPV4_BYTES
        }
        (source, destination) => {
            let length = (length as u16).to_be_bytes();
            to[..8].copy_from_slice(&[0x60, 0, 0, 0, length[0], length[1], protocol, hop_limit]);
            to[8..24].copy_from_slice(&octets_v6(source));
            to[24..40].copy_from_slice(&octets_v6(destination));
            IPV6_BYTES
        }
    }
}

fn octets_v6(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V6(ip) => ip.octets(),
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
    }
}

/// The sum of the pseudo-header of TCP, UDP and ICMPv6.
pub(crate) fn pseudo_sum(source: IpAddr, destination: IpAddr, protocol: u8, length: usize) -> u64 {
    let addresses = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            u64::from(source.to_bits()) + u64::from(destination.to_bits())
        }
        (source, destination) => {
            let words = [octets_v6(source), octets_v6(destination)];
            words.iter().map(|octets| sum(octets)).sum()
        }
    };
    addresses + u64::from(protocol) + length as u64
}

/// The sum of 16-bit words, folded no further than 64 bits.
fn sum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(4);
    let mut total = 0u64;
    for word in &mut words {
        if let Some(word) = word.first_chunk() {
            total += u64::from(u32::from_be_bytes(*word));
        }
    }
    let mut last = [0; 4];
    let rest = words.remainder();
    last[..rest.len()].copy_from_slice(rest);
    total + u64::from(u32::from_be_bytes(last))
}

/// The internet checksum (RFC 1071) over bytes, begun with the sum of a pseudo-header: 0 over bytes with a right one.
pub(crate) fn checksum(begun: u64, bytes: &[u8]) -> u16 {
    let mut total = begun + sum(bytes);
    while total > 0xFFFF {
        total = (total >> 16) + (total & 0xFFFF);
    }
    !(total as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(bytes: &[u8], is_v6: bool) -> IpPacket<'_> {
        let packet = if is_v6 {
            IpPacket::parse_v6(bytes)
        } else {
            IpPacket::parse_v4(bytes)
        };
        packet.expect("whole")
    }

    proptest! {
        #[test]
        fn a_packet_is_read_as_it_was_written_and_a_flipped_bit_is_found(
            payload in prop::collection::vec(any::<u8>(), 8..200), is_v6: bool, flip in 0..1600usize
        ) {
            let [source, destination]: [IpAddr; 2] = if is_v6 {
                ["fd00::1".parse().expect("an address"), "fd00::2".parse().expect("an address")]
            } else {
                [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()]
            };
            let mut bytes = [0; 300];
            let length = write_header(&mut bytes, source, destination, PROTOCOL_TCP, 64, payload.len());
            bytes[length..length + payload.len()].copy_from_slice(&payload);
            bytes[length + 6..length + 8].fill(0);
            let pseudo = pseudo_sum(source, destination, PROTOCOL_TCP, payload.len());
            let sum = checksum(pseudo, &bytes[length..length + payload.len()]);
            bytes[length + 6..length + 8].copy_from_slice(&sum.to_be_bytes());
            let all = length + payload.len();
            let packet = parsed(&bytes[..all], is_v6);
            prop_assert_eq!((packet.source, packet.destination), (source, destination));
            prop_assert!(packet.has_right_checksum());
            let bit = length * 8 + flip % (payload.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!parsed(&bytes[..all], is_v6).has_right_checksum());
        }
    }
}
