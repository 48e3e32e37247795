//! The messages by which neighbours find each other: ARP (RFC 826) and neighbour discovery (RFC 4861).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::OwnAddresses;
use super::packet::{
    ETHERNET_BYTES, IPV6_BYTES, Mac, PROTOCOL_ICMPV6, TYPE_ARP, TYPE_IPV6, checksum, pseudo_sum,
    write_ethernet, write_header,
};

const BROADCAST: Mac = [0xFF; 6];
pub(crate) const ARP_BYTES: usize = 28;
pub(crate) const ARP_REQUEST: u8 = 1;
pub(crate) const ARP_REPLY: u8 = 2;
/// The hop limit of neighbours' messages: what comes from another network has less.
pub(crate) const NEIGHBOUR_HOPS: u8 = 255;
pub(crate) const SOLICITATION: u8 = 135;
pub(crate) const ADVERTISEMENT: u8 = 136;

/// Writes a frame with an ARP packet; its length.
pub(crate) fn write_arp(
    to: &mut [u8],
    own: &OwnAddresses,
    kind: u8,
    other: Mac,
    ip: Ipv4Addr,
) -> usize {
    let frame_to = if kind == ARP_REQUEST {
        BROADCAST
    } else {
        other
    };
    write_ethernet(to, frame_to, own.mac, TYPE_ARP);
    let arp = &mut to[ETHERNET_BYTES..ETHERNET_BYTES + ARP_BYTES];
    arp[..8].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, kind]);
    arp[8..14].copy_from_slice(&own.mac);
    arp[14..18].copy_from_slice(&own.ip.octets());
    arp[18..24].copy_from_slice(&other);
    arp[24..28].copy_from_slice(&ip.octets());
    ETHERNET_BYTES + ARP_BYTES
}

/// Writes a request for a neighbour's Ethernet address; its length.
pub(crate) fn write_request(to: &mut [u8], own: &OwnAddresses, ip: IpAddr) -> Option<usize> {
    match ip {
        IpAddr::V4(ip) => Some(write_arp(to, own, ARP_REQUEST, [0; 6], ip)),
        IpAddr::V6(target) => {
            let source = own.ip6?;
            let [.., a, b, c] = target.octets();
            let group = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 1, 0xFF00 | u16::from(a), 0).to_bits()
                | u128::from(u16::from_be_bytes([b, c]));
            let mac = [0x33, 0x33, 0xFF, a, b, c];
            let message = neighbour_message(SOLICITATION, 0, target, 1, own.mac);
            Some(write_neighbour_frame(
                to,
                (mac, own.mac),
                source,
                group.into(),
                &message,
            ))
        }
    }
}

/// A solicitation or an advertisement with an Ethernet address as its option.
pub(crate) fn neighbour_message(
    kind: u8,
    flags: u8,
    target: Ipv6Addr,
    option: u8,
    mac: Mac,
) -> [u8; 32] {
    let mut message = [0; 32];
    (message[0], message[4]) = (kind, flags);
    message[8..24].copy_from_slice(&target.octets());
    (message[24], message[25]) = (option, 1);
    message[26..32].copy_from_slice(&mac);
    message
}

/// Writes a frame with a message of neighbour discovery; its length.
pub(crate) fn write_neighbour_frame(
    to: &mut [u8],
    (mac_to, mac_from): (Mac, Mac),
    source: Ipv6Addr,
    destination: Ipv6Addr,
    message: &[u8; 32],
) -> usize {
    write_ethernet(to, mac_to, mac_from, TYPE_IPV6);
    let (source, destination) = (source.into(), destination.into());
    let header = &mut to[ETHERNET_BYTES..];
    write_header(
        header,
        source,
        destination,
        PROTOCOL_ICMPV6,
        NEIGHBOUR_HOPS,
        message.len(),
    );
    let start = ETHERNET_BYTES + IPV6_BYTES;
    let end = start + message.len();
    to[start..end].copy_from_slice(message);
    let pseudo = pseudo_sum(source, destination, PROTOCOL_ICMPV6, message.len());
    let sum = checksum(pseudo, &to[start..end]).to_be_bytes();
    to[start + 2..start + 4].copy_from_slice(&sum);
    end
}
