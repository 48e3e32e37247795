//! Frames that are nearly right: the program against a parser of its own kind, and the switch in user space behind it.

use crate::addresses::{CLIENTS_SIDE, Family, ifindex_of};
use crate::agree::{objects_in_namespaces, packets, servers_side};
use crate::common::*;
use crate::{OWN_MAC, PORT, Planes, SERVERS, Sent, leaves_by};
use headway_net::header::{Flag, Header, Status};
use headway_policy::rack::{Cloning, Overflow};
use headway_rack::ReceivedPacket;
use headway_xdp::RunPacket;
use rand_core::Rng as _;
use rand_pcg::Pcg64Mcg;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

/// What the program does with a frame before it reads the request.
#[derive(PartialEq, Eq, Debug)]
enum Parsed {
    /// It is not for the switch.
    Passed,
    Fragment,
    Options,
    Truncated,
    TooLong,
    /// A datagram to the switch, from there, and where its payload is.
    Datagram(SocketAddr, Range<usize>),
}

/// Frames that the same switches see. A CPU of the kernel has half of 65 536 slots where there are two, a quarter where there are four; its requests, which nobody answers here, keep theirs.
const FRAMES_A_SWITCH: u64 = 10_000;

/// The longest payload.
const MOST_PAYLOAD: usize = 2000;

