//! The protocol of a ring: two shared indices determine the entries that each side may write or read.

use headway_sync::atomic::{AtomicU32, Ordering};

/// The two indices of a ring. They count entries since the ring was made and wrap at 2³².
pub trait SharedIndices {
    /// Entries written so far: stored by the producer.
    fn producer(&self) -> &AtomicU32;

    /// Entries read so far: stored by the consumer.
    fn consumer(&self) -> &AtomicU32;
}

/// The other side wrote an impossible index. The ring is unusable from then on.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the other side of a ring of {capacity} entries claims that {claimed} are in use")]
pub struct BrokenRing {
    /// Capacity of the ring, in entries.
    pub capacity: u32,
    /// Entries in use by the other side's index.
    pub claimed: u32,
}

headway_words::debug_is_display!(BrokenRing);

/// The producer's side of the protocol.
#[derive(Debug)]
pub struct ProducerCursor {
    capacity: u32,
    next: u32,
    /// The consumer's index at the last look: at least this many entries were read.
    consumed: u32,
}

impl ProducerCursor {
    /// The producer of an empty ring of `capacity` entries whose indices are `start`.
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

    /// The producer that takes over a ring from another producer, with these indices; of an empty ring if they are impossible.
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

    /// Number of entries that may be written. It reads the other side's index only if fewer than `wanted` are known to be free.
    ///
    /// # Errors
    /// [`BrokenRing`] when the other side's index is impossible.
    #[inline]
    pub fn room<I: SharedIndices>(&mut self, shared: &I, wanted: u32) -> Result<u32, BrokenRing> {
        let known = self.capacity - self.next.wrapping_sub(self.consumed);
        if known >= wanted {
            return Ok(known);
        }
        // The consumer stored its index after its reads, so the entries before it may be overwritten.
        let consumed = shared.consumer().load(Ordering::Acquire);
        let claimed = self.next.wrapping_sub(consumed);
        // A valid index lies between the last known index and the number of written entries.
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

    /// Hands over the next `count` entries. The caller has written them, within the number that [`room`](Self::room) returned.
    #[inline]
    pub fn publish<I: SharedIndices>(&mut self, shared: &I, count: u32) {
        self.next = self.next.wrapping_add(count);
        shared.producer().store(self.next, Ordering::Release);
    }

    /// Entries that the consumer has not read yet, by its index.
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
    /// The producer's index at the last look: at least this many entries were written.
    produced: u32,
}

impl ConsumerCursor {
    /// The consumer of an empty ring of `capacity` entries whose indices are `start`.
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

    /// Number of entries that may be read. It reads the other side's index only if fewer than `wanted` are known to wait.
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
        // The producer stored its index after its writes, so the entries before it are visible from here on.
        let produced = shared.producer().load(Ordering::Acquire);
        let claimed = produced.wrapping_sub(self.next);
        // A valid number of waiting entries is at most the capacity and at least the last known number.
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

    /// Gives the next `count` entries back to the producer. The caller has read them, within the number that [`waiting`](Self::waiting) returned.
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
