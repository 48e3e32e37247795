//! Neighbour discovery (RFC 4861) by hand: a stack's answers to messages whose options are not those that it sends itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use headway_rings::lane::{LANE_BYTES, LaneEnds, MOST_PACKET_BYTES, Taken};
use headway_rings::mapping::SharedMapping;
use headway_stack::{NetStack, OsThreads, StackConfig, UdpSocket};

const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 9, 1];
/// The address from which the peer's frames come, and the one that its options tell.
const FRAME_MAC: [u8; 6] = [2, 0, 0, 0, 9, 2];
const TOLD_MAC: [u8; 6] = [2, 0, 0, 0, 9, 3];
const ALL_NODES_MAC: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];
const OWN: Ipv6Addr = Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0xFD00, 0, 0, 0, 0, 0, 0, 2);
const GROUP: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 1, 0xFF00, 1);
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xFF02, 0, 0, 0, 0, 0, 0, 1);

const NONCE: [u8; 8] = [14, 1, 1, 2, 3, 4, 5, 6];
const SOURCE: [u8; 8] = [1, 1, 2, 0, 0, 0, 9, 3];
const ENDLESS: [u8; 8] = [14, 0, 1, 2, 3, 4, 5, 6];

struct Wire {
    network: LaneEnds,
    stack: Arc<NetStack<OsThreads>>,
}

impl Wire {
    fn new() -> Self {
        let memory = Arc::new(SharedMapping::anonymous(LANE_BYTES).expect("memory"));
        let network = LaneEnds::of_plane(&memory, 0).expect("it fits");
        let lane = LaneEnds::of_application(&memory, 0).expect("it fits");
        let mut config = StackConfig::new(OWN_MAC, Ipv4Addr::new(10, 0, 0, 1), 24, [7, 8]);
        config.ip6 = Some(OWN);
        let stack = NetStack::new(&config, vec![lane], OsThreads);
        Self { network, stack }
    }

    /// The frames that the stack sends when this message comes.
    fn answers(&mut self, source: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> Vec<Vec<u8>> {
        let sent = self.network.sender.send(&frame(source, to, message));
        assert_eq!(sent, Ok(true));
        self.stack.poll();
        self.sent()
    }

    fn sent(&mut self) -> Vec<Vec<u8>> {
        let (mut buffer, mut frames) = ([0; MOST_PACKET_BYTES], Vec::new());
        while let Ok(Taken::Packet(length)) = self.network.receiver.receive(&mut buffer) {
            frames.push(buffer[..length].to_vec());
        }
        frames
    }

    /// Destinations in Ethernet and IP, and the flags, of the advertisement that answers a solicitation with these options.
    fn advertised(
        &mut self,
        source: Ipv6Addr,
        options: &[[u8; 8]],
    ) -> Option<([u8; 6], Ipv6Addr, u8)> {
        let message = message(135, 0, OWN, &options.concat());
        let frames = self.answers(source, GROUP, &message);
        let frame = frames.first()?;
        assert_eq!((frame[54], frames.len()), (136, 1));
        let ip: [u8; 16] = frame[38..54].try_into().expect("16 bytes");
        let mac = frame[..6].try_into().expect("6 bytes");
        Some((mac, ip.into(), frame[58]))
    }
}

fn message(kind: u8, flags: u8, target: Ipv6Addr, options: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0, flags, 0, 0, 0];
    message.extend(target.octets());
    message.extend(options);
    message
}

fn frame(source: Ipv6Addr, to: Ipv6Addr, message: &[u8]) -> Vec<u8> {
    let mut sum = 58 + message.len() as u64;
    let octets = [&source.octets()[..], &to.octets()[..], message].concat();
    for word in octets.chunks(2) {
        sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
    }
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    let mut frame = [&OWN_MAC[..], &FRAME_MAC, &[0x86, 0xDD, 0x60, 0, 0, 0, 0]].concat();
    frame.extend([message.len() as u8, 58, 255]);
    frame.extend(&octets);
    frame[56..58].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    frame
}

#[test]
fn a_solicitation_is_answered_whatever_its_options() {
    let mut wire = Wire::new();
    let told = Some((TOLD_MAC, PEER, 0x60));
    let untold = Some((FRAME_MAC, PEER, 0x60));
    assert_eq!(wire.advertised(PEER, &[SOURCE]), told);
    assert_eq!(wire.advertised(PEER, &[NONCE, SOURCE]), told);
    assert_eq!(wire.advertised(PEER, &[NONCE]), untold);
    assert_eq!(wire.advertised(PEER, &[]), untold);
}

#[test]
fn a_solicitation_with_an_option_of_no_length_is_dropped() {
    let mut wire = Wire::new();
    assert_eq!(wire.advertised(PEER, &[ENDLESS]), None);
    assert_eq!(wire.advertised(PEER, &[SOURCE, ENDLESS]), None);
    let message = message(135, 0, OWN, &SOURCE[..6]);
    assert!(wire.answers(PEER, GROUP, &message).is_empty(), "cut off");
    assert_eq!(wire.stack.counts().ignored, 3);
}

#[test]
fn a_host_that_would_take_the_address_hears_that_it_is_taken() {
    let mut wire = Wire::new();
    let nobody = Ipv6Addr::UNSPECIFIED;
    let to_all = Some((ALL_NODES_MAC, ALL_NODES, 0x20));
    assert_eq!(wire.advertised(nobody, &[]), to_all);
    assert_eq!(wire.advertised(nobody, &[NONCE]), to_all);
    assert_eq!(wire.advertised(nobody, &[SOURCE]), None);
}

/// The destination of the datagram that waits for an advertisement, once one with these flags and options came.
fn released(to: Ipv6Addr, flags: u8, options: &[u8]) -> Option<[u8; 6]> {
    let mut wire = Wire::new();
    let socket = UdpSocket::bind(&wire.stack, 0).expect("a port");
    let peer = SocketAddr::new(IpAddr::V6(PEER), 9);
    socket.send_to(b"x", peer).expect("it waits");
    assert_eq!(wire.sent().len(), 1, "the solicitation");
    let frames = wire.answers(PEER, to, &message(136, flags, PEER, options));
    frames.first().map(|frame| {
        let mac: [u8; 6] = frame[..6].try_into().expect("6 bytes");
        mac
    })
}

#[test]
fn an_advertisement_tells_an_address_behind_other_options_and_an_answer_without() {
    let target = [2, 1, 2, 0, 0, 0, 9, 3];
    let behind = [NONCE, target].concat();
    assert_eq!(released(OWN, 0x60, &target), Some(TOLD_MAC));
    assert_eq!(released(OWN, 0x60, &behind), Some(TOLD_MAC));
    assert_eq!(released(OWN, 0x40, &[]), Some(FRAME_MAC));
    assert_eq!(released(ALL_NODES, 0x20, &[]), None, "nobody asked");
    assert_eq!(released(OWN, 0x60, &ENDLESS), None);
}
