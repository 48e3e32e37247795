//! Bounded queues between threads.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::condvar::Condvar;
use crate::mutex::Mutex;

/// A queue of at most `room` values, any number of senders and of receivers. At least one value has room.
pub fn channel<T>(room: usize) -> (Sender<T>, Receiver<T>) {
    let room = room.max(1);
    let shared = Arc::new(ChannelShared {
        state: Mutex::new(ChannelState {
            values: VecDeque::with_capacity(room.min(1024)),
            senders: 1,
            receivers: 1,
        }),
        room,
        sent: Condvar::new(),
        received: Condvar::new(),
    });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

struct ChannelShared<T> {
    state: Mutex<ChannelState<T>>,
    room: usize,
    sent: Condvar,
    received: Condvar,
}

struct ChannelState<T> {
    values: VecDeque<T>,
    senders: usize,
    receivers: usize,
}

/// The value that could not be sent: all receivers are gone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Unsent<T>(pub T);

/// The channel is empty, and all senders are gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreceived;

/// The end into which values go. Clones send into the same channel.
pub struct Sender<T>(Arc<ChannelShared<T>>);

/// The end out of which values come. Clones share them: each value comes out once.
pub struct Receiver<T>(Arc<ChannelShared<T>>);

impl<T> Sender<T> {
    /// Sends a value, and waits for room.
    ///
    /// # Errors
    /// All receivers are gone: the value comes back.
    ///
    /// # Panics
    /// The channel is full, and the caller is no thread of a runtime.
    pub fn send(&self, value: T) -> Result<(), Unsent<T>> {
        let mut state = self.0.state.lock();
        while state.values.len() == self.0.room && state.receivers > 0 {
            state = self.0.received.wait(state);
        }
        if state.receivers == 0 {
            return Err(Unsent(value));
        }
        state.values.push_back(value);
        drop(state);
        self.0.sent.notify_one();
        Ok(())
    }
}

impl<T> Receiver<T> {
    /// Takes the oldest value, and waits for one.
    ///
    /// # Errors
    /// The channel is empty, and all senders are gone.
    ///
    /// # Panics
    /// The channel is empty, and the caller is no thread of a runtime.
    pub fn recv(&self) -> Result<T, Unreceived> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(value) = state.values.pop_front() {
                drop(state);
                self.0.received.notify_one();
                return Ok(value);
            }
            if state.senders == 0 {
                return Err(Unreceived);
            }
            state = self.0.sent.wait(state);
        }
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.state.lock().senders += 1;
        Sender(Arc::clone(&self.0))
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.0.state.lock().receivers += 1;
        Receiver(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.senders -= 1;
        let last = state.senders == 0;
        drop(state);
        if last {
            self.0.sent.notify_all();
        }
    }
}

impl<T> Drop for Receiver<T> {
    /// The last receiver drops the values left in the channel.
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.receivers -= 1;
        let rest = if state.receivers == 0 {
            std::mem::take(&mut state.values)
        } else {
            VecDeque::new()
        };
        let last = state.receivers == 0;
        drop(state);
        drop(rest);
        if last {
            self.0.received.notify_all();
        }
    }
}

impl<T> fmt::Debug for Unsent<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Unsent(..)")
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Receiver").finish_non_exhaustive()
    }
}
