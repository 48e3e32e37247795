//! The state of a lock: held or free, and the number of waiters.

use headway_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use headway_sync::barrier;

/// An unlocker clears `locked` and reads `waiters`; a waiter counts itself and tries `locked` again. A barrier between the two steps makes one of them
/// see the other.
#[derive(Debug, Default)]
pub(crate) struct LockState {
    locked: AtomicBool,
    /// Waiters in the list, or on their way into it.
    waiters: AtomicUsize,
}

impl LockState {
    /// Takes the lock if it is free.
    #[inline(always)]
    pub(crate) fn takes(&self) -> bool {
        self.locked
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Whether the lock was free a moment ago.
    #[inline]
    pub(crate) fn seems_free(&self) -> bool {
        !self.locked.load(Ordering::Relaxed)
    }

    /// Releases the lock. Returns whether the caller must wake a waiter.
    #[inline(always)]
    pub(crate) fn release(&self) -> bool {
        self.locked.store(false, Ordering::Release);
        barrier::light();
        self.has_waiters()
    }

    #[inline(always)]
    pub(crate) fn has_waiters(&self) -> bool {
        self.waiters.load(Ordering::Relaxed) > 0
    }

    /// Counts a waiter. It tries once more to [take](LockState::takes) the lock, under the lock of the list, before it puts itself there.
    pub(crate) fn comes(&self) {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        barrier::heavy();
    }

    /// Uncounts a waiter of [`comes`](LockState::comes).
    pub(crate) fn goes(&self) {
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }
}
