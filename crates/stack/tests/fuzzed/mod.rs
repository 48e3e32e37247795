//! What must hold for any bytes. The fuzz targets and the replay of their corpora share it.

use headway_rings::lane::{LANE_BYTES, LaneEnds, MOST_PACKET_BYTES, Taken};
use headway_rings::mapping::SharedMapping;
use headway_stack::tcp::segment::{MOST_HEADER_BYTES, SackBlocks, SegmentHeader};
use headway_stack::{NetStack, OsThreads, StackConfig, TcpListener};
use std::net::Ipv4Addr;
use std::sync::Arc;

const OWN: [u8; 4] = [10, 0, 0, 1];
const PEER: [u8; 4] = [10, 0, 0, 2];
const MAC: [u8; 6] = [2, 0, 0, 0, 9, 1];

/// Segments, each behind a byte with its length in words: their headers are written as they were read; a stack takes them, answers, and ends no other way.
pub(crate) fn segments(data: &[u8]) {
    let memory = Arc::new(SharedMapping::anonymous(LANE_BYTES).expect("memory"));
    let mut network = LaneEnds::of_plane(&memory, 0).expect("it fits");
    let lane = LaneEnds::of_application(&memory, 0).expect("it fits");
    let config = StackConfig::new(MAC, Ipv4Addr::from(OWN), 24, [7, 8]);
    let stack = NetStack::new(&config, vec![lane], OsThreads);
    let listener = TcpListener::bind(&stack, 80, 4).expect("the port");
    let mut rest = data;
    let mut expected = 0u32;
    let mut count = 0;
    while let Some((words, after)) = rest.split_first()
        && count < 64
    {
        let (segment, after) = after.split_at(after.len().min(usize::from(*words) * 4));
        rest = after;
        count += 1;
        header(segment);
        let mut segment = segment.to_vec();
        aim(&mut segment, expected);
        let _ = network.sender.send(&frame(&segment));
        stack.poll();
        let mut buffer = [0; MOST_PACKET_BYTES];
        while let Ok(Taken::Packet(length)) = network.receiver.receive(&mut buffer) {
            if let Some(sequence) = answered(&buffer[..length]) {
                expected = sequence.wrapping_add(1);
            }
            resolve(&mut network, &buffer[..length]);
        }
        stack.poll();
    }
    let waker = std::task::Waker::noop();
    while let Some(stream) = listener.accept_or_wait(waker) {
        let _ = stream.receive_or_wait(&mut [0; 100], waker);
        let _ = stream.send_or_wait(&[7; 100], waker);
    }
    assert!(stack.connections().0 <= 64);
}

/// A header is written as it was read.
fn header(segment: &[u8]) {
    let Some((mut header, _)) = SegmentHeader::parse(segment) else {
        return;
    };
    // More than one header has room for.
    if header.timestamps.is_some() || header.mss.is_some() || header.window_scale.is_some() {
        header.sack = SackBlocks::default();
    }
    let mut bytes = [0; MOST_HEADER_BYTES];
    let length = header.write(&mut bytes);
    let read = SegmentHeader::parse(&bytes[..length]).expect("it was written");
    assert_eq!(read.0, header);
}

/// Sends a segment to the port that listens, and with the number that the stack expects if its acknowledgement is 0: a fuzzer does not guess it.
fn aim(segment: &mut [u8], expected: u32) {
    if segment.len() >= 20 {
        segment[2..4].copy_from_slice(&80u16.to_be_bytes());
        if segment[8..12] == [0; 4] {
            segment[8..12].copy_from_slice(&expected.to_be_bytes());
        }
    }
}

fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks(2);
    words
        .map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low)))
        .sum()
}

fn fold(sum: u32) -> [u8; 2] {
    let sum = (sum & 0xFFFF) + (sum >> 16);
    (!((sum & 0xFFFF) + (sum >> 16)) as u16).to_be_bytes()
}

/// A frame with right checksums.
fn frame(segment: &[u8]) -> Vec<u8> {
    let mut frame = MAC.to_vec();
    frame.extend([2, 0, 0, 0, 9, 2, 8, 0]);
    let total = ((20 + segment.len()) as u16).to_be_bytes();
    let mut ip = vec![0x45, 0, total[0], total[1], 0, 0, 0x40, 0, 64, 6, 0, 0];
    ip.extend(PEER);
    ip.extend(OWN);
    let checksum = fold(sum(&ip));
    ip[10..12].copy_from_slice(&checksum);
    let mut segment = segment.to_vec();
    if segment.len() >= 20 {
        segment[16..18].fill(0);
        let pseudo = sum(&ip[12..20]) + 6 + segment.len() as u32;
        let checksum = fold(pseudo + sum(&segment));
        segment[16..18].copy_from_slice(&checksum);
    }
    frame.extend(ip);
    frame.extend(segment);
    frame
}

/// The sequence number of a segment of the stack's.
fn answered(frame: &[u8]) -> Option<u32> {
    if frame.get(12..14)? != [8, 0] {
        return None;
    }
    SegmentHeader::parse(frame.get(34..)?).map(|(header, _)| header.sequence)
}

/// Answers a request for the peer's Ethernet address.
fn resolve(network: &mut LaneEnds, frame: &[u8]) {
    if frame.get(12..14) != Some(&[8, 6]) {
        return;
    }
    let mut reply = MAC.to_vec();
    reply.extend([
        2, 0, 0, 0, 9, 2, 8, 6, 0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 9, 2,
    ]);
    reply.extend(PEER);
    reply.extend(MAC);
    reply.extend(OWN);
    let _ = network.sender.send(&reply);
}
