//! A lock for fibers: who holds it is not interrupted, and who cannot get it lets others run.
#![expect(unsafe_code, reason = "a lock gives access to what it guards")]

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::sync::{
    AtomicBool, NoPreempt, Ordering, SPINS, in_fiber, no_preempt, spin_loop, thread, yield_now,
};

/// A mutual exclusion whose sections are no-preempt sections (SYNERGY, section 5.2.2).
///
/// A holder is never suspended, so no fiber of its own thread ever waits for it; one of another thread's waits for code
/// that runs. It spins for a moment. Then, if it holds no lock itself, it yields, to be tried again at its next turn; if it holds one, or is
/// no fiber, it lets the operating system run somebody else. When the last lock is released, a fiber yields if it was asked meanwhile.
///
/// For short sections. There is no queue: who asks first need not be first. A panic does not poison it.
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

    /// The value, from a lock that nobody shares any more.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> FiberMutex<T> {
    /// Takes the lock, waiting for it as long as need be. Taking it twice waits for ever.
    #[inline]
    pub fn lock(&self) -> FiberMutexGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| self.wait())
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<FiberMutexGuard<'_, T>> {
        // The section begins first: between the two, a holder could be suspended.
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

    /// The value, of a lock that nobody else can see.
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
