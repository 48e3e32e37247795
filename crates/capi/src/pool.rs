//! Building, watching and ending a pool in process.
#![expect(unsafe_code, reason = "functions with names that C links to")]

use std::ffi::{c_char, c_int};
use std::ptr;
use std::time::Duration;

use headway_pool::{Pool, PoolClass};

use crate::pool_options::{self, HeadwayPoolOptions};
use crate::pool_stats::{HeadwayPoolClassStats, HeadwayPoolStats};
use crate::shim;
use crate::status::{CallFailure, HEADWAY_E_ARGUMENT, HEADWAY_E_TOO_LARGE, report};
use crate::versioned;

/// A pool whose threads run.
pub struct HeadwayPool {
    pub(crate) pool: Pool,
    pub(crate) classes: Vec<PoolClass>,
}

/// The pool behind a handle; a null one is refused.
///
/// # Safety
/// `pool` is null or came from headway_pool_start() and was not stopped.
pub(crate) unsafe fn running<'a>(pool: *const HeadwayPool) -> Result<&'a HeadwayPool, CallFailure> {
    // SAFETY: the caller's promise.
    unsafe { pool.as_ref() }.ok_or_else(|| {
        CallFailure::argument("the pool is null: pass what headway_pool_start() wrote")
    })
}

/// Starts a pool. Writes its handle to `*pool`, for headway_pool_stop() to take. `options` may be null.
///
/// # Safety
/// `options` is null or has as many bytes as its size says; its strings end with a NUL, and there are as many classes as it says. `pool` can be written.
/// Where `fibers` is HEADWAY_FIBERS_PLAIN, the pool's jobs keep what it promises.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_pool_start(
    options: *const HeadwayPoolOptions,
    pool: *mut *mut HeadwayPool,
) -> c_int {
    report(|| {
        if pool.is_null() {
            return Err(CallFailure::argument("the place for the pool is null"));
        }
        let (mut builder, mut names) = (Pool::builder(), Vec::new());
        if !options.is_null() {
            // SAFETY: the caller's promise.
            unsafe {
                let options = versioned::read(options)?;
                (builder, names) = pool_options::classes(builder, &options)?;
                builder = pool_options::configured(builder, &options)?;
            }
        }
        if names.is_empty() {
            names.push("default");
        }
        shim::tell(false, false)?;
        let built = builder.build()?;
        let found: Result<Vec<_>, _> = names.iter().map(|name| built.class(name)).collect();
        let started = HeadwayPool {
            classes: found?,
            pool: built,
        };
        // SAFETY: the caller's promise.
        unsafe { pool.write(Box::into_raw(Box::new(started))) };
        Ok(())
    })
}

/// Waits until every accepted job has ended, those submitted meanwhile included.
///
/// # Safety
/// `pool` is null, or came from headway_pool_start() and was not stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_pool_wait_idle(pool: *const HeadwayPool) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        unsafe { running(pool) }?.pool.wait_idle()?;
        Ok(())
    })
}

/// The pool's counts, all read at one moment.
///
/// # Safety
/// As headway_pool_wait_idle(); `stats` is null or has as many bytes as its size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_pool_read_stats(
    pool: *const HeadwayPool,
    stats: *mut HeadwayPoolStats,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        unsafe { versioned::write(&HeadwayPoolStats::from(&running(pool)?.pool.stats()), stats) }
    })
}

/// The counts of one class, all read at one moment, and how its jobs ran. After the declared classes come the learnt ones, then that of keys which are not known yet.
///
/// # Safety
/// As headway_pool_read_stats().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_pool_read_class_stats(
    pool: *const HeadwayPool,
    class_index: u32,
    stats: *mut HeadwayPoolClassStats,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let all = unsafe { running(pool) }?.pool.stats();
        let class = all.classes.get(class_index as usize);
        let class = class.ok_or_else(|| no_class(class_index, all.classes.len()))?;
        let of_class = HeadwayPoolClassStats::from(class);
        // SAFETY: the caller's promise.
        unsafe { versioned::write(&of_class, stats) }
    })
}

