//! Answers to neighbours, to pings, and to datagrams for a port that nobody has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::OwnAddresses;
use super::discovery::{
    ADVERTISEMENT, ARP_BYTES, ARP_REPLY, ARP_REQUEST, NEIGHBOUR_HOPS, SOLICITATION,
    neighbour_message, write_arp, write_neighbour_frame,
};
use super::egress::{Egress, HOP_LIMIT};
use super::neighbours::Neighbours;
use super::packet::{
    ETHERNET_BYTES, IPV6_BYTES, IpPacket, Mac, PROTOCOL_ICMP, PROTOCOL_ICMPV6, checksum,
    write_header,
};

const ECHO_REPLY: u8 = 0;
const UNREACHABLE: u8 = 3;
const PORT_UNREACHABLE: u8 = 3;
const ECHO_REQUEST: u8 = 8;
const UNREACHABLE_V6: u8 = 1;
const PORT_UNREACHABLE_V6: u8 = 4;
const ECHO_REQUEST_V6: u8 = 128;
const ECHO_REPLY_V6: u8 = 129;
/// The options with an Ethernet address: a solicitation's sender's, an advertisement's target's.
const SOURCE_ADDRESS: u8 = 1;
const TARGET_ADDRESS: u8 = 2;
/// The flags of an advertisement: it answers a solicitation; it is to be preferred to what was known.
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_MAC: Mac = [0x33, 0x33, 0, 0, 0, 1];

/// Takes an ARP packet: learns, and answers a request. Returns `None` for one that is none.
pub(crate) fn on_arp<'a>(
    content: &[u8],
    own: &OwnAddresses,
    neighbours: &Neighbours,
    now_ns: u64,
    egress: impl FnOnce() -> Egress<'a>,
) -> Option<()> {
    let arp: &[u8; ARP_BYTES] = content.first_chunk()?;
    if arp[..7] != [0, 1, 8, 0, 6, 4, 0] {
        return None;
    }
    let sender: Mac = *arp[8..].first_chunk()?;
    let sender_ip = Ipv4Addr::from(*arp[14..].first_chunk::<4>()?);
    let target_ip = Ipv4Addr::from(*arp[24..].first_chunk::<4>()?);
    let is_for_us = target_ip == own.ip && sender_ip != own.ip;
    let is_new = is_for_us && own.is_neighbour(sender_ip.into());
    let frames = neighbours.learn(sender_ip.into(), sender, is_new, now_ns);
    let is_request = arp[7] == ARP_REQUEST && is_for_us;
    if frames.is_empty() && !is_request {
        return Some(());
    }
    let mut egress = egress();
    if is_request {
        let mut reply = [0; ETHERNET_BYTES + ARP_BYTES];
        write_arp(&mut reply, own, ARP_REPLY, sender, sender_ip);
        egress.send_frame(&reply);
    }
    for frame in frames {
        egress.send_frame(&frame);
    }
    Some(())
}

/// Takes an ICMP packet: answers pings.
pub(crate) fn on_icmp<'a>(
    packet: &IpPacket<'_>,
    egress: impl FnOnce() -> Egress<'a>,
) -> Option<()> {
    let (kind, rest) = packet.payload.split_first()?;
    if *kind == ECHO_REQUEST && checksum(0, packet.payload) == 0 {
        let (from, to) = (packet.destination, packet.source);
        egress().send_packet(from, to, PROTOCOL_ICMP, HOP_LIMIT, |bytes, _| {
            write_icmp(bytes, ECHO_REPLY, rest, 0)
        });
    }
    Some(())
}

/// Writes an ICMP message: its kind, and the rest with a checksum of its own; returns its length.
fn write_icmp(to: &mut [u8], kind: u8, rest: &[u8], pseudo: u64) -> usize {
    let length = 1 + rest.len();
    to[0] = kind;
    to[1..length].copy_from_slice(rest);
    to[2..4].fill(0);
    let pseudo = if pseudo == 0 {
        0
    } else {
        pseudo + length as u64
    };
    let sum = checksum(pseudo, &to[..length]);
    to[2..4].copy_from_slice(&sum.to_be_bytes());
    length
}

/// Takes a packet of ICMPv6 that came from an Ethernet address: answers pings and solicitations, learns from both messages of neighbours.
pub(crate) fn on_icmp_v6<'a>(
    packet: &IpPacket<'_>,
    from: Mac,
    own: &OwnAddresses,
    neighbours: &Neighbours,
    now_ns: u64,
    egress: impl FnOnce() -> Egress<'a>,
) -> Option<()> {
    if !packet.has_right_checksum() {
        return None;
    }
    let (kind, rest) = packet.payload.split_first()?;
    let own_ip = own.ip6?;
    if *kind == ECHO_REQUEST_V6 && packet.destination == own_ip {
        let (from, to) = (packet.destination, packet.source);
        egress().send_packet(from, to, PROTOCOL_ICMPV6, HOP_LIMIT, |bytes, pseudo| {
            write_icmp(bytes, ECHO_REPLY_V6, rest, pseudo)
        });
        return Some(());
    }
    let is_of_neighbours = matches!(*kind, SOLICITATION | ADVERTISEMENT);
    if !is_of_neighbours || packet.hop_limit != NEIGHBOUR_HOPS {
        return Some(());
    }
    on_neighbour_message(packet, from, (own, own_ip), neighbours, now_ns, egress)
}

