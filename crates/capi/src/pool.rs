//! Building, watching and ending a pool in process.
#![expect(unsafe_code, reason = "functions with names that C links to")]

use std::ffi::{c_char, c_int};
use std::slice;
use std::time::Duration;

use headway_pool::{ClassOptions, Pool, PoolBuilder, PoolClass};

use crate::pool_stats::{HeadwayPoolClassStats, HeadwayPoolStats};
use crate::shim;
use crate::status::{CallFailure, HEADWAY_E_ARGUMENT, report};
use crate::text;
use crate::versioned::{self, Versioned};

/// The most classes that a pool may have.
pub const HEADWAY_POOL_MAX_CLASSES: usize = 15;
const _: () = assert!(HEADWAY_POOL_MAX_CLASSES == headway_pool::MAX_POOL_CLASSES);

/// A class of a pool's jobs. 0 is each field's default, but the name's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeadwayPoolClass {
    /// Its name in reports.
    pub name: *const c_char,
    /// Its mean service time as far as known, ns; means are learnt.
    pub mean_ns: u64,
    /// How long a job may take from its submission to its end, ns: one that would miss it by waiting is refused. 0 for no limit.
    pub slo_ns: u64,
    /// A job that did not begin within this time of its submission is shed, ns. 0 for no limit.
    pub begin_within_ns: u64,
    /// At most so many of its jobs wait; 0 for no limit but the pool's.
    pub queue_limit: usize,
    /// Its jobs run on at most so many workers; 0 for no limit.
    pub workers_at_most: u32,
    /// Not 0: its jobs run to their end, where others are interrupted.
    pub uninterrupted: u32,
}

/// A pool's options. Begin with `struct headway_pool_options options = {.size = sizeof options};`: 0 is each field's default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeadwayPoolOptions {
    /// sizeof(struct headway_pool_options).
    pub size: usize,
    /// The policy, as in "srpt"; null for the one that docs/pool.md names.
    pub policy: *const c_char,
    /// The beginning of the threads' names; null for "pool".
    pub name: *const c_char,
    /// The classes, in the order of their numbers; null for one, number 0.
    pub classes: *const HeadwayPoolClass,
    /// The number of classes, at most HEADWAY_POOL_MAX_CLASSES.
    pub class_count: usize,
    /// The number of jobs that run at a time; 0 for one a processor that the process may use.
    pub workers: u32,
    /// The nice value of the threads, 0 to 19.
    pub nice: u32,
    /// The most jobs that wait, of all classes; 0 for 16384.
    pub capacity: usize,
    /// The most threads that block beside the workers; 0 for 64.
    pub blocking_threads: usize,
    /// The stack of a job that can be interrupted; 0 for 2 MiB. Only touched pages take memory.
    pub stack_bytes: usize,
    /// Not 0: long jobs have checkpoints, so where no policy is named the pool takes one that interrupts.
    pub checkpoints: u32,
    /// 0.
    pub reserved: u32,
}

// SAFETY: as asked: numbers and pointers, which may be 0, the size first.
unsafe impl Versioned for HeadwayPoolOptions {
    const NAME: &'static str = "headway_pool_options";
}

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
                (builder, names) = classes(builder, &options)?;
                builder = configured(builder, &options)?;
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

/// The builder with the declared classes, and their names.
///
/// # Safety
/// As [`headway_pool_start`]'s.
unsafe fn classes<'a>(
    mut builder: PoolBuilder,
    options: &HeadwayPoolOptions,
) -> Result<(PoolBuilder, Vec<&'a str>), CallFailure> {
    let declared = match (options.classes.is_null(), options.class_count) {
        (_, 0) => &[],
        (true, count) => {
            return Err(CallFailure::argument(format!(
                "headway_pool_options.classes is null, and class_count is {count}"
            )));
        }
        // SAFETY: the caller's promise.
        (false, count) => unsafe { slice::from_raw_parts(options.classes, count) },
    };
    let mut names = Vec::new();
    for (at, class) in declared.iter().enumerate() {
        // SAFETY: the caller's promise.
        let name = unsafe { text::optional(class.name, "the name of a class") }?;
        let Some(name) = name else {
            return Err(CallFailure::argument(format!(
                "class {at} of the pool has no name"
            )));
        };
        names.push(name);
        builder = builder.class(name, limits(class));
    }
    Ok((builder, names))
}

fn limits(class: &HeadwayPoolClass) -> ClassOptions {
    let time = |ns: u64| (ns > 0).then(|| Duration::from_nanos(ns));
    let mut options = ClassOptions::new();
    if let Some(mean) = time(class.mean_ns) {
        options = options.mean(mean);
    }
    if let Some(slo) = time(class.slo_ns) {
        options = options.slo(slo);
    }
    if let Some(within) = time(class.begin_within_ns) {
        options = options.begin_within(within);
    }
    if class.queue_limit > 0 {
        options = options.queue_limit(class.queue_limit);
    }
    if class.workers_at_most > 0 {
        options = options.workers_at_most(class.workers_at_most as usize);
    }
    if class.uninterrupted != 0 {
        options = options.uninterrupted();
    }
    options
}

/// # Safety
/// As [`headway_pool_start`]'s.
unsafe fn configured(
    mut builder: PoolBuilder,
    options: &HeadwayPoolOptions,
) -> Result<PoolBuilder, CallFailure> {
    // SAFETY: the caller's promise.
    let (policy, name) = unsafe {
        (
            text::optional(options.policy, "the policy")?,
            text::optional(options.name, "the name")?,
        )
    };
    if let Some(policy) = policy {
        builder = builder.policy(policy);
    }
    if let Some(name) = name {
        builder = builder.name(name);
    }
    if options.checkpoints != 0 {
        builder = builder.checkpoints();
    }
    if options.workers > 0 {
        builder = builder.workers(options.workers as usize);
    }
    if options.capacity > 0 {
        builder = builder.capacity(options.capacity);
    }
    if options.blocking_threads > 0 {
        builder = builder.blocking_threads(options.blocking_threads);
    }
    if options.stack_bytes > 0 {
        builder = builder.stack_bytes(options.stack_bytes);
    }
    Ok(builder.nice(u8::try_from(options.nice).unwrap_or(u8::MAX)))
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

/// The counts of one class, all read at one moment.
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
        let pool = unsafe { running(pool) }?;
        pool.class(class_index)?;
        let all = pool.pool.stats();
        let of_class = HeadwayPoolClassStats::from(&all.classes[class_index as usize]);
        // SAFETY: the caller's promise.
        unsafe { versioned::write(&of_class, stats) }
    })
}

/// Ends the pool and takes its handle, whatever the return value. It accepts no job any more but those that its own jobs submit, and waits for all to end, `deadline_ns` at
/// most. Then what waits is abandoned (HEADWAY_E_ABANDONED), and what runs sees headway_pool_cancelled() and goes on to its end on its thread (HEADWAY_E_STUCK):
/// its data stays in use until its `ended` is called, and so does the handle, whose few bytes are not freed then. What such a job submits is HEADWAY_E_SHUT_DOWN. Unless
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
        self.classes.get(index as usize).copied().ok_or_else(|| {
            let last = self.classes.len() - 1;
            let words = format!("there is no class {index}: the pool's last one is {last}");
            CallFailure::new(HEADWAY_E_ARGUMENT, words)
        })
    }
}
