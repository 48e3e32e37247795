//! Waiting for a condition that other threads bring about.
#![expect(
    unsafe_code,
    reason = "a timer that points to a list; a lock that is handed over"
)]

use std::cell::Cell;
use std::fmt;
use std::mem::forget;
use std::ptr;
use std::time::Duration;

use headway_fiber::NoPreempt;

use crate::head::{Uthread, UthreadList};
use crate::mutex::MutexGuard;
use crate::schedule::ready;
use crate::spin::SpinLock;
use crate::suspending::{Suspending, ready_in_section};

/// Threads of a runtime that wait until others notify them, as [`std::sync::Condvar`]. Any thread may notify.
#[derive(Default)]
pub struct Condvar {
    list: SpinLock<UthreadList>,
}

/// A wait with a timeout, on the stack of the waiting thread.
struct TimedWait<'a> {
    list: &'a SpinLock<UthreadList>,
    timed_out: Cell<bool>,
}

impl Condvar {
    /// A condition variable without waiters.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Releases the lock, waits for a notification, and takes the lock again. A notification between the release and the wait is not lost. Check the
    /// condition again afterwards.
    ///
    /// # Panics
    /// The caller is no thread of a runtime.
    #[inline]
    pub fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let mutex = guard.mutex();
        let suspending = Suspending::begin().expect("a thread of a runtime");
        let me = suspending.me();
        me.head().takes_lock.set(mutex.address());
        self.list.with(|list| list.push(me));
        forget(guard);
        suspending.wait_after(|next| mutex.pass_on(next));
        if me.head().takes_lock.replace(ptr::null()).is_null() {
            // SAFETY: the thread that ran before handed it over.
            return unsafe { mutex.assume_locked() };
        }
        mutex.lock()
    }

    /// As [`wait`](Condvar::wait), for `duration` at most. Also returns whether the wait timed out.
    ///
    /// # Panics
    /// The caller is no thread of a runtime.
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        duration: Duration,
    ) -> (MutexGuard<'a, T>, bool) {
        let mutex = guard.mutex();
        let suspending = Suspending::begin().expect("a thread of a runtime");
        self.list.with(|list| list.push(suspending.me()));
        let due_ns = suspending.due_in(duration);
        let wait = TimedWait {
            list: &self.list,
            timed_out: Cell::new(false),
        };
        drop(guard);
        // SAFETY: `wait` lives until this returns.
        unsafe { suspending.wait_until(due_ns, times_out, (&raw const wait).cast()) };
        (mutex.lock(), wait.timed_out.get())
    }

    /// Wakes the thread that has waited longest.
    #[inline]
    pub fn notify_one(&self) {
        let _section = NoPreempt::enter();
        if let Some(thread) = self.list.with(UthreadList::pop) {
            ready_in_section(thread);
        }
    }

    /// Wakes every thread that waits.
    pub fn notify_all(&self) {
        let _section = NoPreempt::enter();
        let mut waiting = self.list.with(std::mem::take);
        while let Some(thread) = waiting.pop() {
            ready(thread);
        }
    }
}

/// # Safety
/// `wait` points to the [`TimedWait`] of the thread, which still waits.
unsafe fn times_out(wait: *const (), thread: Uthread) -> bool {
    // SAFETY: the caller's promise.
    let wait = unsafe { &*wait.cast::<TimedWait<'_>>() };
    let first = wait.list.with(|list| list.remove(thread));
    wait.timed_out.set(first);
    first
}

impl fmt::Debug for Condvar {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Condvar").finish_non_exhaustive()
    }
}
