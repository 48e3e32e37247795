//! A worker's run queue: a ring that its owner fills and empties, and that others steal batches from.
//!
//! Places are counted without end; `head` is the first that holds a word, `tail` the first that does not. The owner writes words and moves
//! `tail`. A taker, the owner included, reads words first and then moves `head` by a compare-and-swap. If that succeeds, `head` had not moved
//! since, so the owner cannot have reused the places, and the words read are those that were there. If it fails, the taker forgets
//! them. (Chase and Lev's deque takes at both ends; requests are served first come, first served, so one end is enough.)
//!
//! [`run_queue`] makes a queue with memory of its own. [`RunQueueMemory`] is the same queue in memory of the caller, where others count the
//! words that wait.

use crate::atomic::{AtomicU64, Ordering};
use crate::ring::Full;
use crate::{Arc, Padded};

/// A run queue in memory of the caller: its words and its two counters.
///
/// One thread is the owner, which alone calls [`push`](Self::push) and [`pop`](Self::pop), and steals [into](Self::steal) the queue.
#[derive(Clone, Copy, Debug)]
pub struct RunQueueMemory<'a> {
    /// The places; a power of two.
    pub words: &'a [AtomicU64],
    /// Words ever taken.
    pub head: &'a AtomicU64,
    /// Words ever put.
    pub tail: &'a AtomicU64,
}

/// The owner's copies of the counters: `tail` is exact, `head` the one that it last looked at.
#[derive(Clone, Copy, Debug)]
struct OwnerCounters {
    head: u64,
    tail: u64,
}

/// The outcome of an attempt to steal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stolen {
    /// The queue was empty.
    Empty,
    /// Another took words at the same time: there may be more.
    Retry,
    /// So many words are at the tail of the thief's own queue.
    Batch(usize),
}

impl<'a> RunQueueMemory<'a> {
    /// The number of words that waited a moment ago.
    #[inline(always)]
    #[must_use]
    pub fn len(self) -> usize {
        let head = self.head.load(Ordering::Relaxed);
        let waiting = self.tail.load(Ordering::Relaxed).wrapping_sub(head);
        // The two were read one after the other.
        if waiting > self.capacity() {
            0
        } else {
            waiting as usize
        }
    }

    /// Whether no word waited a moment ago.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Puts a word at the tail, for the owner.
    ///
    /// # Errors
    /// [`Full`], with the word.
    #[inline(always)]
    pub fn push(self, word: u64) -> Result<(), Full> {
        self.push_at(&mut self.counters(), word)
    }

    /// Takes the word at the head, for the owner. Unless others may steal (`steals`), it needs no atomic operation.
    #[inline(always)]
    pub fn pop(self, steals: bool) -> Option<u64> {
        self.pop_before(self.tail.load(Ordering::Relaxed), steals)
    }

    /// Moves up to `max` words from the head of this queue to the tail of `own`, as far as there is room, for the owner of `own`.
    #[inline]
    pub fn steal(self, max: usize, own: RunQueueMemory<'_>) -> Stolen {
        self.steal_into(max, own, &mut own.counters())
    }

    /// The counters as the owner reads them.
    #[inline(always)]
    fn counters(self) -> OwnerCounters {
        OwnerCounters {
            tail: self.tail.load(Ordering::Relaxed),
            // Acquire: the takers have read the words whose places are reused.
            head: self.head.load(Ordering::Acquire),
        }
    }

    #[inline(always)]
    fn capacity(self) -> u64 {
        self.words.len() as u64
    }