/// Writes the pool's metrics in the text format of OpenMetrics, with a NUL at the end, for a program that answers Prometheus itself; docs/ctl.md names them. `*length` gets the length of the
/// text without the NUL, whether it fits or not: HEADWAY_E_TOO_LARGE where `room` bytes are too few, and nothing is written. `text` may be null where `room` is 0.
///
/// # Safety
/// As headway_pool_wait_idle(); `room` bytes at `text` can be written, and so can `length`, which may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_pool_metrics(
    pool: *const HeadwayPool,
    text: *mut c_char,
    room: usize,
    length: *mut usize,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let metrics = unsafe { running(pool) }?.pool.metrics_text();
        if !length.is_null() {
            // SAFETY: the caller's promise.
            unsafe { length.write(metrics.len()) };
        }
        if metrics.len() >= room {
            let words = format!("the metrics have {} bytes and a NUL", metrics.len());
            return Err(CallFailure::new(HEADWAY_E_TOO_LARGE, words));
        }
        // SAFETY: the caller's promise.
        unsafe {
            let text = text.cast::<u8>();
            ptr::copy_nonoverlapping(metrics.as_ptr(), text, metrics.len());
            text.add(metrics.len()).write(0);
        }
        Ok(())
    })
}

/// The port at which the pool answers Prometheus and browsers; 0 where it does not (headway_pool_options.metrics). `pool` may be null.
///
/// # Safety
/// As headway_pool_wait_idle().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_pool_metrics_port(pool: *const HeadwayPool) -> u16 {
    // SAFETY: the caller's promise.
    let pool = unsafe { running(pool) }.ok();
    let addr = pool.and_then(|pool| pool.pool.metrics_addr());
    addr.map_or(0, |addr| addr.port())
}

/// Ends the pool and takes its handle, whatever the return value. It accepts no job any more but those that its own jobs submit, and waits for all to end, `deadline_ns` at
/// most. Then what waits is abandoned (HEADWAY_E_ABANDONED), and what runs sees headway_pool_cancelled() and goes on to its end on its thread (HEADWAY_E_STUCK):
/// its data stays in use until its `ended` is called, and so does the handle, whose few bytes are not freed then. What such a job submits is HEADWAY_E_SHUT_DOWN. By a job
/// of the pool, so by an exit() in one, nothing is waited for: it would be for itself, and the result is HEADWAY_E_STUCK. Unless
/// `stats` is null it gets the last counts. Jobs' handles are to be freed all the same.
///
/// # Safety
/// As headway_pool_read_stats(), and the handle is used afterwards by jobs only that run still.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_pool_stop(
    pool: *mut HeadwayPool,
    deadline_ns: u64,
    stats: *mut HeadwayPoolStats,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise. Its jobs use the handle until they have ended.
        let running = unsafe { running(pool) }?;
        let done = running.pool.shutdown(Duration::from_nanos(deadline_ns));
        let last = HeadwayPoolStats::from(&running.pool.stats());
        let is_stuck = done.as_ref().is_err_and(|left| left.running > 0);
        if !is_stuck {
            // SAFETY: the caller's promise. No job runs any more.
            drop(unsafe { Box::from_raw(pool) });
        }
        if !stats.is_null() {
            // SAFETY: the caller's promise.
            unsafe { versioned::write(&last, stats) }?;
        }
        done?;
        Ok(())
    })
}

impl HeadwayPool {
    pub(crate) fn class(&self, index: u32) -> Result<PoolClass, CallFailure> {
        let class = self.classes.get(index as usize).copied();
        class.ok_or_else(|| no_class(index, self.classes.len()))
    }
}

fn no_class(index: u32, classes: usize) -> CallFailure {
    let last = classes - 1;
    let words = format!("there is no class {index}: the pool's last one is {last}");
    CallFailure::new(HEADWAY_E_ARGUMENT, words)
}