fn number(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

/// Parses a frame as RFC 791, RFC 8200 and IEEE 802.1Q describe it. `own` is the address of the switch.
fn parse(bytes: &[u8], own: IpAddr) -> Parsed {
    let Some(kind) = bytes.get(12..14) else {
        return Parsed::Passed;
    };
    if bytes[..6] != OWN_MAC {
        return Parsed::Passed;
    }
    let (mut kind, mut ip) = ([kind[0], kind[1]], 14);
    for _ in 0..2 {
        if kind == [0x81, 0] || kind == [0x88, 0xa8] {
            let Some(tag) = bytes.get(ip..ip + 4) else {
                return Parsed::Passed;
            };
            kind = [tag[2], tag[3]];
            ip += 4;
        }
    }
    match (kind, own) {
        ([0x08, 0x00], IpAddr::V4(own)) => {
            let Some(header) = bytes.get(ip..ip + 20) else {
                return Parsed::Passed;
            };
            if header[0] >> 4 != 4 || header[9] != 17 || header[16..20] != own.octets() {
                return Parsed::Passed;
            }
            if header[8] == 0 || matches!(header[12], 0 | 127 | 224..) {
                return Parsed::Passed;
            }
            if header[0] & 15 != 5 {
                return Parsed::Options;
            }
            if number(header, 6) & 0x3fff != 0 {
                return Parsed::Fragment;
            }
            let from: [u8; 4] = header[12..16].try_into().expect("four bytes");
            udp(
                bytes,
                ip + 20,
                number(header, 2).checked_sub(20),
                from.into(),
            )
        }
        ([0x86, 0xdd], IpAddr::V6(own)) => {
            let Some(header) = bytes.get(ip..ip + 40) else {
                return Parsed::Passed;
            };
            if header[0] >> 4 != 6 || header[24..40] != own.octets() {
                return Parsed::Passed;
            }
            let from: [u8; 16] = header[8..24].try_into().expect("sixteen bytes");
            let source = std::net::Ipv6Addr::from(from);
            let is_nobody =
                source.is_unspecified() || source.is_loopback() || source.is_multicast();
            if header[7] == 0 || is_nobody {
                return Parsed::Passed;
            }
            match header[6] {
                17 => udp(bytes, ip + 40, Some(number(header, 4)), from.into()),
                44 => Parsed::Fragment,
                0 | 43 | 60 => Parsed::Options,
                _ => Parsed::Passed,
            }
        }
        _ => Parsed::Passed,
    }
}

/// `room`: bytes of the packet behind IP's header, by that header; none if it is not even that long.
fn udp(bytes: &[u8], at: usize, room: Option<usize>, from: IpAddr) -> Parsed {
    let Some(header) = bytes.get(at..at + 8) else {
        return Parsed::Truncated;
    };
    if number(header, 2) != usize::from(PORT) || number(header, 0) == 0 {
        return Parsed::Passed;
    }
    let length = number(header, 4);
    let is_whole = room.is_some_and(|room| length <= room) && at + length <= bytes.len();
    if !is_whole || length < 18 {
        return Parsed::Truncated;
    }
    if length > 8 + MOST_PAYLOAD {
        return Parsed::TooLong;
    }
    let from = SocketAddr::new(from, number(header, 0) as u16);
    Parsed::Datagram(from, at + 8..at + length)
}

impl Planes {
    /// A client's request, or a packet of a server about a request that nobody knows.
    fn right_frame(&mut self) -> (u32, Frame) {
        let is_request = self.below(4) > 0;
        let flags = [Flag::response(Status::Ok), Flag::REQUEST.with_bounced(true)];
        let flag = flags[self.below(2) as usize];
        let header = Header {
            class: self.below(6) as u8,
            flag: if is_request { Flag::REQUEST } else { flag },
            index: self.rng.next_u32(),
            time_ns: self.rng.next_u32(),
        };
        let mut frame = self.client_frame(header);
        if is_request {
            return (CLIENTS_SIDE, frame);
        }
        let server = self.below(SERVERS as u32) as usize;
        frame.from = self.family.server(server);
        (ifindex_of(server), frame)
    }

    /// Changes up to four things of a frame, most often in its headers.
    fn nearly(&mut self, frame: &Frame) -> Vec<u8> {
        let mut bytes = frame.bytes();
        for _ in 0..self.below(5) {
            let headers = (frame.udp_at() + 18).min(bytes.len());
            let at = self.below(headers as u32) as usize;
            let lengths = [frame.ip_at() + 2, frame.ip_at() + 4, frame.udp_at() + 4];
            match self.below(6) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.rng.next_u32() as u8,
                2 => {
                    let kept = bytes.len().saturating_sub(self.below(60) as usize);
                    bytes.truncate(kept.max(14));
                }
                3 => bytes.resize(bytes.len() + self.below(40) as usize, 0xaa),
                4 => {
                    let at = lengths[self.below(3) as usize];
                    let change = self.below(128) as u16;
                    if let Some(place) = bytes.get_mut(at..at + 2) {
                        let value = u16::from_be_bytes([place[0], place[1]]);
                        let near = value.wrapping_add(change).wrapping_sub(64);
                        place.copy_from_slice(&near.to_be_bytes());
                    }
                }
                _ => bytes.resize(1900 + self.below(300) as usize, 0x5a),
            }
        }
        bytes
    }

    /// Shows both switches a frame, and compares its fate.
    fn frame_has_one_fate(&mut self, repeats: &mut Repeats) {
        let (by, frame) = self.right_frame();
        let bytes = self.nearly(&frame);
        repeats.frame = Some((by, bytes.clone()));
        let before = self.xdp.registers().expect("registers").counts;
        let ran = self.xdp_run(by, &bytes);
        let after = self.xdp.registers().expect("registers").counts;
        let changes = before.named().into_iter().zip(after.named());
        let changed = changes.filter(|(was, is)| was.1 != is.1);
        let changed: Vec<_> = changed.map(|(_, (name, _))| name).collect();
        let is_left = |action, counts: &[&str]| {
            assert_eq!((ran.action, &changed[..]), (action, counts));
            assert_eq!(ran.bytes, bytes, "as it came");
        };
        match parse(&bytes, self.family.own().ip()) {
            Parsed::Passed => is_left(PASS, &[]),
            Parsed::Fragment => is_left(PASS, &["fragment"]),
            Parsed::Options => is_left(PASS, &["options"]),
            Parsed::Truncated => is_left(DROP, &["truncated"]),
            Parsed::TooLong => is_left(DROP, &["too_long"]),
            Parsed::Datagram(from, payload) => {
                let sent = self.datagram_step(by, from, &bytes[payload.clone()]);
                match &sent[..] {
                    [] => assert_eq!((ran.action, ran.bytes), (DROP, bytes)),
                    [(to, datagram)] => self.is_sent(by, &ran, (*to, datagram), &payload),
                    more => panic!("{more:?}"),
                }
            }
        }
    }

    /// What the switch in user space sends for a datagram.
    fn datagram_step(
        &mut self,
        by: u32,
        from: SocketAddr,
        payload: &[u8],
    ) -> Vec<(SocketAddr, Vec<u8>)> {
        let mut sent = Sent::default();
        let packet = ReceivedPacket {
            interface: by,
            ..ReceivedPacket::of(from.into(), payload)
        };
        self.user.step(self.now_ns, packet, &mut sent);
        sent.0
    }

    /// Checks that the program sent the same datagram to the same server, under its own index.
    fn is_sent(
        &self,
        by: u32,
        ran: &RunPacket,
        (to, datagram): (SocketAddr, &[u8]),
        payload: &Range<usize>,
    ) {
        let server = (0..SERVERS).find(|&number| self.family.server(number) == to);
        let server = server.expect("a server");
        assert_eq!(ran.action, leaves_by(by, ifindex_of(server)));
        let mut got = ran.bytes[payload.clone()].to_vec();
        got[2..6].copy_from_slice(&datagram[2..6]);
        assert_eq!(got, datagram, "user space and XDP");
        let udp = payload.start - 8;
        assert_eq!(number(&ran.bytes, udp + 2), usize::from(to.port()));
        let is_there = match to.ip() {
            IpAddr::V4(ip) => ran.bytes[udp - 4..udp] == ip.octets(),
            IpAddr::V6(ip) => ran.bytes[udp - 16..udp] == ip.octets(),
        };
        assert!(is_there, "to {to}");
    }
}

