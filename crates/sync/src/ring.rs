//! A single-producer, single-consumer ring of words: what dispatcher and workers talk through.
//!
//! A request crosses two of these, so a crossing should cost what the hardware asks: the transfer of one
//! cache line. Rings that publish an index (Lamport's) cost two, the index's line and the item's. Here
//! each slot says by itself whether it is full: its top bit is the parity of the lap it was written in, so that
//! the consumer polls the very word it is after, and never writes to it (FastForward's idea, without
//! its clearing stores). A word, once stored, is published: a batch of words needs no second step.
//!
//! The other direction, "there is room again", is an index on a line of its own. The producer keeps a copy
//! of it and reads the real one only when the ring looks full by the copy (Perséphone § 4.3.2), once a lap.
//!
//! Items are words of [`WORD_BITS`] bits, so there is nothing to drop, and no `unsafe`.

use crate::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::{Arc, Padded};

/// Bits of a word that carry the item; the highest one is the ring's.
pub const WORD_BITS: u32 = 63;

const PARITY_BIT: u64 = 1 << WORD_BITS;

/// Words in a pair of cache lines.
const WORDS_PER_LINE: usize = 16;

/// The ring was full; here is the word back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full(pub u64);

/// Makes a ring that holds at least `capacity` words (rounded up to a power of two).
///
/// # Panics
/// When `capacity` is 0.
#[must_use]
pub fn ring(capacity: usize) -> (Producer, Consumer) {
    assert!(capacity > 0, "a ring holds at least one word");
    let capacity = capacity.next_power_of_two();
    let shared = Arc::new(RingBuffer {
        // The first lap writes parity 1, so zeros read as empty.
        words: (0..capacity.div_ceil(WORDS_PER_LINE))
            .map(|_| Padded(std::array::from_fn(|_| AtomicU64::new(0))))
            .collect(),
        consumed: Padded(AtomicUsize::new(0)),
    });
    let producer = Producer {
        shared: Arc::clone(&shared),
        lap: Lap::new(capacity),
        consumed: 0,
    };
    let consumer = Consumer {
        shared,
        lap: Lap::new(capacity),
    };
    (producer, consumer)
}

#[derive(Debug)]
struct RingBuffer {
    /// On lines of their own: a neighbour on the heap must not slow the ring down.
    words: Box<[Padded<[AtomicU64; WORDS_PER_LINE]>]>,
    /// How many words the consumer has taken.
    consumed: Padded<AtomicUsize>,
}

impl RingBuffer {
    #[inline]
    fn word(&self, index: usize) -> &AtomicU64 {
        &self.words[index / WORDS_PER_LINE][index % WORDS_PER_LINE]
    }
}

/// A position that only grows; its low bits are the place in the ring, the next one the lap's parity.
#[derive(Debug)]
struct Lap {
    position: usize,
    capacity: usize,
}

impl Lap {
    fn new(capacity: usize) -> Self {
        Self {
            position: 0,
            capacity,
        }
    }

    #[inline]
    fn index(&self) -> usize {
        self.position & (self.capacity - 1)
    }

    #[inline]
    fn parity(&self) -> u64 {
        if self.position & self.capacity == 0 {
            PARITY_BIT
        } else {
            0
        }
    }

    #[inline]
    fn advance(&mut self) {
        self.position = self.position.wrapping_add(1);
    }
}

/// The sending end.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<RingBuffer>,
    lap: Lap,
    /// The consumer's count when last looked at.
    consumed: usize,
}

impl Producer {
    /// Sends a word below 2^[`WORD_BITS`].
    ///
    /// # Errors
    /// [`Full`] when the consumer is a whole ring behind.
    ///
    /// # Panics
    /// In debug builds, when the word is too large; in others its top bit is lost.
    #[inline]
    pub fn push(&mut self, word: u64) -> Result<(), Full> {
        debug_assert!(
            word < PARITY_BIT,
            "{word:#x} has more than {WORD_BITS} bits"
        );
        if self.looks_full() && self.is_full() {
            return Err(Full(word));
        }
        let word = (word & !PARITY_BIT) | self.lap.parity();
        self.shared
            .word(self.lap.index())
            .store(word, Ordering::Release);
        self.lap.advance();
        Ok(())
    }

    /// Where the next word will be: its line can be fetched early.
    #[inline]
    #[must_use]
    pub fn next_place(&self) -> *const AtomicU64 {
        self.shared.word(self.lap.index())
    }

    /// How many words were sent so far: the place of the next one.
    #[inline]
    #[must_use]
    pub fn sent(&self) -> usize {
        self.lap.position
    }

