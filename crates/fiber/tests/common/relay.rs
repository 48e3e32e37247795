//! Fibers that go around among threads.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

use super::Rng;

/// A queue for each thread. What one thread passes on goes to the next one's, so with more than one thread it never stays where it was.
pub(crate) struct Relay<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    queues: Vec<VecDeque<T>>,
    /// Items that were not dropped out.
    left: usize,
}

impl<T> Relay<T> {
    /// A relay among `threads` threads, which begin with `items`.
    pub(crate) fn new(threads: usize, items: impl Iterator<Item = T>) -> Relay<T> {
        let mut queues: Vec<_> = (0..threads).map(|_| VecDeque::new()).collect();
        let mut left = 0;
        for item in items {
            queues[left % threads].push_back(item);
            left += 1;
        }
        Relay {
            state: Mutex::new(State { queues, left }),
            changed: Condvar::new(),
        }
    }

    /// Any of the thread's, so that they overtake each other; waits for one. Nothing when all have dropped out.
    pub(crate) fn take(&self, thread: usize, rng: &mut Rng) -> Option<T> {
        let mut state = self
            .changed
            .wait_while(self.state(), |state: &mut State<T>| {
                state.left > 0 && state.queues[thread].is_empty()
            })
            .unwrap();
        let queue = &mut state.queues[thread];
        queue.remove(rng.below(queue.len().max(1)))
    }

    pub(crate) fn pass_on(&self, thread: usize, item: T) {
        let mut state = self.state();
        let next = (thread + 1) % state.queues.len();
        state.queues[next].push_back(item);
        drop(state);
        self.changed.notify_all();
    }

    /// One that was taken will not be passed on.
    pub(crate) fn drop_out(&self) {
        self.state().left -= 1;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap()
    }
}
