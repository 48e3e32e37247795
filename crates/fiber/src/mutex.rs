//! A lock for fibers: its holder is not interrupted, and a fiber that waits for it lets others run.
#![expect(unsafe_code, reason = "a lock gives access to what it guards")]

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

use headway_sync::atomic::{AtomicBool, Ordering};
use headway_sync::hint::spin_loop;
use headway_sync::thread;

use crate::sections::{NoPreempt, SPINS, in_fiber, no_preempt, yield_now};

/// A mutual exclusion whose sections are no-preempt sections (SYNERGY, section 5.2.2).
///
/// A holder is never suspended, so no fiber of its own thread waits for it, and a fiber of another thread waits for running code. The waiting
/// fiber spins for a moment. Then it yields and tries again at its next turn, if it holds no lock itself. A fiber that holds one, and a caller
/// outside of fibers, lets the operating system run another thread. A fiber that was asked to yield yields when it releases its last lock.
///
/// For short sections. It has no queue, so waiters may overtake each other. A panic does not poison it.
pub struct FiberMutex<T: ?Sized> {
    locked: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has the value.
unsafe impl<T: ?Sized + Send> Send for FiberMutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for FiberMutex<T> {}

impl<T> FiberMutex<T> {
    /// A free lock around `value`.
    #[cfg(not(loom))]
    pub const fn new(value: T) -> Self {
        FiberMutex {
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// A free lock around `value`.
    #[cfg(loom)]
    pub fn new(value: T) -> Self {
        FiberMutex {
            locked: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// The value of a lock that is no longer shared.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> FiberMutex<T> {
    /// Takes the lock, and waits for it without limit. A holder that takes it again waits for ever.
    #[inline]
    pub fn lock(&self) -> FiberMutexGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| self.wait())
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<FiberMutexGuard<'_, T>> {
        // The section begins first: otherwise a signal could suspend the holder between the two.
        let section = NoPreempt::enter();
        let free = self
            .locked
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        free.then(|| FiberMutexGuard {
            mutex: self,
            _section: section,
        })
    }

    /// The value of a lock that is borrowed exclusively.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[cold]
    fn wait(&self) -> FiberMutexGuard<'_, T> {
        loop {
            for _ in 0..SPINS {
                if !self.locked.load(Ordering::Relaxed)
                    && let Some(guard) = self.try_lock()
                {
                    return guard;
                }
                spin_loop();
            }
            if in_fiber() && no_preempt() == 0 {
                yield_now();
            } else {
                thread::yield_now();
            }
        }
    }
}

impl<T: Default> Default for FiberMutex<T> {
    fn default() -> Self {
        FiberMutex::new(T::default())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for FiberMutex<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = out.debug_struct("FiberMutex");
        match self.try_lock() {
            Some(guard) => debug.field("value", &&*guard),
            None => debug.field("value", &format_args!("<locked>")),
        };
        debug.finish()
    }
}

/// The right to a [`FiberMutex`]'s value. Released when dropped, which may suspend the fiber.
pub struct FiberMutexGuard<'a, T: ?Sized> {
    mutex: &'a FiberMutex<T>,
    /// Dropped after the lock was released; keeps the guard in its thread.
    _section: NoPreempt,
}

impl<T: ?Sized> Deref for FiberMutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for FiberMutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only one.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for FiberMutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.locked.store(false, Ordering::Release);
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for FiberMutexGuard<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}
