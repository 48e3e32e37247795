//! Packets that leave.

use std::net::IpAddr;
use std::sync::MutexGuard;

use super::OwnAddresses;
use super::discovery::write_request;
use super::neighbours::Neighbours;
use super::packet::{
    ETHERNET_BYTES, PROTOCOL_TCP, TYPE_IPV4, TYPE_IPV6, checksum, header_bytes, pseudo_sum,
    write_ethernet, write_header,
};
use crate::lanes::{LaneSender, Lanes};
use crate::tcp::flow::FlowKey;
use crate::tcp::segment::{MOST_HEADER_BYTES, SegmentHeader};
use crate::tcp::table::SegmentSink;

/// The hop limit of ordinary packets.
pub(crate) const HOP_LIMIT: u8 = 64;

/// The way out of a kthread: its lane, locked.
pub(crate) struct Egress<'a> {
    own: &'a OwnAddresses,
    neighbours: &'a Neighbours,
    lanes: &'a Lanes,
    lane: MutexGuard<'a, LaneSender>,
    now_ns: u64,
}

impl<'a> Egress<'a> {
    pub(crate) fn new(
        own: &'a OwnAddresses,
        neighbours: &'a Neighbours,
        lanes: &'a Lanes,
        kthread: usize,
        now_ns: u64,
    ) -> Self {
        Self {
            own,
            neighbours,
            lanes,
            lane: lanes.sender(kthread),
            now_ns,
        }
    }

    pub(crate) fn has_lane_room(&mut self) -> bool {
        self.lane.has_room()
    }

    /// Sends a frame that is complete.
    pub(crate) fn send_frame(&mut self, frame: &[u8]) {
        self.lane.buffer[..frame.len()].copy_from_slice(frame);
        self.lane.send_buffer(frame.len(), &self.lanes.counters);
    }

    /// Sends a packet, whose payload `write` writes into a buffer that has room for the largest; it returns the payload's length. Its second parameter is the
    /// sum of addresses and protocol, without the length.
    pub(crate) fn send_packet(
        &mut self,
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        hop_limit: u8,
        write: impl FnOnce(&mut [u8], u64) -> usize,
    ) {
        let start = ETHERNET_BYTES + header_bytes(destination);
        let pseudo = pseudo_sum(source, destination, protocol, 0);
        let length = write(&mut self.lane.buffer[start..], pseudo);
        let kind = if destination.is_ipv6() {
            TYPE_IPV6
        } else {
            TYPE_IPV4
        };
        let buffer = &mut self.lane.buffer;
        write_ethernet(&mut buffer[..], [0; 6], self.own.mac, kind);
        let header = &mut buffer[ETHERNET_BYTES..];
        write_header(header, source, destination, protocol, hop_limit, length);
        self.deliver(destination, start + length);
    }

    /// Sends the frame in the buffer to a host by way of its neighbour, or keeps it until that one's address is known. Where no way leads it is lost.
    fn deliver(&mut self, destination: IpAddr, length: usize) {
        let Some(hop) = self.own.next_hop(destination) else {
            return self.neighbours.lost(1);
        };
        let known = self.neighbours.look_up(hop, self.now_ns);
        match known.mac {
            Some(mac) => {
                self.lane.buffer[..6].copy_from_slice(&mac);
                self.lane.send_buffer(length, &self.lanes.counters);
            }
            None => self.neighbours.keep(hop, &self.lane.buffer[..length]),
        }
        if known.is_to_be_asked {
            self.ask(hop);
        }
    }

    /// Sends a request for a neighbour's address.
    pub(crate) fn ask(&mut self, ip: IpAddr) {
        if let Some(length) = write_request(&mut self.lane.buffer[..], self.own, ip) {
            self.lane.send_buffer(length, &self.lanes.counters);
        }
    }
}

impl SegmentSink for Egress<'_> {
    fn has_room(&mut self) -> bool {
        self.lane.has_room()
    }

    fn send(&mut self, key: &FlowKey, header: &SegmentHeader, payload: (&[u8], &[u8])) {
        let (local, remote) = (key.local_ip, key.remote_ip);
        self.send_packet(local, remote, PROTOCOL_TCP, HOP_LIMIT, |to, pseudo| {
            write_segment(to, header, payload, pseudo)
        });
    }

    fn doubt(&mut self, key: &FlowKey) {
        if let Some(hop) = self.own.next_hop(key.remote_ip) {
            self.neighbours.doubt(hop, None, self.now_ns);
        }
    }
}

/// Writes a segment with its checksum; returns its length.
fn write_segment(
    to: &mut [u8],
    header: &SegmentHeader,
    (one, other): (&[u8], &[u8]),
    pseudo: u64,
) -> usize {
    let at = header.write(&mut to[..MOST_HEADER_BYTES]);
    to[at..at + one.len()].copy_from_slice(one);
    let length = at + one.len() + other.len();
    to[at + one.len()..length].copy_from_slice(other);
    let sum = checksum(pseudo + length as u64, &to[..length]);
    to[16..18].copy_from_slice(&sum.to_be_bytes());
    length
}
