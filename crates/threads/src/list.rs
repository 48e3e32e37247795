//! Lists of threads that wait, first come, first served. A thread is in one list at a time, so the links lie in the thread.

use std::cell::Cell;

#[cfg(not(loom))]
use crate::head::Uthread;
#[cfg(loom)]
use crate::model::Uthread;

/// A thread's place in a list. The lock of the list guards it.
#[derive(Debug, Default)]
pub(crate) struct Links {
    before: Cell<Option<Uthread>>,
    after: Cell<Option<Uthread>>,
    listed: Cell<bool>,
}

/// Threads that wait for something.
#[derive(Debug, Default)]
pub(crate) struct UthreadList {
    first: Option<Uthread>,
    last: Option<Uthread>,
}

// SAFETY: whoever has the list may resume its threads, in any thread.
#[expect(unsafe_code, reason = "threads that may change threads")]
unsafe impl Send for UthreadList {}

impl UthreadList {
    /// Puts a thread at the end. It is in no list.
    pub(crate) fn push(&mut self, thread: Uthread) {
        let links = thread.links();
        links.before.set(self.last);
        links.after.set(None);
        links.listed.set(true);
        match self.last {
            Some(last) => last.links().after.set(Some(thread)),
            None => self.first = Some(thread),
        }
        self.last = Some(thread);
    }

    /// Takes the first.
    pub(crate) fn pop(&mut self) -> Option<Uthread> {
        let first = self.first?;
        self.unlink(first);
        Some(first)
    }

    /// Takes a thread out, if it is still in. It is in no other list.
    pub(crate) fn remove(&mut self, thread: Uthread) -> bool {
        let listed = thread.links().listed.get();
        if listed {
            self.unlink(thread);
        }
        listed
    }

    fn unlink(&mut self, thread: Uthread) {
        let links = thread.links();
        let (before, after) = (links.before.take(), links.after.take());
        match before {
            Some(before) => before.links().after.set(after),
            None => self.first = after,
        }
        match after {
            Some(after) => after.links().before.set(before),
            None => self.last = before,
        }
        links.listed.set(false);
    }
}
