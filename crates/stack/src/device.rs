//! Lanes as a device of smoltcp's.

use headway_rings::lane::{LaneEnds, MOST_PACKET_BYTES, PacketSender, Taken};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// The length of an Ethernet header without VLAN tags.
const ETHERNET_BYTES: usize = 14;

/// Counts of an application's packets by fate, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneCounts {
    /// Taken from the lanes.
    pub received: u64,
    /// Written into a lane.
    pub sent: u64,
    /// Lost: the lane was full. TCP retransmits them.
    pub full: u64,
}

/// An application's lanes. The stack takes packets from all of them, and sends by the lane of the polling kthread.
pub(crate) struct LaneDevice {
    lanes: Vec<LaneEnds>,
    /// The lane in which the search for the next packet begins.
    next: usize,
    /// The lane by which packets leave.
    leaving: usize,
    mtu: usize,
    pub(crate) counts: LaneCounts,
    received: Box<[u8; MOST_PACKET_BYTES]>,
    to_send: Box<[u8; MOST_PACKET_BYTES]>,
}

impl LaneDevice {
    /// `mtu` does not count the Ethernet header.
    pub(crate) fn new(lanes: Vec<LaneEnds>, mtu: usize) -> Self {
        Self {
            lanes,
            next: 0,
            leaving: 0,
            mtu: mtu.min(MOST_PACKET_BYTES - ETHERNET_BYTES),
            counts: LaneCounts::default(),
            received: Box::new([0; MOST_PACKET_BYTES]),
            to_send: Box::new([0; MOST_PACKET_BYTES]),
        }
    }

    /// Packets leave by this kthread's lane from now on; kthreads beyond the lanes share them.
    pub(crate) fn leave_by(&mut self, kthread: usize) {
        self.leaving = kthread % self.lanes.len();
    }

    /// Whether a packet waits in any lane. A broken lane has none.
    pub(crate) fn has_packet(&mut self) -> bool {
        let mut lanes = self.lanes.iter_mut();
        lanes.any(|lane| lane.receiver.has_packet() == Ok(true))
    }

    /// Whether packets wait to be taken by the data plane.
    pub(crate) fn has_unsent(&self) -> bool {
        self.lanes.iter().any(|lane| lane.sender.unread() > 0)
    }

    /// Takes the next packet, from the lanes in turn; its length.
    fn take(&mut self) -> Option<usize> {
        for _ in 0..self.lanes.len() {
            let lane = &mut self.lanes[self.next];
            loop {
                match lane.receiver.receive(&mut self.received) {
                    Ok(Taken::Packet(length)) => {
                        self.counts.received += 1;
                        return Some(length);
                    }
                    Ok(Taken::Invalid) => {}
                    Ok(Taken::Nothing) | Err(_) => break,
                }
            }
            self.next = (self.next + 1) % self.lanes.len();
        }
        None
    }
}

/// A packet that was taken.
pub(crate) struct TakenPacket<'a>(&'a [u8]);

impl RxToken for TakenPacket<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

/// Room for a packet in a lane.
pub(crate) struct LeavingPacket<'a> {
    sender: &'a mut PacketSender,
    buffer: &'a mut [u8; MOST_PACKET_BYTES],
    counts: &'a mut LaneCounts,
}

impl TxToken for LeavingPacket<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let packet = &mut self.buffer[..len];
        let result = f(packet);
        match self.sender.send(packet) {
            Ok(true) => self.counts.sent += 1,
            Ok(false) | Err(_) => self.counts.full += 1,
        }
        result
    }
}

impl Device for LaneDevice {
    type RxToken<'a> = TakenPacket<'a>;
    type TxToken<'a> = LeavingPacket<'a>;

    fn receive(&mut self, _: Instant) -> Option<(TakenPacket<'_>, LeavingPacket<'_>)> {
        let length = self.take()?;
        let leaving = LeavingPacket {
            sender: &mut self.lanes[self.leaving].sender,
            buffer: &mut self.to_send,
            counts: &mut self.counts,
        };
        Some((TakenPacket(&self.received[..length]), leaving))
    }

    fn transmit(&mut self, _: Instant) -> Option<LeavingPacket<'_>> {
        let lane = &mut self.lanes[self.leaving];
        // A broken lane accepts packets and loses them, since the stack would otherwise retry for ever.
        let is_full = lane.sender.has_room() == Ok(false);
        (!is_full).then_some(LeavingPacket {
            sender: &mut lane.sender,
            buffer: &mut self.to_send,
            counts: &mut self.counts,
        })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = self.mtu + ETHERNET_BYTES;
        capabilities
    }
}