    /// The word sent at this place, one of the last [`capacity`](Self::capacity). To be told by other ways, and then [passed
    /// over](Consumer::skip) in the ring.
    #[inline]
    #[must_use]
    pub fn sent_at(&self, place: usize) -> u64 {
        debug_assert!(
            (1..=self.lap.capacity).contains(&self.lap.position.wrapping_sub(place)),
            "a word that was sent and is there"
        );
        let index = place & (self.lap.capacity - 1);
        // Nobody else writes it.
        self.shared.word(index).load(Ordering::Relaxed) & !PARITY_BIT
    }

    /// Whether so many words more fit now: the consumer can only make more room.
    #[inline]
    #[must_use]
    pub fn has_room(&mut self, words: usize) -> bool {
        self.free() >= words || {
            self.consumed = self.shared.consumed.load(Ordering::Acquire);
            self.free() >= words
        }
    }

    #[inline]
    fn free(&self) -> usize {
        self.lap.capacity - self.lap.position.wrapping_sub(self.consumed)
    }

    /// How many words the ring holds at most.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.lap.capacity
    }

    #[inline]
    fn looks_full(&self) -> bool {
        self.lap.position.wrapping_sub(self.consumed) == self.lap.capacity
    }

    #[cold]
    fn is_full(&mut self) -> bool {
        // Acquire: the consumer's load of the word that is overwritten next comes first.
        self.consumed = self.shared.consumed.load(Ordering::Acquire);
        self.looks_full()
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<RingBuffer>,
    lap: Lap,
}

impl Consumer {
    /// The oldest word, if there is one.
    #[inline]
    pub fn pop(&mut self) -> Option<u64> {
        let word = self.peek()?;
        self.advance();
        Some(word)
    }

    /// How many words were taken so far: the place of the next one.
    #[inline]
    #[must_use]
    pub fn taken(&self) -> usize {
        self.lap.position
    }

    /// Passes over the next word, which the consumer was told by other ways: the line it lies in stays with the producer.
    ///
    /// # Panics
    /// In debug builds, when it is not there.
    #[inline]
    pub fn skip(&mut self) {
        debug_assert!(!self.is_empty(), "what was told is there");
        self.advance();
    }

    #[inline]
    fn advance(&mut self) {
        self.lap.advance();
        // This line is the consumer's own until the producer has filled the ring.
        self.shared
            .consumed
            .store(self.lap.position, Ordering::Release);
    }

    /// The oldest word, left where it is.
    #[inline]
    #[must_use]
    pub fn peek(&self) -> Option<u64> {
        let word = self.shared.word(self.lap.index()).load(Ordering::Acquire);
        (word & PARITY_BIT == self.lap.parity()).then_some(word & !PARITY_BIT)
    }

    /// Where the next word is, or will be: its line can be fetched early.
    #[inline]
    #[must_use]
    pub fn next_place(&self) -> *const AtomicU64 {
        self.shared.word(self.lap.index())
    }

    /// Whether there is nothing to take now.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.peek().is_none()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn behaves_as_a_bounded_queue(
            capacity in 1usize..20,
            ops in prop::collection::vec(prop::option::weighted(0.55, 0..PARITY_BIT), 0..400),
        ) {
            let (mut producer, mut consumer) = ring(capacity);
            let mut model = VecDeque::new();
            for op in ops {
                match op {
                    Some(word) => {
                        let fits = model.len() < producer.capacity();
                        prop_assert!(producer.has_room(producer.capacity() - model.len()));
                        prop_assert!(!producer.has_room(producer.capacity() - model.len() + 1));
                        prop_assert_eq!(producer.push(word), if fits { Ok(()) } else { Err(Full(word)) });
                        if fits {
                            model.push_back(word);
                        }
                    }
                    None => {
                        prop_assert_eq!(consumer.peek(), model.front().copied());
                        prop_assert_eq!(consumer.pop(), model.pop_front());
                    }
                }
                prop_assert_eq!(consumer.is_empty(), model.is_empty());
            }
        }
    }

    #[test]
    fn capacity_is_rounded_up() {
        for (asked, got) in [(1, 1), (2, 2), (3, 4), (9, 16)] {
            assert_eq!(ring(asked).0.capacity(), got);
        }
    }

    #[test]
    fn words_cross_threads_in_order_and_once() {
        // Beside other programs each time that the ring is full costs a slice of theirs.
        const FILLS: u64 = 3000;
        for capacity in [1, 2, 64] {
            let words = FILLS * capacity as u64;
            let (mut producer, mut consumer) = ring(capacity);
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    for word in 0..words {
                        while producer.push(word).is_err() {
                            std::thread::yield_now();
                        }
                    }
                });
                for expected in 0..words {
                    let word = loop {
                        match consumer.pop() {
                            Some(word) => break word,
                            None => std::thread::yield_now(),
                        }
                    };
                    assert_eq!(word, expected);
                }
                assert!(consumer.is_empty());
            });
        }
    }
}
