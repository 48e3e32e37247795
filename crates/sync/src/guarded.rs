//! A value under a lock, and threads that wait for it to change.

use std::sync::PoisonError;
use std::time::Duration;

use crate::{Condvar, Mutex};

#[cfg(loom)]
pub use loom::sync::MutexGuard;
#[cfg(shuttle)]
pub use shuttle::sync::MutexGuard;
#[cfg(not(any(loom, shuttle)))]
pub use std::sync::MutexGuard;

/// A value under a lock, with a condition variable. A thread of a [world](crate::world) waits by its world's scheduler.
///
/// A panic under the lock leaves the value as it is: whoever comes next gets it.
#[derive(Debug, Default)]
pub struct Guarded<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Guarded<T> {
    /// The value, under a lock of its own.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            changed: Condvar::new(),
        }
    }

    /// The value, while the lock is held.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, unless somebody holds the lock.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.value.try_lock().ok()
    }

    /// Waits until it is notified; it may return early.
    pub fn wait<'a>(&'a self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        #[cfg(not(any(loom, shuttle)))]
        if let Some(scheduler) = crate::world::current() {
            drop(guard);
            scheduler.wait(self.place(), None);
            return self.lock();
        }
        let waited = self.changed.wait(guard);
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`wait`](Self::wait), for so long at most.
    pub fn wait_for<'a>(&'a self, guard: MutexGuard<'a, T>, most: Duration) -> MutexGuard<'a, T> {
        #[cfg(not(any(loom, shuttle)))]
        if let Some(scheduler) = crate::world::current() {
            drop(guard);
            let most_ns = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
            scheduler.wait(self.place(), Some(most_ns));
            return self.lock();
        }
        let waited = self.changed.wait_timeout(guard, most);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits while the value is like this.
    pub fn wait_while<'a>(
        &'a self,
        mut guard: MutexGuard<'a, T>,
        mut waits: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while waits(&mut guard) {
            guard = self.wait(guard);
        }
        guard
    }

    /// Wakes a thread that waits, if there is one.
    pub fn notify_one(&self) {
        self.notify(false);
    }

    /// Wakes every thread that waits.
    pub fn notify_all(&self) {
        self.notify(true);
    }

    fn notify(&self, all: bool) {
        #[cfg(not(any(loom, shuttle)))]
        if let Some(scheduler) = crate::world::current() {
            return scheduler.notify(self.place(), all);
        }
        if all {
            self.changed.notify_all();
        } else {
            self.changed.notify_one();
        }
    }

    #[cfg(not(any(loom, shuttle)))]
    fn place(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}
