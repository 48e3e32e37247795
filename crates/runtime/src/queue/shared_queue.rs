//! A bounded queue of requests that all workers share: any of them puts in, any of them takes out, and none waits for another.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;

use headway_sync::Padded;

/// A queue with many producers and many consumers, and its two counters, which monitors compare.
pub(crate) struct SharedQueue<T> {
    requests: ArrayQueue<T>,
    taken: Padded<AtomicU64>,
    put: Padded<AtomicU64>,
}

impl<T> SharedQueue<T> {
    /// An empty queue with room for `capacity` requests, above 0.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            requests: ArrayQueue::new(capacity),
            taken: Padded(AtomicU64::new(0)),
            put: Padded(AtomicU64::new(0)),
        }
    }

    /// Puts a request at the tail; gives it back where the queue is full.
    #[inline]
    pub(crate) fn push(&self, request: T) -> Option<T> {
        match self.requests.push(request) {
            Ok(()) => {
                self.put.fetch_add(1, Ordering::Relaxed);
                None
            }
            Err(request) => Some(request),
        }
    }

    /// Takes the request at the head.
    #[inline]
    pub(crate) fn pop(&self) -> Option<T> {
        let request = self.requests.pop()?;
        self.taken.fetch_add(1, Ordering::Relaxed);
        Some(request)
    }

    /// Requests in the queue a moment ago.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether the queue was empty a moment ago.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Requests ever taken and ever put, as [`Backlog::shared_counters`](headway_policy::server::role::Backlog::shared_counters).
    #[inline]
    pub(crate) fn counters(&self) -> (u64, u64) {
        (
            self.taken.load(Ordering::Relaxed),
            self.put.load(Ordering::Relaxed),
        )
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::sync::atomic::AtomicUsize;

    proptest! {
        /// One thread sees a list with a bound, and counters that tell its length. Where the next operation is `true` it pushes.
        #[test]
        fn it_is_a_list_with_a_bound(room in 1..9_usize, pushes in prop::collection::vec(any::<bool>(), 0..200)) {
            let (queue, mut list) = (SharedQueue::new(room), VecDeque::new());
            let (mut put, mut taken) = (0, 0);
            for push in pushes {
                if push {
                    let fits = list.len() < room;
                    prop_assert_eq!(queue.push(put), (!fits).then_some(put));
                    list.extend(fits.then_some(put));
                    put += u64::from(fits);
                } else {
                    let first = list.pop_front();
                    prop_assert_eq!(queue.pop(), first);
                    taken += u64::from(first.is_some());
                }
                prop_assert_eq!(queue.counters(), (taken, put));
            }
        }
    }

    /// Every thread pushes its words and takes whatever there is, as workers do that share a queue.
    #[test]
    fn each_word_is_taken_once_by_somebody() {
        const THREADS: usize = 3;
        const WORDS: u64 = 50_000;
        for room in [1, 7, 64] {
            let (queue, pushing) = (SharedQueue::new(room), AtomicUsize::new(THREADS));
            let mut all: Vec<u64> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..THREADS as u64)
                    .map(|thread| {
                        let (queue, pushing) = (&queue, &pushing);
                        scope.spawn(move || {
                            let mut taken = Vec::new();
                            for word in thread * WORDS..(thread + 1) * WORDS {
                                while queue.push(word).is_some() {
                                    taken.extend(queue.pop());
                                }
                                taken.extend((word % 2 == 0).then(|| queue.pop()).flatten());
                            }
                            pushing.fetch_sub(1, Ordering::AcqRel);
                            while pushing.load(Ordering::Acquire) > 0 {
                                taken.extend(queue.pop());
                            }
                            taken.extend(std::iter::from_fn(|| queue.pop()));
                            taken
                        })
                    })
                    .collect();
                threads
                    .into_iter()
                    .flat_map(|thread| thread.join().unwrap())
                    .collect()
            });
            all.sort_unstable();
            let words = THREADS as u64 * WORDS;
            assert!(all.into_iter().eq(0..words), "room {room}");
            assert_eq!(queue.counters(), (words, words), "room {room}");
        }
    }
}
