//! A lane: two rings of packets in shared memory, one each way, between a data plane and one kthread of an application.
//!
//! Each entry is a slot that holds its packet: a word with the length, then the bytes. So shared memory holds no address. Neither side trusts the other: an
//! impossible index breaks the lane, an impossible length loses its packet, and a side copies a packet before it parses it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cursor::{BrokenRing, ConsumerCursor, ProducerCursor, SharedIndices};
use crate::mapping::{SharedMapping, SharedWord, SharedWords};

/// The longest packet: a slot is 2 KiB with the word before it.
pub const MOST_PACKET_BYTES: usize = SLOT_WORDS * 8 - 8;

/// Capacity of each of a lane's rings, in packets.
pub const LANE_PACKETS: u32 = 256;

const SLOT_WORDS: usize = 256;
const RING_BYTES: usize = LANE_PACKETS as usize * SLOT_WORDS * 8;
/// The indices, each in a cache line of its own.
const HEAD_BYTES: usize = 4096;

/// Bytes of a lane's memory.
pub const LANE_BYTES: usize = HEAD_BYTES + 2 * RING_BYTES;

/// One of the lane's two rings.
#[derive(Debug)]
struct PacketRing {
    producer: SharedWord,
    consumer: SharedWord,
    slots: SharedWords,
}

impl SharedIndices for PacketRing {
    #[inline]
    fn producer(&self) -> &AtomicU32 {
        &self.producer
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        &self.consumer
    }
}

impl PacketRing {
    /// `way` is 0 towards the application, 1 from it.
    fn new(mapping: &Arc<SharedMapping>, offset: usize, way: usize) -> Option<Self> {
        let (line, slots) = (way * 128, HEAD_BYTES + way * RING_BYTES);
        Some(Self {
            producer: mapping.word(offset.checked_add(line)?)?,
            consumer: mapping.word(offset.checked_add(line + 64)?)?,
            slots: mapping.words(offset.checked_add(slots)?, RING_BYTES / 8)?,
        })
    }
}

/// The end of a ring that writes packets.
#[derive(Debug)]
pub struct PacketSender {
    ring: PacketRing,
    cursor: ProducerCursor,
}

impl PacketSender {
    fn new(ring: PacketRing) -> Self {
        let produced = ring.producer.load(Ordering::Acquire);
        let consumed = ring.consumer.load(Ordering::Acquire);
        Self {
            ring,
            cursor: ProducerCursor::resumed(LANE_PACKETS, produced, consumed),
        }
    }

    /// Whether a packet can be written.
    ///
    /// # Errors
    /// [`BrokenRing`] when the other side's index is impossible.
    #[inline]
    pub fn has_room(&mut self) -> Result<bool, BrokenRing> {
        Ok(self.cursor.room(&self.ring, 1)? > 0)
    }

    /// Packets that the other side has not taken yet, by its index.
    #[inline]
    #[must_use]
    pub fn unread(&self) -> u32 {
        self.cursor.unread(&self.ring)
    }

    /// Writes a packet and hands it over. Returns `false` if the ring is full or the packet is longer than a slot.
    ///
    /// # Errors
    /// [`BrokenRing`] when the other side's index is impossible.
    #[inline]
    pub fn send(&mut self, packet: &[u8]) -> Result<bool, BrokenRing> {
        if packet.len() > MOST_PACKET_BYTES || !self.has_room()? {
            return Ok(false);
        }
        let slot = self.cursor.place(0) * SLOT_WORDS;
        self.ring.slots.set(slot, packet.len() as u64);
        self.ring.slots.write(slot + 1, packet);
        self.cursor.publish(&self.ring, 1);
        Ok(true)
    }
}

/// The result of taking a packet from a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// A packet of this length was copied out.
    Packet(usize),
    /// The packet's length was impossible, and the packet is lost.
    Invalid,
    /// The ring is empty.
    Nothing,
}

/// The end of a ring that reads packets.
#[derive(Debug)]
pub struct PacketReceiver {
    ring: PacketRing,
    cursor: ConsumerCursor,
}

impl PacketReceiver {
    fn new(ring: PacketRing) -> Self {
        let start = ring.consumer.load(Ordering::Relaxed);
        Self {
            ring,
            cursor: ConsumerCursor::new(LANE_PACKETS, start),
        }
    }

    /// Whether a packet waits.
    ///
    /// # Errors
    /// [`BrokenRing`] when the other side's index is impossible.
    #[inline]
    pub fn has_packet(&mut self) -> Result<bool, BrokenRing> {
        Ok(self.cursor.waiting(&self.ring, 1)? > 0)
    }

    /// Copies the next packet out and gives its slot back.
    ///
    /// # Errors
    /// [`BrokenRing`] when the other side's index is impossible.
    #[inline]
    pub fn receive(&mut self, to: &mut [u8; MOST_PACKET_BYTES]) -> Result<Taken, BrokenRing> {
        if !self.has_packet()? {
            return Ok(Taken::Nothing);
        }
        let slot = self.cursor.place(0) * SLOT_WORDS;
        // Read once: the other side may change it at any time.
        let length = usize::try_from(self.ring.slots.get(slot)).unwrap_or(usize::MAX);
        let taken = match to.get_mut(..length) {
            Some(packet) => {
                self.ring.slots.read(slot + 1, packet);
                Taken::Packet(length)
            }
            None => Taken::Invalid,
        };
        self.cursor.release(&self.ring, 1);
        Ok(taken)
    }
}

/// One side's ends of a lane.
#[derive(Debug)]
pub struct LaneEnds {
    /// Packets to the other side.
    pub sender: PacketSender,
    /// Packets from the other side.
    pub receiver: PacketReceiver,
}

impl LaneEnds {
    /// The data plane's ends of the lane at this offset; `None` if the lane does not fit the memory. The rings continue at their indices.
    #[must_use]
    pub fn of_plane(mapping: &Arc<SharedMapping>, offset: usize) -> Option<Self> {
        Some(Self {
            sender: PacketSender::new(PacketRing::new(mapping, offset, 0)?),
            receiver: PacketReceiver::new(PacketRing::new(mapping, offset, 1)?),
        })
    }

    /// The application's ends.
    #[must_use]
    pub fn of_application(mapping: &Arc<SharedMapping>, offset: usize) -> Option<Self> {
        Some(Self {
            sender: PacketSender::new(PacketRing::new(mapping, offset, 1)?),
            receiver: PacketReceiver::new(PacketRing::new(mapping, offset, 0)?),
        })
    }
}