    #[inline(always)]
    fn word(self, place: u64) -> &'a AtomicU64 {
        &self.words[place as usize & (self.words.len() - 1)]
    }

    #[inline(always)]
    fn push_at(self, owner: &mut OwnerCounters, word: u64) -> Result<(), Full> {
        if self.room_for(1, owner) == 0 {
            return Err(Full(word));
        }
        self.word(owner.tail).store(word, Ordering::Relaxed);
        self.publish(1, owner);
        Ok(())
    }

    #[inline(always)]
    fn pop_before(self, tail: u64, steals: bool) -> Option<u64> {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            if head == tail {
                return None;
            }
            let word = self.word(head).load(Ordering::Relaxed);
            if !steals {
                self.head.store(head.wrapping_add(1), Ordering::Relaxed);
                return Some(word);
            }
            match self.take(head, 1) {
                Ok(_) => return Some(word),
                Err(now) => head = now,
            }
        }
    }

    #[inline(always)]
    fn steal_into(self, max: usize, own: RunQueueMemory<'_>, owner: &mut OwnerCounters) -> Stolen {
        let head = self.head.load(Ordering::Acquire);
        // Acquire: the data that the words stand for was written before.
        let tail = self.tail.load(Ordering::Acquire);
        let waiting = tail.wrapping_sub(head);
        if waiting == 0 {
            return Stolen::Empty;
        }
        let count = own.room_for(waiting.min(max as u64), owner);
        if count == 0 || waiting > self.capacity() {
            return Stolen::Retry;
        }
        for offset in 0..count {
            let word = self.word(head.wrapping_add(offset)).load(Ordering::Relaxed);
            own.word(owner.tail.wrapping_add(offset))
                .store(word, Ordering::Relaxed);
        }
        if self.take(head, count).is_err() {
            return Stolen::Retry;
        }
        own.publish(count, owner);
        Stolen::Batch(count as usize)
    }

    /// Moves `head` on from `from` by `count`. Fails with the present one if another took words meanwhile.
    #[inline(always)]
    fn take(self, from: u64, count: u64) -> Result<u64, u64> {
        // Release: the words were read before. Acquire: so the next look at `head` is later.
        let to = from.wrapping_add(count);
        self.head
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
    }

    /// Free places, at most `wanted`.
    #[inline(always)]
    fn room_for(self, wanted: u64, owner: &mut OwnerCounters) -> u64 {
        if self.capacity() - owner.tail.wrapping_sub(owner.head) < wanted {
            // Acquire: whoever took the words has read them.
            owner.head = self.head.load(Ordering::Acquire);
        }
        (self.capacity() - owner.tail.wrapping_sub(owner.head)).min(wanted)
    }

    #[inline(always)]
    fn publish(self, count: u64, owner: &mut OwnerCounters) {
        owner.tail = owner.tail.wrapping_add(count);
        self.tail.store(owner.tail, Ordering::Release);
    }
}

/// Makes a run queue that holds at least `capacity` words (rounded up to a power of two). Where nobody `steals` from it, the owner
/// takes without a compare-and-swap.
///
/// # Panics
/// When `capacity` is 0.
#[must_use]
pub fn run_queue(capacity: usize, steals: bool) -> (RunQueue, Thief) {
    assert!(capacity > 0, "a run queue holds at least one word");
    let capacity = capacity.next_power_of_two();
    let shared = Arc::new(RunQueueBuffer {
        words: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
        head: Padded(AtomicU64::new(0)),
        tail: Padded(AtomicU64::new(0)),
        steals,
    });
    let owner = RunQueue {
        shared: Arc::clone(&shared),
        counters: OwnerCounters { head: 0, tail: 0 },
    };
    (owner, Thief(shared))
}

#[derive(Debug)]
struct RunQueueBuffer {
    words: Box<[AtomicU64]>,
    head: Padded<AtomicU64>,
    tail: Padded<AtomicU64>,
    steals: bool,
}

impl RunQueueBuffer {
    #[inline(always)]
    fn memory(&self) -> RunQueueMemory<'_> {
        RunQueueMemory {
            words: &self.words,
            head: &self.head,
            tail: &self.tail,
        }
    }
}

/// The owner's end.
#[derive(Debug)]
pub struct RunQueue {
    shared: Arc<RunQueueBuffer>,
    /// Spares the owner most looks at the line that thieves write.
    counters: OwnerCounters,
}

/// The end of those who steal.
#[derive(Clone, Debug)]
pub struct Thief(Arc<RunQueueBuffer>);

impl RunQueue {
    /// Puts a word at the tail.
    ///
    /// # Errors
    /// [`Full`], with the word.
    #[inline]
    pub fn push(&mut self, word: u64) -> Result<(), Full> {
        self.shared.memory().push_at(&mut self.counters, word)
    }

    /// Takes the word at the head.
    #[inline]
    pub fn pop(&mut self) -> Option<u64> {
        let shared = &*self.shared;
        shared
            .memory()
            .pop_before(self.counters.tail, shared.steals)
    }

