//! Slots' tokens as they cross threads: a word in a ring.
#![expect(
    unsafe_code,
    reason = "a token must become a number to pass through a ring of words"
)]

use headway_net::pool::{MAX_SLOTS, Prefetch, SlotId};
use headway_policy::JobId;

use crate::ring::{Consumer, Producer, ring};

/// Nanoseconds beyond which a note saturates: 2.1 s. Only policies' profiles read it.
const MAX_NOTE: u64 = (1 << 31) - 1;

/// The number under which policies know the request in this slot: the slot's place in its pool.
#[inline]
pub(crate) fn job_of(slot: SlotId) -> (JobId, SlotId) {
    let raw = slot.into_raw();
    let job = JobId(raw % MAX_SLOTS as u32);
    // SAFETY: the number is the one just made of the token, and is not used again.
    (job, unsafe { SlotId::from_raw(raw) })
}

/// Smallest ring: the producer fetches the consumer's line once a lap, so laps should be long even for a policy that
/// has one request at a time under way.
const MIN_CAPACITY: usize = 64;

/// A ring that moves slots from one thread to another, each with a note.
pub(crate) fn link(capacity: usize) -> (Sender, Receiver) {
    let (producer, consumer) = ring(capacity.max(MIN_CAPACITY));
    (Sender(producer), Receiver(consumer))
}

pub(crate) struct Sender(Producer);

impl Sender {
    /// Moves the slot over.
    ///
    /// # Panics
    /// When the link is full. Links are made as deep as the policy may fill them, so a full one means that
    /// it exceeded its own bound.
    #[inline]
    pub(crate) fn send(&mut self, slot: SlotId, note: u64) {
        let word = note.min(MAX_NOTE) << 32 | u64::from(slot.into_raw());
        self.0
            .push(word)
            .expect("a link is as deep as the policy's bound");
    }
}

pub(crate) struct Receiver(Consumer);

impl Receiver {
    /// Where the slot is that comes next, if one is there already.
    #[inline]
    pub(crate) fn next(&self) -> Option<Prefetch> {
        self.0.peek().map(|word| Prefetch::of_raw(word as u32))
    }

    #[inline]
    pub(crate) fn receive(&mut self) -> Option<(SlotId, u64)> {
        let word = self.0.pop()?;
        // SAFETY: `send`, the only producer of this ring's words, put a token's number into the low half; the ring
        // delivers each word once, its release store before our acquire load.
        Some((unsafe { SlotId::from_raw(word as u32) }, word >> 32))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
