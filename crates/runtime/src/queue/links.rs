//! Links between threads: rings that move slots, each with a note.
#![expect(
    unsafe_code,
    reason = "a hint stands for the word of a ring, and travels beside it"
)]

use std::num::NonZeroU64;

use headway_net::pool::{Prefetch, SlotId};
use headway_sync::ring::{Consumer, Producer, ring};
use headway_sync::world::step;

use super::token::{MAX_NOTE, RequestWord, SUSPENDED};

/// Smallest ring: the producer fetches the consumer's line once a lap, so laps should be long even for a policy that
/// has one request at a time under way.
const MIN_CAPACITY: usize = 64;

/// A ring that moves slots from one thread to another, each with a note.
pub(crate) fn link(capacity: usize) -> (SlotSender, SlotReceiver) {
    let (producer, consumer) = ring(capacity.max(MIN_CAPACITY));
    (SlotSender(producer), SlotReceiver(consumer))
}

pub(crate) struct SlotSender(Producer);

impl SlotSender {
    /// Moves the slot over.
    ///
    /// # Panics
    /// When the link is full. Links are made as deep as the policy may fill them, so a full one means that
    /// it exceeded its own bound.
    #[inline]
    pub(crate) fn send(&mut self, slot: SlotId, note: u64) {
        self.push(u64::from(slot.into_raw()), note);
    }

    /// As [`send`](Self::send), of a suspended request.
    ///
    /// # Panics
    /// As there.
    #[inline]
    pub(crate) fn send_suspended(&mut self, slot: SlotId, note: u64) {
        self.push(SUSPENDED | u64::from(slot.into_raw()), note);
    }

    /// Where the next word will be.
    #[inline]
    pub(crate) fn next_place(&self) -> *const () {
        self.0.next_place().cast()
    }

    /// The hint for a receiver that holds the last `held` slots sent and runs the first of them: which slot comes next, and its place in the
    /// ring. `None` where there is no next one.
    #[inline]
    pub(crate) fn next_hint(&self, held: usize) -> Option<NextHint> {
        if held < 2 {
            return None;
        }
        let place = self.0.sent().wrapping_sub(held - 1);
        let word = self.0.sent_at(place) & !NOTE_BITS;
        NonZeroU64::new(word | place_bits(place)).map(NextHint)
    }

    #[inline]
    fn push(&mut self, word: u64, note: u64) {
        // What the sender knew when it decided to send may be over.
        step();
        let word = word | note.min(MAX_NOTE) << 32;
        self.0
            .push(word)
            .expect("a link is as deep as the policy's bound");
    }
}

/// A word of a link, with its place there instead of its note. It travels beside the link, and stands for the word there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextHint(NonZeroU64);

impl NextHint {
    /// To be read back by [`of_word`](Self::of_word).
    #[inline]
    pub(crate) fn into_word(self) -> u64 {
        self.0.get()
    }

    /// The hint in this word; `None` of 0.
    ///
    /// # Safety
    /// The word is 0 or came from [`into_word`](Self::into_word), and is used with the link whose hint it was, before as many slots have
    /// crossed that as make its places begin anew (2³⁰).
    #[inline]
    pub(crate) unsafe fn of_word(word: u64) -> Option<Self> {
        NonZeroU64::new(word).map(Self)
    }
}

/// Where a link's word has its note, and a hint the low bits of the place.
const NOTE_BITS: u64 = MAX_NOTE << 32;

#[inline]
fn place_bits(place: usize) -> u64 {
    (place as u64) << 32 & NOTE_BITS
}

pub(crate) struct SlotReceiver(Consumer);

impl SlotReceiver {
    /// Where the slot is that comes next, if one is there already.
    #[inline]
    pub(crate) fn next(&self) -> Option<Prefetch> {
        self.0.peek().map(|word| Prefetch::of_raw(word as u32))
    }

    #[inline]
    pub(crate) fn receive(&mut self) -> Option<RequestWord> {
        self.0.pop().map(RequestWord::of_word)
    }

    /// As [`receive`](Self::receive), without reading the ring: the slot that this hint of the link names, if it comes next.
    #[inline]
    pub(crate) fn receive_hinted(&mut self, hint: NextHint) -> Option<RequestWord> {
        let word = hint.into_word();
        if word & NOTE_BITS != place_bits(self.0.taken()) {
            return None;
        }
        let word = word & !NOTE_BITS;
        debug_assert_eq!(self.0.peek().map(|next| next & !NOTE_BITS), Some(word));
        self.0.skip();
        Some(RequestWord::of_word(word))
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn token(raw: u32) -> SlotId {
        // SAFETY: a number of no pool's, which never meets one.
        unsafe { SlotId::from_raw(raw) }
    }

    fn forget(request: RequestWord) -> u32 {
        request.into_slot().into_raw()
    }

    #[test]
    fn a_hint_tells_what_comes_next_and_stands_for_it() {
        let (mut sender, mut receiver) = link(2);
        assert!(sender.next_hint(0).is_none());
        // Several laps of the ring.
        for round in 0..1000 {
            let (first, second) = (2 * round + 1, 2 * round + 2);
            sender.send(token(first), 0);
            assert!(sender.next_hint(1).is_none(), "nothing is next");
            sender.send_suspended(token(second), 0);
            assert_eq!(receiver.receive().map(forget), Some(first));
            let hint = sender.next_hint(2).expect("the second is next");
            // SAFETY: made here, of this link.
            let hint = unsafe { NextHint::of_word(hint.into_word()) }.expect("not 0");
            let request = receiver.receive_hinted(hint).expect("it is next");
            assert!(request.is_suspended());
            assert_eq!((request.note(), forget(request)), (0, second));
            assert!(receiver.receive_hinted(hint).is_none(), "each once");
            assert!(receiver.receive().is_none());
        }
    }

    #[test]
    fn a_hint_of_what_was_taken_already_is_void() {
        let (mut sender, mut receiver) = link(2);
        (1..=3).for_each(|raw| sender.send(token(raw), 0));
        assert_eq!(receiver.receive().map(forget), Some(1));
        let hint = sender.next_hint(3).expect("the second is next");
        assert_eq!(receiver.receive().map(forget), Some(2));
        assert!(receiver.receive_hinted(hint).is_none());
        assert_eq!(receiver.receive().map(forget), Some(3));
    }
}
