//! A bounded queue of requests that all workers share: any of them puts in, any of them takes out, and none waits for another.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_queue::ArrayQueue;

use crate::sync::Padded;
use crate::token::RequestWord;

/// A queue with many producers and many consumers, and its two counters, which monitors compare.
pub(crate) struct SharedQueue {
    requests: ArrayQueue<RequestWord>,
    taken: Padded<AtomicU64>,
    put: Padded<AtomicU64>,
}

impl SharedQueue {
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
    pub(crate) fn push(&self, request: RequestWord) -> Option<RequestWord> {
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
    pub(crate) fn pop(&self) -> Option<RequestWord> {
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

    /// Requests ever taken and ever put, as [`Backlog::shared_counters`](headway_policy::role::Backlog::shared_counters).
    #[inline]
    pub(crate) fn counters(&self) -> (u64, u64) {
        (
            self.taken.load(Ordering::Relaxed),
            self.put.load(Ordering::Relaxed),
        )
    }
}
