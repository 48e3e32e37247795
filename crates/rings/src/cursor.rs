//! The protocol of a ring: which entries a side may write or read, by two shared indices.

use crate::sync::{AtomicU32, Ordering};

/// The two indices of a ring. They count entries since the ring was made and wrap at 2³².
pub trait SharedIndices {
    /// Entries written so far: stored by the producer.
    fn producer(&self) -> &AtomicU32;

    /// Entries read so far: stored by the consumer.
    fn consumer(&self) -> &AtomicU32;
}

/// The other side wrote an index that no correct one writes. The ring cannot be used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the other side of a ring of {capacity} entries claims that {claimed} are in use")]
pub struct BrokenRing {
    /// Entries of the ring.
    pub capacity: u32,
    /// Entries in use by the other side's index.
    pub claimed: u32,
}

/// The producer's side of the protocol.
#[derive(Debug)]
pub struct ProducerCursor {
    capacity: u32,
    next: u32,
    /// The consumer's index when it was last read: at least so many entries were read.
    consumed: u32,
}

impl ProducerCursor {
    /// The producer of a ring of `capacity` entries, which holds none, and whose indices are `start`.
    ///
    /// # Panics
    /// If the capacity is no power of two, or more than 2³¹.
    #[must_use]
    pub fn new(capacity: u32, start: u32) -> Self {
        check_capacity(capacity);
        Self {
            capacity,
            next: start,
            consumed: start,
        }
    }

    /// The producer of a ring that another producer left with these indices; of an empty one where they cannot be.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn resumed(capacity: u32, produced: u32, consumed: u32) -> Self {
        let mut cursor = Self::new(capacity, produced);
        if produced.wrapping_sub(consumed) <= capacity {
            cursor.consumed = consumed;
        }
        cursor
    }

    /// How many entries may be written. Reads the other side's index only where fewer than `wanted` are known to be free.
    ///
    /// # Errors
    /// [`BrokenRing`] when the other side's index is impossible.
    #[inline]
    pub fn room<I: SharedIndices>(&mut self, shared: &I, wanted: u32) -> Result<u32, BrokenRing> {
        let known = self.capacity - self.next.wrapping_sub(self.consumed);
        if known >= wanted {
            return Ok(known);
        }
        // What the consumer read before it stored its index is read: its entries may be written over.
        let consumed = shared.consumer().load(Ordering::Acquire);
        let claimed = self.next.wrapping_sub(consumed);
        // Neither beyond what was written nor back behind what was read before.
        if claimed > self.next.wrapping_sub(self.consumed) {
            let capacity = self.capacity;
            return Err(BrokenRing { capacity, claimed });
        }
        self.consumed = consumed;
        Ok(self.capacity - claimed)
    }

    /// The place of the entry `ahead` of the next one, below the capacity.
    #[inline]
    #[must_use]
    pub fn place(&self, ahead: u32) -> usize {
        (self.next.wrapping_add(ahead) & (self.capacity - 1)) as usize
    }

    /// Hands the next `count` entries over. They were written, and [`room`](Self::room) had said that they may be.
    #[inline]
    pub fn publish<I: SharedIndices>(&mut self, shared: &I, count: u32) {
        self.next = self.next.wrapping_add(count);
        shared.producer().store(self.next, Ordering::Release);
    }

    /// Entries that the consumer has not read yet, as far as its index tells.
    #[inline]
    pub fn unread<I: SharedIndices>(&self, shared: &I) -> u32 {
        self.next
            .wrapping_sub(shared.consumer().load(Ordering::Acquire))
    }
}

/// The consumer's side of the protocol.
#[derive(Debug)]
pub struct ConsumerCursor {
    capacity: u32,
    next: u32,
    /// The producer's index when it was last read: at least so many entries were written.
    produced: u32,
}

impl ConsumerCursor {
    /// The consumer of a ring of `capacity` entries, which holds none, and whose indices are `start`.
    ///
    /// # Panics
    /// If the capacity is no power of two, or more than 2³¹.
    #[must_use]
    pub fn new(capacity: u32, start: u32) -> Self {
        check_capacity(capacity);
        Self {
            capacity,
            next: start,
            produced: start,
        }
    }

    /// How many entries may be read. Reads the other side's index only where fewer than `wanted` are known to wait.
    ///
    /// # Errors
    /// [`BrokenRing`] when the other side's index is impossible.
    #[inline]
    pub fn waiting<I: SharedIndices>(
        &mut self,
        shared: &I,
        wanted: u32,
    ) -> Result<u32, BrokenRing> {
        let known = self.produced.wrapping_sub(self.next);
        if known >= wanted {
            return Ok(known);
        }
        // What the producer wrote before it stored its index is visible from here on.
        let produced = shared.producer().load(Ordering::Acquire);
        let claimed = produced.wrapping_sub(self.next);
        // Neither more than fit nor fewer than waited before.
        if !(known..=self.capacity).contains(&claimed) {
            let capacity = self.capacity;
            return Err(BrokenRing { capacity, claimed });
        }
        self.produced = produced;
        Ok(claimed)
    }

    /// The place of the entry `ahead` of the next one, below the capacity.
    #[inline]
    #[must_use]
    pub fn place(&self, ahead: u32) -> usize {
        (self.next.wrapping_add(ahead) & (self.capacity - 1)) as usize
    }

    /// Gives the next `count` entries back to the producer. They were read, and [`waiting`](Self::waiting) had said that they may be.
    #[inline]
    pub fn release<I: SharedIndices>(&mut self, shared: &I, count: u32) {
        self.next = self.next.wrapping_add(count);
        shared.consumer().store(self.next, Ordering::Release);
    }
}

fn check_capacity(capacity: u32) {
    assert!(
        capacity.is_power_of_two() && capacity <= 1 << 31,
        "a ring has a power of two of entries, not {capacity}"
    );
}
