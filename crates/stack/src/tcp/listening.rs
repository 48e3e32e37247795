//! Connections that wait to be accepted.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::flow::FlowKey;
use super::wakers::Wakers;

/// An established connection, and where it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitingConnection {
    pub(crate) key: FlowKey,
    pub(crate) id: u32,
}

/// The queue of a listener, which all tables add to.
#[derive(Debug)]
pub(crate) struct AcceptQueue {
    backlog: usize,
    state: Mutex<AcceptState>,
}

#[derive(Debug, Default)]
struct AcceptState {
    waiting: VecDeque<WaitingConnection>,
    /// Places of connections that are being made.
    reserved: usize,
    wakers: Wakers,
    is_closed: bool,
}

impl AcceptQueue {
    pub(crate) fn new(backlog: usize) -> Self {
        Self {
            backlog: backlog.max(1),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, AcceptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a place for a connection that is being made; `false` if there is none.
    pub(crate) fn reserve(&self) -> bool {
        let mut state = self.state();
        let has_place = !state.is_closed && state.waiting.len() + state.reserved < self.backlog;
        state.reserved += usize::from(has_place);
        has_place
    }

    /// Adds a connection for which there was a place, and wakes all that wait for one. Returns `false` if the listener has gone meanwhile.
    pub(crate) fn push(&self, connection: WaitingConnection) -> bool {
        let mut state = self.state();
        state.reserved -= 1;
        if state.is_closed {
            return false;
        }
        state.waiting.push_back(connection);
        state.wakers.wake();
        true
    }

    /// The next connection. Without one, `waker` is called when there is.
    pub(crate) fn pop(&self, waker: &Waker) -> Option<WaitingConnection> {
        let mut state = self.state();
        let connection = state.waiting.pop_front();
        if connection.is_none() {
            state.wakers.add(waker);
        }
        connection
    }

    /// Whether a connection waits. Without one, `waker` is called when there is.
    pub(crate) fn is_ready(&self, waker: &Waker) -> bool {
        let mut state = self.state();
        let is_ready = !state.waiting.is_empty();
        if !is_ready {
            state.wakers.add(waker);
        }
        is_ready
    }

    /// Takes no more; returns those that nobody accepted.
    pub(crate) fn close(&self) -> VecDeque<WaitingConnection> {
        let mut state = self.state();
        state.is_closed = true;
        std::mem::take(&mut state.waiting)
    }
}
