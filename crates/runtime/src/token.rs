//! Slots' tokens as they cross threads: a word in a ring.
#![expect(
    unsafe_code,
    reason = "a token must become a number to pass through a ring of words"
)]

use std::num::NonZeroU64;

use headway_net::pool::{MAX_SLOTS, Prefetch, SlotId};
use headway_policy::JobId;

use crate::ring::{Consumer, Producer, ring};

/// Nanoseconds beyond which a note saturates: 1.07 s. Only policies' profiles read it.
const MAX_NOTE: u64 = (1 << 30) - 1;

/// Set in the word of a request that was begun and is not finished: a ring's word has 63 bits.
const BEGUN: u64 = 1 << 62;

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
        self.push(u64::from(slot.into_raw()), note);
    }

    /// As [`send`](Self::send), of a request that was begun and is not finished.
    ///
    /// # Panics
    /// As there.
    #[inline]
    pub(crate) fn send_begun(&mut self, slot: SlotId, note: u64) {
        self.push(BEGUN | u64::from(slot.into_raw()), note);
    }

    #[inline]
    fn push(&mut self, word: u64, note: u64) {
        let word = word | note.min(MAX_NOTE) << 32;
        self.0
            .push(word)
            .expect("a link is as deep as the policy's bound");
    }
}

pub(crate) struct Receiver(Consumer);

/// What came over a link, as the word that came: it is stored and fetched in one piece.
#[derive(Debug)]
pub(crate) struct Parcel(NonZeroU64);

impl Parcel {
    /// A request that was begun and is not finished.
    #[inline]
    pub(crate) fn begun(slot: SlotId) -> Self {
        Self::of_word(BEGUN | u64::from(slot.into_raw()))
    }

    #[inline]
    fn of_word(word: u64) -> Self {
        Self(NonZeroU64::new(word).expect("a token is not 0"))
    }

    /// Whether the request was begun and is not finished.
    #[inline]
    pub(crate) fn is_begun(&self) -> bool {
        self.0.get() & BEGUN != 0
    }

    /// Towards the dispatcher: the service it had so far, ns.
    #[inline]
    pub(crate) fn note(&self) -> u64 {
        self.0.get() >> 32 & MAX_NOTE
    }

    /// The number under which policies know the request.
    #[inline]
    pub(crate) fn job(&self) -> JobId {
        JobId(self.0.get() as u32 % MAX_SLOTS as u32)
    }

    #[inline]
    pub(crate) fn into_slot(self) -> SlotId {
        // SAFETY: `begun`, or `Sender::push`, the only producer of a link's words, put a token's number into the low half; the ring delivers each
        // word once, its release store before our acquire load.
        unsafe { SlotId::from_raw(self.0.get() as u32) }
    }
}

impl Receiver {
    /// Where the slot is that comes next, if one is there already.
    #[inline]
    pub(crate) fn next(&self) -> Option<Prefetch> {
        self.0.peek().map(|word| Prefetch::of_raw(word as u32))
    }

    #[inline]
    pub(crate) fn receive(&mut self) -> Option<Parcel> {
        self.0.pop().map(Parcel::of_word)
    }

    /// Where the next word is, or will be.
    #[inline]
    pub(crate) fn next_place(&self) -> *const () {
        self.0.next_place().cast()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
