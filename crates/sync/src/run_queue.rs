//! A worker's run queue: a ring that its owner fills and empties, and that others steal batches from.
//!
//! Places are counted without end; `taken` is the first that holds a word, `put` the first that does not. The owner writes words and moves
//! `put`; whoever takes words, the owner too, reads them first and then moves `taken` by a compare-and-swap. Where that succeeds nobody
//! moved it since, so the owner cannot have reused the places, and the words read are those that were there. Where it fails they
//! are forgotten. (Chase and Lev's deque takes at both ends; requests are served first come, first served, so one end is enough.)

use crate::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::ring::Full;
use crate::{Arc, Padded};

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
        taken: Padded(AtomicUsize::new(0)),
        put: Padded(AtomicUsize::new(0)),
        steals,
    });
    let owner = RunQueue {
        shared: Arc::clone(&shared),
        put: 0,
        taken: 0,
    };
    (owner, Thief(shared))
}

#[derive(Debug)]
struct RunQueueBuffer {
    words: Box<[AtomicU64]>,
    taken: Padded<AtomicUsize>,
    put: Padded<AtomicUsize>,
    steals: bool,
}

impl RunQueueBuffer {
    #[inline]
    fn word(&self, place: usize) -> &AtomicU64 {
        &self.words[place & (self.words.len() - 1)]
    }

    /// Moves `taken` on from `from` by `count`; fails where another took words meanwhile.
    #[inline]
    fn take(&self, from: usize, count: usize) -> bool {
        // Release: the words were read before. Acquire: so the next look at `taken` is later.
        let to = from.wrapping_add(count);
        self.taken
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

/// The owner's end.
#[derive(Debug)]
pub struct RunQueue {
    shared: Arc<RunQueueBuffer>,
    put: usize,
    /// The shared `taken` when the queue last looked too full.
    taken: usize,
}

/// The end of those who steal.
#[derive(Clone, Debug)]
pub struct Thief(Arc<RunQueueBuffer>);

/// What became of an attempt to steal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stolen {
    /// The queue was empty.
    Empty,
    /// Another took words at the same time: there may be more.
    Retry,
    /// So many words are at the tail of the thief's own queue.
    Batch(usize),
}

impl RunQueue {
    /// Puts a word at the tail.
    ///
    /// # Errors
    /// [`Full`], with the word.
    #[inline]
    pub fn push(&mut self, word: u64) -> Result<(), Full> {
        if self.room_for(1) == 0 {
            return Err(Full(word));
        }
        self.write(0, word);
        self.publish(1);
        Ok(())
    }

    /// Takes the word at the head.
    #[inline]
    pub fn pop(&mut self) -> Option<u64> {
        let shared = &*self.shared;
        loop {
            let taken = shared.taken.load(Ordering::Relaxed);
            if taken == self.put {
                return None;
            }
            let word = shared.word(taken).load(Ordering::Relaxed);
            if !shared.steals {
                shared.taken.store(taken.wrapping_add(1), Ordering::Relaxed);
                return Some(word);
            }
            if shared.take(taken, 1) {
                return Some(word);
            }
        }
    }

    /// How many words there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.put
            .wrapping_sub(self.shared.taken.load(Ordering::Relaxed))
    }

    /// Whether there is none.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Free places, at most `wanted`.
    #[inline]
    fn room_for(&mut self, wanted: usize) -> usize {
        let capacity = self.shared.words.len();
        if capacity - self.put.wrapping_sub(self.taken) < wanted {
            // Acquire: whoever took the words has read them.
            self.taken = self.shared.taken.load(Ordering::Acquire);
        }
        (capacity - self.put.wrapping_sub(self.taken)).min(wanted)
    }

    #[inline]
    fn write(&self, offset: usize, word: u64) {
        let place = self.put.wrapping_add(offset);
        self.shared.word(place).store(word, Ordering::Relaxed);
    }

    #[inline]
    fn publish(&mut self, count: usize) {
        self.put = self.put.wrapping_add(count);
        self.shared.put.store(self.put, Ordering::Release);
    }
}

impl Thief {
    /// Moves up to `max` words from the head of this queue to the tail of `own`, as far as there is room.
    #[inline]
    pub fn steal(&self, max: usize, own: &mut RunQueue) -> Stolen {
        let victim = &*self.0;
        debug_assert!(victim.steals, "the owner takes care of thieves");
        let taken = victim.taken.load(Ordering::Acquire);
        // Acquire: what the words stand for was written before.
        let put = victim.put.load(Ordering::Acquire);
        let waiting = put.wrapping_sub(taken);
        if waiting == 0 {
            return Stolen::Empty;
        }
        let count = own.room_for(waiting.min(max));
        if count == 0 || waiting > victim.words.len() {
            return Stolen::Retry;
        }
        for offset in 0..count {
            let word = victim.word(taken.wrapping_add(offset));
            own.write(offset, word.load(Ordering::Relaxed));
        }
        if !victim.take(taken, count) {
            return Stolen::Retry;
        }
        own.publish(count);
        Stolen::Batch(count)
    }

    /// How many words there were a moment ago.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        let taken = self.0.taken.load(Ordering::Relaxed);
        let waiting = self.0.put.load(Ordering::Relaxed).wrapping_sub(taken);
        // The two were read one after the other.
        if waiting > self.0.words.len() {
            0
        } else {
            waiting
        }
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
