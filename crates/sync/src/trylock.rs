//! A lock that is only ever tried.
//!
//! The standard library's would do, but for its unlock, which swaps in case somebody blocks, and for loom, which does
//! not see an unlock and a `try_lock` as a race, and so would not find a lost hand-over.
#![expect(
    unsafe_code,
    reason = "a lock hands out what the compiler cannot see to be exclusive"
)]

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crate::atomic::{AtomicBool, Ordering};

/// A value that one thread at a time may use.
pub struct TryLock<T> {
    held: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: a reference to the value is given to one thread at a time (`try_lock`), which is no more than sending it.
unsafe impl<T: Send> Sync for TryLock<T> {}

impl<T> TryLock<T> {
    /// A lock that no thread holds.
    #[must_use]
    pub fn new(value: T) -> Self {
        Self {
            held: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// The right to the value, unless another thread has it. Looks before it leaps: those who fail do not take the line from
    /// the one who holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<TryLockGuard<'_, T>> {
        let looks_free = !self.held.load(Ordering::Relaxed);
        let free = looks_free && self.take();
        free.then(|| TryLockGuard {
            lock: self,
            exclusive: PhantomData,
        })
    }

    /// Whether a thread had the right to the value a moment ago.
    #[inline]
    pub fn is_held(&self) -> bool {
        self.held.load(Ordering::Relaxed)
    }

    #[inline]
    fn take(&self) -> bool {
        self.held
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
}

impl<T> fmt::Debug for TryLock<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TryLock").finish_non_exhaustive()
    }
}

/// The right to a lock's value, until dropped. If that happens in a panic the lock stays shut: the value is not to
/// be trusted.
#[derive(Debug)]
pub struct TryLockGuard<'a, T> {
    lock: &'a TryLock<T>,
    /// It is a `&mut T`, and as such shared between threads only where `T` may be.
    exclusive: PhantomData<&'a mut T>,
}

impl<T> Deref for TryLockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the exchange that made this guard found the lock free; nobody else gets at the value until it is dropped.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for TryLockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for TryLockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.lock.held.store(false, Ordering::Release);
        }
    }
}
