//! Slots' tokens as they cross threads: a word in a ring. Only this folder makes words and reads them.
#![expect(
    unsafe_code,
    reason = "a token must become a number to pass through a ring of words"
)]

use std::num::NonZeroU64;

use headway_net::pool::{MAX_SLOTS, SlotId};
use headway_policy::JobId;

/// Nanoseconds beyond which a note saturates: 1.07 s. Only policies' profiles read it.
pub(super) const MAX_NOTE: u64 = (1 << 30) - 1;

/// Set in the word of a suspended request: a ring's word has 63 bits.
pub(super) const SUSPENDED: u64 = 1 << 62;

/// The number under which policies know the request in this slot: the slot's place in its pool.
#[inline]
pub(crate) fn job_of(slot: SlotId) -> (JobId, SlotId) {
    let raw = slot.into_raw();
    let job = JobId(raw % MAX_SLOTS as u32);
    // SAFETY: the number is the one just made of the token, and is not used again.
    (job, unsafe { SlotId::from_raw(raw) })
}

/// A request as the word that came over a link: it is stored and fetched in one piece.
#[derive(Debug)]
pub(crate) struct RequestWord(NonZeroU64);

impl RequestWord {
    /// A suspended request.
    #[inline]
    pub(crate) fn suspended(slot: SlotId) -> Self {
        Self::of_word(SUSPENDED | u64::from(slot.into_raw()))
    }

    /// A request that has not begun.
    #[inline]
    pub(crate) fn fresh(slot: SlotId) -> Self {
        Self::of_word(u64::from(slot.into_raw()))
    }

    #[inline]
    pub(super) fn of_word(word: u64) -> Self {
        Self(NonZeroU64::new(word).expect("a token is not 0"))
    }

    /// Whether the request is suspended.
    #[inline]
    pub(crate) fn is_suspended(&self) -> bool {
        self.0.get() & SUSPENDED != 0
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
    pub(super) fn into_word(self) -> u64 {
        self.0.get()
    }

    #[inline]
    pub(crate) fn into_slot(self) -> SlotId {
        // SAFETY: `fresh`, `suspended`, or `SlotSender::push`, the only producer of a link's words, put a token's number into the low half; links and
        // run queues deliver each word once, their release store before our acquire load. So does a hint, which stands for one word and passes
        // over that (`receive_hinted`); the flag beside which it comes synchronises as well.
        unsafe { SlotId::from_raw(self.0.get() as u32) }
    }
}
