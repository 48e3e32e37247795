//! Whether a lock is held, and how many wait for it.

use crate::barrier;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// Who unlocks clears `locked` and looks at `waiters`; who waits counts itself and tries `locked` again. A barrier in between lets one of them see the
/// other.
#[derive(Debug, Default)]
pub(crate) struct LockState {
    locked: AtomicBool,
    /// Those in the list of waiters, or on their way into it.
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

    /// Releases the lock. Whether somebody waits, whom the caller wakes.
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

    /// Somebody is about to wait. It tries once more to [take](LockState::takes) the lock, under the lock of the list, before it puts itself there.
    pub(crate) fn comes(&self) {
        self.waiters.fetch_add(1, Ordering::SeqCst);
        barrier::heavy();
    }

    /// Somebody who [came](LockState::comes) waits no longer.
    pub(crate) fn goes(&self) {
        self.waiters.fetch_sub(1, Ordering::Relaxed);
    }
}