/// Prints a frame, and the command that repeats it, if the test fails.
struct Repeats {
    seed: u64,
    /// By which interface it came.
    frame: Option<(u32, Vec<u8>)>,
}

impl Drop for Repeats {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (seed, frame) = (self.seed, &self.frame);
            println!("{frame:02x?}");
            println!(
                "HEADWAY_XDP_SEED={seed} HEADWAY_XDP_PACKETS=1 cargo test -p headway-xdp --test planes frames:: repeats it"
            );
        }
    }
}

fn asked_seed() -> u64 {
    let asked = std::env::var("HEADWAY_XDP_SEED").ok();
    asked.map_or(1, |text| text.parse().expect("HEADWAY_XDP_SEED: a number"))
}

fn any_frame_has_one_fate(test: &str, family: Family) {
    let Some(objects) = objects_in_namespaces(test) else {
        return;
    };
    servers_side();
    let first = asked_seed();
    let end = first + (packets() / 5).max(1);
    for first in (first..end).step_by(FRAMES_A_SWITCH as usize) {
        frames_have_one_fate(
            &objects.rack,
            family,
            first..end.min(first + FRAMES_A_SWITCH),
        );
    }
}

fn frames_have_one_fate(object: &[u8], family: Family, seeds: Range<u64>) {
    let excess = (Cloning::Off, Overflow::Off);
    let mut planes = Planes::new(object, family, excess, 18);
    let are_few = seeds.end - seeds.start < 1_000;
    for seed in seeds {
        // Each frame follows from its own seed.
        planes.rng = Pcg64Mcg::new(u128::from(seed) << 1 | 1);
        let mut repeats = Repeats { seed, frame: None };
        planes.frame_has_one_fate(&mut repeats);
    }
    let (user, kernel) = (
        *planes.user.counts(),
        planes.xdp.registers().expect("registers").counts,
    );
    assert_eq!(
        (
            user.requests,
            user.unexpected,
            user.spoofed,
            user.unknown_type
        ),
        (
            kernel.requests,
            kernel.unexpected,
            kernel.spoofed,
            kernel.unknown_type
        )
    );
    assert!(are_few || user.requests > 0 && kernel.truncated > 0);
}

/// Frames that the kernel would refuse too: to another Ethernet address than the interface's own, or from no host. None is answered, least of all from the
/// address that it was sent to.
fn strangers_frames_are_passed_on(test: &str, family: Family) {
    let Some(objects) = objects_in_namespaces(test) else {
        return;
    };
    servers_side();
    let excess = (Cloning::Off, Overflow::Off);
    let mut planes = Planes::new(&objects.rack, family, excess, 18);
    let header = Header {
        class: 0,
        flag: Flag::REQUEST,
        index: 7,
        time_ns: 0,
    };
    let frame = planes.client_frame(header);
    let (right, ip, udp) = (frame.bytes(), frame.ip_at(), frame.udp_at());
    assert_ne!(planes.xdp_run(CLIENTS_SIDE, &right).action, PASS);
    let mut wrong: Vec<(usize, Vec<u8>)> = vec![
        (0, vec![0xff; 6]),
        (0, vec![3, 0, 0, 0, 0, 1]),
        (0, vec![2, 0, 0, 0, 0, 2]),
        (udp, vec![0, 0]),
    ];
    if family == Family::Ip4 {
        wrong.push((ip + 8, vec![0]));
        let sources = [[0, 1, 2, 3], [127, 0, 0, 1], [224, 0, 0, 1], [255; 4]];
        wrong.extend(sources.map(|source| (ip + 12, source.to_vec())));
    } else {
        wrong.push((ip + 7, vec![0]));
        let sources = ["::", "::1", "ff02::1"].map(|text| text.parse().expect("an address"));
        let octets = sources.map(|source: std::net::Ipv6Addr| source.octets().to_vec());
        wrong.extend(octets.map(|source| (ip + 8, source)));
    }
    for (at, bytes) in wrong {
        let mut frame = right.clone();
        frame[at..at + bytes.len()].copy_from_slice(&bytes);
        let ran = planes.xdp_run(CLIENTS_SIDE, &frame);
        assert_eq!((ran.action, ran.bytes), (PASS, frame), "{bytes:?} at {at}");
    }
    let counts = planes.xdp.registers().expect("registers").counts;
    assert_eq!(counts.requests, 1);
}

#[test]
fn strangers_frames_of_ip4_are_passed_on() {
    strangers_frames_are_passed_on("strangers, IPv4", Family::Ip4);
}

#[test]
fn strangers_frames_of_ip6_are_passed_on() {
    strangers_frames_are_passed_on("strangers, IPv6", Family::Ip6);
}

#[test]
fn any_frame_of_ip4_has_one_fate() {
    any_frame_has_one_fate("any frame, IPv4", Family::Ip4);
}

#[test]
fn any_frame_of_ip6_has_one_fate() {
    any_frame_has_one_fate("any frame, IPv6", Family::Ip6);
}
