//! A spin lock around a few instructions.
#![expect(unsafe_code, reason = "a lock gives access to what it guards")]

use std::cell::UnsafeCell;
use std::thread;

use headway_sync::atomic::{AtomicBool, Ordering};
use headway_sync::hint::spin_loop;

/// Guards a list or a heap for a few instructions. Threads that hold it are in a no-preempt section, so waiters always wait for running
/// code.
#[derive(Debug, Default)]
pub(crate) struct SpinLock<T> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has the value.
unsafe impl<T: Send> Send for SpinLock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// Calls `access` with the value. It does not block, and is called inside a no-preempt section.
    #[inline(always)]
    pub(crate) fn with<R>(&self, access: impl FnOnce(&mut T) -> R) -> R {
        if self.locked.swap(true, Ordering::Acquire) {
            self.wait();
        }
        // SAFETY: the lock is held, and `access` does not keep the reference.
        let result = access(unsafe { &mut *self.value.get() });
        self.locked.store(false, Ordering::Release);
        result
    }

    #[cold]
    fn wait(&self) {
        let mut spins = 0_u32;
        loop {
            if !self.locked.load(Ordering::Relaxed) && !self.locked.swap(true, Ordering::Acquire) {
                return;
            }
            spin_loop();
            spins += 1;
            if spins.is_multiple_of(128) {
                // The holder may wait for this core.
                thread::yield_now();
            }
        }
    }
}
