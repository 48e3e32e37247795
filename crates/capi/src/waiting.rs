//! The locks, condition variables and semaphores of threads in user space. They lie in the program's own structs, and need no destructor.
#![expect(unsafe_code, reason = "structs of C programs that hold Rust's")]

use std::ffi::c_int;
use std::mem::{forget, needs_drop};
use std::time::Duration;

use headway_threads::{Condvar, Mutex, Semaphore};

use crate::status::report;
use crate::threads::in_thread_of_runtime;

/// A lock. Threads of a runtime that wait for it let others run; threads of the operating system may use it too.
#[repr(C)]
pub struct HeadwayMutex {
    words: [u64; 6],
}

/// A condition variable for threads of a runtime.
#[repr(C)]
pub struct HeadwayCondvar {
    words: [u64; 4],
}

/// A counting semaphore.
#[repr(C)]
pub struct HeadwaySemaphore {
    words: [u64; 11],
}

/// Whether `Words` has room for a `T`, which must need no drop.
const fn holds<Words, T>() -> bool {
    size_of::<T>() <= size_of::<Words>()
        && align_of::<T>() <= align_of::<Words>()
        && !needs_drop::<T>()
}

const _: () = assert!(holds::<HeadwayMutex, Mutex<()>>());
const _: () = assert!(holds::<HeadwayCondvar, Condvar>());
const _: () = assert!(holds::<HeadwaySemaphore, Semaphore>());

/// Makes a free lock. It must not be moved.
///
/// # Safety
/// `mutex` can be written, and no thread uses it yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_mutex_init(mutex: *mut HeadwayMutex) {
    // SAFETY: the caller's promise; large enough.
    unsafe { mutex.cast::<Mutex<()>>().write(Mutex::new(())) };
}

/// # Safety
/// The mutex was initialised, and stays.
unsafe fn mutex_of<'a>(mutex: *mut HeadwayMutex) -> &'a Mutex<()> {
    // SAFETY: the caller's promise.
    unsafe { &*mutex.cast::<Mutex<()>>() }
}

/// Takes the lock, and waits for it without limit. A holder that takes it again waits for ever.
///
/// # Safety
/// headway_mutex_init() was called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_mutex_lock(mutex: *mut HeadwayMutex) {
    // SAFETY: the caller's promise.
    forget(unsafe { mutex_of(mutex) }.lock());
}

/// Takes the lock if it is free; returns whether it was.
///
/// # Safety
/// As headway_mutex_lock().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_mutex_try_lock(mutex: *mut HeadwayMutex) -> bool {
    // SAFETY: the caller's promise.
    let guard = unsafe { mutex_of(mutex) }.try_lock();
    guard.map(forget).is_some()
}

/// Releases the lock.
///
/// # Safety
/// The calling thread holds it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_mutex_unlock(mutex: *mut HeadwayMutex) {
    // SAFETY: the caller's promise.
    drop(unsafe { mutex_of(mutex).assume_locked() });
}

/// Makes a condition variable without waiters. It must not be moved.
///
/// # Safety
/// `condvar` can be written, and no thread uses it yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_condvar_init(condvar: *mut HeadwayCondvar) {
    // SAFETY: the caller's promise; large enough.
    unsafe { condvar.cast::<Condvar>().write(Condvar::new()) };
}

/// # Safety
/// The condition was initialised, and stays.
unsafe fn condvar_of<'a>(condvar: *mut HeadwayCondvar) -> &'a Condvar {
    // SAFETY: the caller's promise.
    unsafe { &*condvar.cast::<Condvar>() }
}

/// Releases the lock, waits for a notification, and takes the lock again. Check the condition again afterwards. Called by a thread of a runtime.
///
/// # Safety
/// headway_condvar_init() was called, and the calling thread holds the lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_condvar_wait(
    condvar: *mut HeadwayCondvar,
    mutex: *mut HeadwayMutex,
) -> c_int {
    report(|| {
        in_thread_of_runtime("headway_condvar_wait")?;
        // SAFETY: the caller's promise.
        let (condvar, guard) = unsafe { (condvar_of(condvar), mutex_of(mutex).assume_locked()) };
        forget(condvar.wait(guard));
        Ok(())
    })
}

/// As headway_condvar_wait(), for `ns` at most. Writes whether the wait timed out to `*timed_out`, unless that is null.
///
/// # Safety
/// As headway_condvar_wait(); `timed_out` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_condvar_wait_for(
    condvar: *mut HeadwayCondvar,
    mutex: *mut HeadwayMutex,
    ns: u64,
    timed_out: *mut bool,
) -> c_int {
    report(|| {
        in_thread_of_runtime("headway_condvar_wait_for")?;
        // SAFETY: the caller's promise.
        let (condvar, guard) = unsafe { (condvar_of(condvar), mutex_of(mutex).assume_locked()) };
        let (guard, is_over) = condvar.wait_timeout(guard, Duration::from_nanos(ns));
        forget(guard);
        if !timed_out.is_null() {
            // SAFETY: the caller's promise.
            unsafe { timed_out.write(is_over) };
        }
        Ok(())
    })
}

/// Wakes the thread that has waited longest. Any thread may notify.
///
/// # Safety
/// headway_condvar_init() was called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_condvar_notify_one(condvar: *mut HeadwayCondvar) {
    // SAFETY: the caller's promise.
    unsafe { condvar_of(condvar) }.notify_one();
}

/// Wakes every thread that waits.
///
/// # Safety
/// As headway_condvar_notify_one().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_condvar_notify_all(condvar: *mut HeadwayCondvar) {
    // SAFETY: the caller's promise.
    unsafe { condvar_of(condvar) }.notify_all();
}

/// Makes a semaphore with this many permits. It must not be moved.
///
/// # Safety
/// `semaphore` can be written, and no thread uses it yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_semaphore_init(semaphore: *mut HeadwaySemaphore, permits: usize) {
    // SAFETY: the caller's promise; large enough.
    unsafe { semaphore.cast::<Semaphore>().write(Semaphore::new(permits)) };
}

/// # Safety
/// The semaphore was initialised, and stays.
unsafe fn semaphore_of<'a>(semaphore: *mut HeadwaySemaphore) -> &'a Semaphore {
    // SAFETY: the caller's promise.
    unsafe { &*semaphore.cast::<Semaphore>() }
}

/// Takes a permit, and waits until there is one. Called by a thread of a runtime.
///
/// # Safety
/// headway_semaphore_init() was called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_semaphore_acquire(semaphore: *mut HeadwaySemaphore) -> c_int {
    report(|| {
        in_thread_of_runtime("headway_semaphore_acquire")?;
        // SAFETY: the caller's promise.
        unsafe { semaphore_of(semaphore) }.acquire();
        Ok(())
    })
}

/// Takes a permit if there is one; returns whether there was.
///
/// # Safety
/// As headway_semaphore_acquire().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_semaphore_try_acquire(semaphore: *mut HeadwaySemaphore) -> bool {
    // SAFETY: the caller's promise.
    unsafe { semaphore_of(semaphore) }.try_acquire()
}

/// Gives a permit back, or adds one.
///
/// # Safety
/// As headway_semaphore_acquire().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_semaphore_release(semaphore: *mut HeadwaySemaphore) {
    // SAFETY: the caller's promise.
    unsafe { semaphore_of(semaphore) }.release();
}
