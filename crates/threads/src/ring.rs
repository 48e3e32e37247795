//! A kthread's run queue: a ring that its owner fills and empties, and that others steal from.
//!
//! Its two counters are those of the kthread's line, which the arbiter reads: `head` counts the threads taken, `tail` those put. The owner writes words
//! and moves `tail`. A taker, the owner included, reads words first and then moves `head` by a compare-and-swap. If that succeeds, `head` had not
//! moved, so the owner cannot have reused the places.

use headway_policy::role::Steal;
use headway_sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The places of the ring: enough that few threads go through the overflow list, few enough to stay in the first-level cache.
#[cfg(not(loom))]
pub(crate) const PLACES: usize = 256;
#[cfg(loom)]
pub(crate) const PLACES: usize = 4;

/// The words of the ring.
#[derive(Debug)]
pub(crate) struct UthreadRing(Box<[AtomicUsize; PLACES]>);

/// The counters of a ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RingEnds<'a> {
    /// Words ever taken.
    pub(crate) head: &'a AtomicU64,
    /// Words ever put.
    pub(crate) tail: &'a AtomicU64,
}

impl RingEnds<'_> {
    /// The number of words that waited a moment ago.
    #[inline]
    pub(crate) fn len(self) -> usize {
        let head = self.head.load(Ordering::Relaxed);
        let waiting = self.tail.load(Ordering::Relaxed).wrapping_sub(head);
        // The two were read one after the other.
        if waiting > PLACES as u64 {
            0
        } else {
            waiting as usize
        }
    }
}

impl Default for UthreadRing {
    fn default() -> Self {
        UthreadRing(Box::new(std::array::from_fn(|_| AtomicUsize::new(0))))
    }
}

impl UthreadRing {
    /// Puts a word at the tail, for the owner. `false`: the ring is full.
    #[inline(always)]
    pub(crate) fn push(&self, ends: RingEnds<'_>, word: usize) -> bool {
        let tail = ends.tail.load(Ordering::Relaxed);
        // Acquire: the takers have read the words whose places are reused.
        let head = ends.head.load(Ordering::Acquire);
        if tail.wrapping_sub(head) >= PLACES as u64 {
            return false;
        }
        self.word(tail).store(word, Ordering::Relaxed);
        ends.tail.store(tail.wrapping_add(1), Ordering::Release);
        true
    }

    /// Takes the word at the head, for the owner. Unless others may steal (`steals`), it needs no atomic operation.
    #[inline(always)]
    pub(crate) fn pop(&self, ends: RingEnds<'_>, steals: bool) -> Option<usize> {
        let tail = ends.tail.load(Ordering::Relaxed);
        let mut head = ends.head.load(Ordering::Relaxed);
        loop {
            if head == tail {
                return None;
            }
            let word = self.word(head).load(Ordering::Relaxed);
            let after = head.wrapping_add(1);
            if !steals {
                ends.head.store(after, Ordering::Relaxed);
                return Some(word);
            }
            match ends
                .head
                .compare_exchange(head, after, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return Some(word),
                Err(now) => head = now,
            }
        }
    }

    /// Moves up to `most` words from the head of this ring to the tail of the thief's `own`, as far as there is room.
    pub(crate) fn steal(
        &self,
        ends: RingEnds<'_>,
        most: usize,
        own: &UthreadRing,
        own_ends: RingEnds<'_>,
    ) -> Steal {
        let head = ends.head.load(Ordering::Acquire);
        // Acquire: the owner wrote the words' threads before it moved `tail`.
        let tail = ends.tail.load(Ordering::Acquire);
        let waiting = tail.wrapping_sub(head);
        if waiting == 0 {
            return Steal::Empty;
        }
        let own_tail = own_ends.tail.load(Ordering::Relaxed);
        let room = PLACES as u64 - own_tail.wrapping_sub(own_ends.head.load(Ordering::Acquire));
        let count = waiting.min(most as u64).min(room);
        if count == 0 || waiting > PLACES as u64 {
            return Steal::Retry;
        }
        for offset in 0..count {
            let word = self.word(head.wrapping_add(offset)).load(Ordering::Relaxed);
            own.word(own_tail.wrapping_add(offset))
                .store(word, Ordering::Relaxed);
        }
        let taken = ends.head.compare_exchange(
            head,
            head.wrapping_add(count),
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
        if taken.is_err() {
            return Steal::Retry;
        }
        own_ends
            .tail
            .store(own_tail.wrapping_add(count), Ordering::Release);
        Steal::Batch(count as usize)
    }

    #[inline(always)]
    fn word(&self, place: u64) -> &AtomicUsize {
        &self.0[place as usize % PLACES]
    }
}
