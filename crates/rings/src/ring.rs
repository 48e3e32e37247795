//! Rings in mapped memory, as the kernel lays them out: indices, flags and entries at offsets of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::cursor::{BrokenRing, ConsumerCursor, ProducerCursor, SharedIndices};
use crate::mapping::{SharedMapping, SharedWord, SharedWords};

/// The offsets of a ring's parts in its mapping, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingPlaces {
    /// The producer's index.
    pub producer: usize,
    /// The consumer's index.
    pub consumer: usize,
    /// Flags of the consumer to the producer.
    pub flags: usize,
    /// The entries.
    pub entries: usize,
}

/// A packet's descriptor in a ring: its offset and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketDescriptor {
    /// The offset of its first byte in the memory of packets.
    pub address: u64,
    /// Its length in bytes.
    pub length: u32,
    /// 0, or flags that both sides agreed on.
    pub options: u32,
}

impl PacketDescriptor {
    /// Encodes it as the two words of an entry.
    #[inline]
    #[must_use]
    pub fn words(self) -> [u64; 2] {
        let ([a, b, c, d], [e, f, g, h]) = (self.length.to_ne_bytes(), self.options.to_ne_bytes());
        [self.address, u64::from_ne_bytes([a, b, c, d, e, f, g, h])]
    }

    /// Decodes it from the two words of an entry.
    #[inline]
    #[must_use]
    pub fn of_words([address, rest]: [u64; 2]) -> Self {
        let [a, b, c, d, e, f, g, h] = rest.to_ne_bytes();
        Self {
            address,
            length: u32::from_ne_bytes([a, b, c, d]),
            options: u32::from_ne_bytes([e, f, g, h]),
        }
    }
}

/// The shared part of a ring whose entries have `W` words.
#[derive(Debug)]
struct RingMemory<const W: usize> {
    producer: SharedWord,
    consumer: SharedWord,
    flags: SharedWord,
    entries: SharedWords,
}

impl<const W: usize> SharedIndices for RingMemory<W> {
    #[inline]
    fn producer(&self) -> &AtomicU32 {
        &self.producer
    }

    #[inline]
    fn consumer(&self) -> &AtomicU32 {
        &self.consumer
    }
}

impl<const W: usize> RingMemory<W> {
    fn new(mapping: &Arc<SharedMapping>, places: RingPlaces, capacity: u32) -> Option<Self> {
        Some(Self {
            producer: mapping.word(places.producer)?,
            consumer: mapping.word(places.consumer)?,
            flags: mapping.word(places.flags)?,
            entries: mapping.words(places.entries, (capacity as usize).checked_mul(W)?)?,
        })
    }
}

/// The end of a ring that this process writes to.
#[derive(Debug)]
pub struct ProducerRing<const W: usize> {
    memory: RingMemory<W>,
    cursor: ProducerCursor,
    /// Number of entries written and not handed over yet.
    written: u32,
}

impl<const W: usize> ProducerRing<W> {
    /// The ring at these offsets; `None` if they do not fit the mapping. It continues at the present indices, and treats the ring as empty.
    ///
    /// # Panics
    /// If the capacity is no power of two.
    #[must_use]
    pub fn new(mapping: &Arc<SharedMapping>, places: RingPlaces, capacity: u32) -> Option<Self> {
        let memory = RingMemory::new(mapping, places, capacity)?;
        let start = memory.producer.load(Ordering::Relaxed);
        Some(Self {
            memory,
            cursor: ProducerCursor::new(capacity, start),
            written: 0,
        })
    }

    /// Number of further entries that can be written.
    ///
    /// # Errors
    /// [`BrokenRing`] when the other side's index is impossible.
    #[inline]
    pub fn room(&mut self, wanted: u32) -> Result<u32, BrokenRing> {
        let free = self.cursor.room(&self.memory, wanted + self.written)?;
        Ok(free - self.written)
    }

    /// Writes an entry, to be handed over by [`publish`](Self::publish). Returns `false` if the ring is full or broken.
    #[inline]
    pub fn push(&mut self, entry: [u64; W]) -> bool {
        if !matches!(self.room(1), Ok(1..)) {
            return false;
        }
        let place = self.cursor.place(self.written) * W;
        for (at, word) in entry.into_iter().enumerate() {
            self.memory.entries.set(place + at, word);
        }
        self.written += 1;
        true
    }

    /// Hands over the entries written since the last call.
    #[inline]
    pub fn publish(&mut self) {
        if self.written > 0 {
            self.cursor.publish(&self.memory, self.written);
            self.written = 0;
        }
    }

    /// Entries handed over that the consumer has not read yet.
    #[inline]
    #[must_use]
    pub fn unread(&self) -> u32 {
        self.cursor.unread(&self.memory)
    }

    /// The consumer's flags.
    #[inline]
    #[must_use]
    pub fn flags(&self) -> u32 {
        self.memory.flags.load(Ordering::Relaxed)
    }
}

/// The end of a ring that this process reads from.
#[derive(Debug)]
pub struct ConsumerRing<const W: usize> {
    memory: RingMemory<W>,
    cursor: ConsumerCursor,
    /// Number of entries read and not given back yet.
    read: u32,
}

impl<const W: usize> ConsumerRing<W> {
    /// The ring at these offsets; `None` if they do not fit the mapping. It continues at the consumer's index.
    ///
    /// # Panics
    /// If the capacity is no power of two.
    #[must_use]
    pub fn new(mapping: &Arc<SharedMapping>, places: RingPlaces, capacity: u32) -> Option<Self> {
        let memory = RingMemory::new(mapping, places, capacity)?;
        let start = memory.consumer.load(Ordering::Relaxed);
        Some(Self {
            memory,
            cursor: ConsumerCursor::new(capacity, start),
            read: 0,
        })
    }

    /// Number of entries waiting to be read; 0 only if the ring is empty.
    ///
    /// # Errors
    /// [`BrokenRing`] when the other side's index is impossible.
    #[inline]
    pub fn waiting(&mut self, wanted: u32) -> Result<u32, BrokenRing> {
        let waiting = self.cursor.waiting(&self.memory, wanted + self.read)?;
        Ok(waiting - self.read)
    }

    /// Reads the next entry, if there is one and the ring is not broken. It is a copy: later writes of the other side leave it unchanged.
    #[inline]
    pub fn pop(&mut self) -> Option<[u64; W]> {
        if !matches!(self.waiting(1), Ok(1..)) {
            return None;
        }
        let place = self.cursor.place(self.read) * W;
        self.read += 1;
        Some(std::array::from_fn(|at| {
            self.memory.entries.get(place + at)
        }))
    }

    /// Gives back the entries read since the last call.
    #[inline]
    pub fn release(&mut self) {
        if self.read > 0 {
            self.cursor.release(&self.memory, self.read);
            self.read = 0;
        }
    }
}
