//! A worker's run queue, as a queue of requests.

use headway_sync::run_queue::{RunQueue, Stolen, Thief, run_queue};

use super::token::RequestWord;

/// The end of a run queue that its worker fills and empties.
pub(crate) struct RequestQueue(RunQueue);

/// The end of a worker's run queue that others steal from.
#[derive(Clone)]
pub(crate) struct RequestThief(Thief);

/// A run queue for as many requests as there are.
pub(crate) fn request_queue(requests: usize, steals: bool) -> (RequestQueue, RequestThief) {
    let (owner, thief) = run_queue(requests, steals);
    (RequestQueue(owner), RequestThief(thief))
}

impl RequestQueue {
    /// Puts a request at the tail.
    ///
    /// # Panics
    /// When the queue is full: it was made for fewer requests than there are.
    #[inline]
    pub(crate) fn push(&mut self, request: RequestWord) {
        let pushed = self.0.push(request.into_word());
        pushed.expect("a run queue has room for all requests there are");
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<RequestWord> {
        self.0.pop().map(RequestWord::of_word)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl RequestThief {
    /// Moves up to `max` requests from the head of this queue to the tail of `own`.
    #[inline]
    pub(crate) fn steal(&self, max: usize, own: &mut RequestQueue) -> Stolen {
        self.0.steal(max, &mut own.0)
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
