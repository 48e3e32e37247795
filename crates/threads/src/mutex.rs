//! A lock for threads of a runtime, whose waiters let other threads run.
#![expect(unsafe_code, reason = "a lock gives access to what it guards")]

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::thread;

use headway_fiber::NoPreempt;
use headway_sync::barrier;
use headway_sync::hint::spin_loop;

use crate::head::{Uthread, UthreadList};
use crate::lock_state::LockState;
use crate::schedule::ready;
use crate::spin::SpinLock;
use crate::suspending::Suspending;

/// The number of spins on a lock before its waiter lets others run: about a microsecond, for holders on other cores.
const SPINS: u32 = if cfg!(loom) { 0 } else { 100 };

/// Mutual exclusion, as [`std::sync::Mutex`], for threads of a runtime.
///
/// A holder may wait, and resume on another kthread. Waiters come in turn, but a thread that runs may overtake them. A panic does not poison the lock.
/// Threads of the operating system may use it too: they wait without a queue.
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    state: LockState,
    list: SpinLock<UthreadList>,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time has the value.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A free lock around `value`.
    pub fn new(value: T) -> Self {
        barrier::prepare();
        Mutex {
            state: LockState::default(),
            list: SpinLock::default(),
            value: UnsafeCell::new(value),
        }
    }

    /// The value of a lock that is no longer shared.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Takes the lock, and waits for it without limit. A holder that takes it again waits for ever.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        if !self.state.takes() {
            self.wait();
        }
        MutexGuard { mutex: self }
    }

    /// Takes the lock if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.state.takes().then(|| MutexGuard { mutex: self })
    }

    /// The guard of a held lock whose guard was forgotten, for languages without destructors.
    ///
    /// # Safety
    /// The lock is held, and there is no other guard of it.
    #[inline]
    pub unsafe fn assume_locked(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self }
    }

    /// The value of a lock that is borrowed exclusively.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    #[cold]
    fn wait(&self) {
        loop {
            for _ in 0..SPINS {
                if self.state.seems_free() && self.state.takes() {
                    return;
                }
                spin_loop();
            }
            let Some(suspending) = Suspending::begin() else {
                thread::yield_now();
                continue;
            };
            self.state.comes();
            let taken = self.list.with(|list| {
                let taken = self.state.takes();
                if !taken {
                    list.push(suspending.me());
                }
                taken
            });
            if taken {
                return self.state.goes();
            }
            suspending.wait();
        }
    }

    /// The lock's address, by which a waiter names the lock that may be handed to it.
    #[inline(always)]
    pub(crate) fn address(&self) -> *const () {
        (&raw const self.state).cast()
    }

    /// Releases the lock for a holder that lets `next` run. If `next` takes this lock first, it gets the lock directly: that saves the release and the
    /// next atomic operation. Called inside the holder's section.
    #[inline(always)]
    pub(crate) fn pass_on(&self, next: Option<Uthread>) {
        if let Some(next) = next
            && next.head().takes_lock.get() == self.address()
            && !self.state.has_waiters()
        {
            return next.head().takes_lock.set(ptr::null());
        }
        self.unlock();
    }

    #[inline(always)]
    fn unlock(&self) {
        if self.state.release() {
            self.wake();
        }
    }

    /// Makes the first waiter ready, which tries again.
    #[cold]
    fn wake(&self) {
        let _section = NoPreempt::enter();
        let first = self.list.with(|list| {
            let first = list.pop()?;
            self.state.goes();
            Some(first)
        });
        if let Some(first) = first {
            ready(first);
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = out.debug_struct("Mutex");
        match self.try_lock() {
            Some(guard) => debug.field("value", &&*guard),
            None => debug.field("value", &format_args!("<locked>")),
        };
        debug.finish()
    }
}

/// The right to a [`Mutex`]'s value. Released when dropped.
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
}

// SAFETY: a shared guard gives shared references to the value.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// The lock that it holds.
    pub(crate) fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the guard is the only one.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard is the only one.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}