/// Takes a solicitation or an advertisement (RFC 4861). `None` for one that must be dropped.
fn on_neighbour_message<'a>(
    packet: &IpPacket<'_>,
    from: Mac,
    (own, own_ip): (&OwnAddresses, Ipv6Addr),
    neighbours: &Neighbours,
    now_ns: u64,
    egress: impl FnOnce() -> Egress<'a>,
) -> Option<()> {
    let target = Ipv6Addr::from(*packet.payload.get(8..)?.first_chunk::<16>()?);
    let options = packet.payload.get(24..)?;
    if packet.payload[0] == ADVERTISEMENT {
        let told = option_address(options, TARGET_ADDRESS).ok()?;
        // The option may lack only where the answer comes to this host alone (4.4).
        let is_answer = packet.payload[4] & SOLICITED != 0 && packet.destination == own_ip;
        let Some(mac) = told.or(is_answer.then_some(from)) else {
            return Some(());
        };
        let frames = neighbours.learn(target.into(), mac, false, now_ns);
        if !frames.is_empty() {
            let mut egress = egress();
            frames.iter().for_each(|frame| egress.send_frame(frame));
        }
        return Some(());
    }
    let IpAddr::V6(source) = packet.source else {
        return None;
    };
    let told = option_address(options, SOURCE_ADDRESS).ok()?;
    // A host without an address tells none of its link layer (7.1.1).
    if source.is_multicast() || source.is_unspecified() && told.is_some() {
        return None;
    }
    let is_for_us = target == own_ip;
    let is_new = is_for_us && own.is_neighbour(source.into());
    let frames = told.map(|mac| neighbours.learn(source.into(), mac, is_new, now_ns));
    let frames = frames.unwrap_or_default();
    if frames.is_empty() && !is_for_us {
        return Some(());
    }
    let mut egress = egress();
    if is_for_us {
        advertise(own, own_ip, source, told.unwrap_or(from), &mut egress);
    }
    frames.iter().for_each(|frame| egress.send_frame(frame));
    Some(())
}

/// Answers a solicitation for the own address. A host that asks whether the address is free has none yet, so all hosts get the answer (RFC 4861, 7.2.4).
fn advertise(
    own: &OwnAddresses,
    own_ip: Ipv6Addr,
    source: Ipv6Addr,
    mac: Mac,
    egress: &mut Egress<'_>,
) {
    let (to, mac, flags) = if source.is_unspecified() {
        (ALL_NODES, ALL_NODES_MAC, OVERRIDE)
    } else {
        (source, mac, SOLICITED | OVERRIDE)
    };
    let message = neighbour_message(ADVERTISEMENT, flags, own_ip, TARGET_ADDRESS, own.mac);
    let mut frame = [0; ETHERNET_BYTES + IPV6_BYTES + 32];
    write_neighbour_frame(&mut frame, (mac, own.mac), own_ip, to, &message);
    egress.send_frame(&frame);
}

/// Options that a host must not take: of no length, or longer than the message (RFC 4861, 4.6).
#[derive(Debug, PartialEq, Eq)]
struct BadOptions;

/// The Ethernet address in the first option of this kind, wherever it stands among the others.
fn option_address(mut options: &[u8], kind: u8) -> Result<Option<Mac>, BadOptions> {
    let mut found = None;
    while let [option, units, ..] = *options {
        let (content, rest) = match usize::from(units) * 8 {
            0 => return Err(BadOptions),
            bytes => options.split_at_checked(bytes).ok_or(BadOptions)?,
        };
        if let (8, [_, _, mac @ ..]) = (content.len(), content)
            && option == kind
            && found.is_none()
        {
            found = mac.first_chunk().copied();
        }
        options = rest;
    }
    if options.is_empty() {
        Ok(found)
    } else {
        Err(BadOptions)
    }
}

/// Tells the sender of a datagram that nobody has its port.
pub(crate) fn refuse_datagram(packet: &IpPacket<'_>, egress: &mut Egress<'_>) {
    let (from, to) = (packet.destination, packet.source);
    let is_v6 = from.is_ipv6();
    let (protocol, kind, code) = if is_v6 {
        (PROTOCOL_ICMPV6, UNREACHABLE_V6, PORT_UNREACHABLE_V6)
    } else {
        (PROTOCOL_ICMP, UNREACHABLE, PORT_UNREACHABLE)
    };
    // The packet's header, and its ports.
    let mut rest = [0; 7 + IPV6_BYTES + 8];
    rest[0] = code;
    let length = packet.payload.len();
    let at = 7 + write_header(
        &mut rest[7..],
        to,
        from,
        packet.protocol,
        packet.hop_limit,
        length,
    );
    let ports = &packet.payload[..length.min(8)];
    rest[at..at + ports.len()].copy_from_slice(ports);
    let rest = &rest[..at + ports.len()];
    egress.send_packet(from, to, protocol, HOP_LIMIT, |bytes, pseudo| {
        write_icmp(bytes, kind, rest, if is_v6 { pseudo } else { 0 })
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_the_own_network_are_learnt() {
        let own = OwnAddresses {
            mac: [2; 6],
            ip: Ipv4Addr::new(10, 0, 0, 1),
            prefix: 24,
            gateway: None,
            ip6: None,
            prefix6: 64,
            gateway6: None,
            mtu: 1500,
        };
        let neighbours = Neighbours::default();
        let learns = |ip: [u8; 4]| {
            let mut arp = [0, 1, 8, 0, 6, 4, 0, ARP_REPLY].to_vec();
            arp.extend([2, 0, 0, 0, 0, 9]);
            arp.extend(ip);
            arp.extend(own.mac);
            arp.extend(own.ip.octets());
            let none = || -> Egress<'static> { panic!("nothing is to be sent") };
            on_arp(&arp, &own, &neighbours, 1, none).expect("it is ARP");
            neighbours
                .look_up(Ipv4Addr::from(ip).into(), 1)
                .mac
                .is_some()
        };
        assert!(learns([10, 0, 0, 2]));
        assert!(!learns([10, 0, 1, 2]));
    }
}