    /// How many words there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        let head = self.shared.head.load(Ordering::Relaxed);
        self.counters.tail.wrapping_sub(head) as usize
    }

    /// Whether there is none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Thief {
    /// Moves up to `max` words from the head of this queue to the tail of `own`, as far as there is room.
    #[inline]
    pub fn steal(&self, max: usize, own: &mut RunQueue) -> Stolen {
        let victim = &*self.0;
        debug_assert!(victim.steals, "the owner takes care of thieves");
        victim
            .memory()
            .steal_into(max, own.shared.memory(), &mut own.counters)
    }

    /// How many words there were a moment ago.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.memory().len()
    }

    /// Whether there was none a moment ago.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::sync::atomic::AtomicBool;

    #[derive(Clone, Copy, Debug)]
    enum QueueOperation {
        Push,
        Pop,
        Steal(usize),
        Return(usize),
    }

    fn step() -> impl Strategy<Value = QueueOperation> {
        prop_oneof![
            3 => Just(QueueOperation::Push),
            2 => Just(QueueOperation::Pop),
            1 => (1..6_usize).prop_map(QueueOperation::Steal),
            1 => (1..6_usize).prop_map(QueueOperation::Return),
        ]
    }

    proptest! {
        /// Two queues that steal from each other hold what two lists would.
        #[test]
        fn it_is_a_list(capacity in 1..9_usize, steps in prop::collection::vec(step(), 0..200)) {
            let (mut mine, my_thief) = run_queue(capacity, true);
            let (mut theirs, their_thief) = run_queue(capacity, true);
            let capacity = capacity.next_power_of_two();
            let (mut my_list, mut their_list) = (VecDeque::new(), VecDeque::new());
            let mut word = 0;
            for step in steps {
                match step {
                    QueueOperation::Push => {
                        word += 1;
                        let fits = my_list.len() < capacity;
                        prop_assert_eq!(mine.push(word).is_ok(), fits);
                        my_list.extend(fits.then_some(word));
                    }
                    QueueOperation::Pop => prop_assert_eq!(mine.pop(), my_list.pop_front()),
                    QueueOperation::Steal(max) => {
                        let stolen = my_thief.steal(max, &mut theirs);
                        moved(stolen, max, capacity, &mut my_list, &mut their_list)?;
                    }
                    QueueOperation::Return(max) => {
                        let stolen = their_thief.steal(max, &mut mine);
                        moved(stolen, max, capacity, &mut their_list, &mut my_list)?;
                    }
                }
                prop_assert_eq!((mine.len(), my_thief.len()), (my_list.len(), my_list.len()));
            }
        }
    }

    fn moved(
        stolen: Stolen,
        max: usize,
        capacity: usize,
        from: &mut VecDeque<u64>,
        to: &mut VecDeque<u64>,
    ) -> Result<(), TestCaseError> {
        let count = from.len().min(max).min(capacity - to.len());
        let expected = match (from.len(), count) {
            (0, _) => Stolen::Empty,
            (_, 0) => Stolen::Retry,
            _ => Stolen::Batch(count),
        };
        to.extend(from.drain(..count));
        prop_assert_eq!(stolen, expected);
        Ok(())
    }

    #[test]
    fn each_word_is_taken_once_by_owner_or_thief() {
        const WORDS: u64 = 200_000;
        let (mut owner, thief) = run_queue(8, true);
        let done = AtomicBool::new(false);
        let (kept, stolen) = std::thread::scope(|scope| {
            let thieving = scope.spawn(|| {
                let (mut own, _) = run_queue(8, true);
                let mut words = Vec::new();
                while !done.load(Ordering::Acquire) || !thief.is_empty() {
                    thief.steal(3, &mut own);
                    words.extend(std::iter::from_fn(|| own.pop()));
                }
                words
            });
            let mut words = Vec::new();
            for word in 1..=WORDS {
                while owner.push(word).is_err() {
                    words.extend(owner.pop());
                }
                if word % 3 == 0 {
                    words.extend(owner.pop());
                }
            }
            words.extend(std::iter::from_fn(|| owner.pop()));
            done.store(true, Ordering::Release);
            (words, thieving.join().unwrap())
        });
        assert!(
            kept.is_sorted() && stolen.is_sorted(),
            "first come, first served"
        );
        let mut all: Vec<u64> = kept.into_iter().chain(stolen).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(1..=WORDS));
    }
}
