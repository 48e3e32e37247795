//! Submitting jobs to a pool, waiting for them, cancelling them.
#![expect(unsafe_code, reason = "functions with names that C links to")]

use std::ffi::{c_int, c_void};

use headway_pool::{JobFuture, JoinError, SubmitError};

use crate::pool::{HeadwayPool, running};
use crate::status::{CallFailure, HEADWAY_OK, report};
use crate::versioned::{self, Versioned};

/// In place of a class's number: the job's class is learnt from its key. Keys with similar service times share a class (headway_pool_options.learn_classes).
pub const HEADWAY_CLASS_LEARNT: u32 = u32::MAX;

/// A job whose end somebody will ask for.
pub struct HeadwayJob(JobFuture<()>);

/// A job to be submitted. Begin with `struct headway_job_options job = {.size = sizeof job};`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeadwayJobOptions {
    /// sizeof(struct headway_job_options).
    pub size: usize,
    /// Runs in a thread of the pool. It is interrupted at its probes where the policy interrupts: those of headway-cc, and headway_checkpoint(). No C++ exception may leave it.
    /// It ends by returning: pthread_exit() in it aborts the process.
    pub function: Option<unsafe extern "C" fn(data: *mut c_void)>,
    /// Handed to both functions. In use until the job has ended.
    pub data: *mut c_void,
    /// Called once for each job that was accepted, at its end; may be null. `code` is HEADWAY_OK once the function has returned. Else that was not called: HEADWAY_E_SHED,
    /// HEADWAY_E_CANCELLED or HEADWAY_E_ABANDONED, and headway_last_error() has the words. By whichever thread ends the job: one of the pool's, one that
    /// submits, cancels or stops. headway_job_wait() returns after it, and so does headway_pool_wait_idle() for jobs that ran. It is brief, and no C++ exception may leave it.
    pub ended: Option<unsafe extern "C" fn(data: *mut c_void, code: c_int)>,
    /// The number of its class, or HEADWAY_CLASS_LEARNT.
    pub class_index: u32,
    /// 0.
    pub reserved: u32,
    /// What its class is learnt from, where it is: a number for its endpoint, its statement's digest.
    pub key: u64,
}

// SAFETY: as asked: numbers and pointers, which may be 0, the size first.
unsafe impl Versioned for HeadwayJobOptions {
    const NAME: &'static str = "headway_job_options";
}

/// Why a job was refused for overload. Begin with `struct headway_overload overload = {.size = sizeof overload};`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadwayOverload {
    /// sizeof(struct headway_overload).
    pub size: usize,
    /// Jobs of the class that wait.
    pub queued: u64,
    /// When those are worked off, by the means learnt, ns.
    pub retry_after_ns: u64,
}

// SAFETY: as asked: numbers, the size first.
unsafe impl Versioned for HeadwayOverload {
    const NAME: &'static str = "headway_overload";
}

/// The program's function and data, on their way to another thread.
#[derive(Clone, Copy)]
struct CJob {
    function: unsafe extern "C" fn(data: *mut c_void),
    ended: Option<unsafe extern "C" fn(data: *mut c_void, code: c_int)>,
    data: *mut c_void,
}

// SAFETY: `headway_pool_submit` asks that the functions can be called with the data from any thread.
unsafe impl Send for CJob {}

impl CJob {
    fn run(self) {
        // SAFETY: the promise of the caller of `headway_pool_submit`.
        unsafe { (self.function)(self.data) };
        self.tell(HEADWAY_OK);
    }

    fn tell(self, code: c_int) {
        if let Some(ended) = self.ended {
            // SAFETY: the promise of the caller of `headway_pool_submit`.
            unsafe { ended(self.data, code) };
        }
    }

    /// It ended without having begun.
    fn unrun(self, why: &JoinError) {
        self.tell(report(|| Err(CallFailure::from(why))));
    }
}

/// Submits `function(data)` as a job of class `class_index`; it is interrupted at its probes where the policy interrupts. Writes its handle to `*job`, for headway_job_wait(),
/// headway_job_cancel() or headway_job_detach() to take; if `job` is null nobody waits for it. A full queue is HEADWAY_E_OVERLOADED, at once.
///
/// # Safety
/// `pool` is null, or came from headway_pool_start() and was not stopped. `function` may be called with `data` from any thread until the job has ended. `job` is null
/// or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_pool_submit(
    pool: *const HeadwayPool,
    class_index: u32,
    function: Option<unsafe extern "C" fn(data: *mut c_void)>,
    data: *mut c_void,
    job: *mut *mut HeadwayJob,
) -> c_int {
    let options = HeadwayJobOptions {
        size: size_of::<HeadwayJobOptions>(),
        function,
        data,
        ended: None,
        class_index,
        reserved: 0,
        key: 0,
    };
    // SAFETY: the caller's promise.
    unsafe { headway_pool_try_submit(pool, &raw const options, job, std::ptr::null_mut()) }
}

/// As headway_pool_submit(), with all that can be said of a job. If the class is overloaded (HEADWAY_E_OVERLOADED), `*overload` gets how many wait and when to try again, unless it is null.
/// Of a job that is not accepted no function is called.
///
/// # Safety
/// As headway_pool_submit(); `options` is null or has as many bytes as its size says, and so has `overload`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_pool_try_submit(
    pool: *const HeadwayPool,
    options: *const HeadwayJobOptions,
    job: *mut *mut HeadwayJob,
    overload: *mut HeadwayOverload,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let (pool, options) = unsafe { (running(pool)?, versioned::read(options)?) };
        let submitted = submit(pool, &options)?;
        if let Err(SubmitError::Overloaded {
            queued,
            retry_after,
            ..
        }) = &submitted
            && !overload.is_null()
        {
            let told = HeadwayOverload {
                size: size_of::<HeadwayOverload>(),
                queued: *queued as u64,
                retry_after_ns: retry_after.as_nanos() as u64,
            };
            // SAFETY: the caller's promise.
            unsafe { versioned::write(&told, overload) }?;
        }
        let future = submitted?;
        if job.is_null() {
            future.detach();
        } else {
            // SAFETY: the caller's promise.
            unsafe { job.write(Box::into_raw(Box::new(HeadwayJob(future)))) };
        }
        Ok(())
    })
}

fn submit(
    pool: &HeadwayPool,
    options: &HeadwayJobOptions,
) -> Result<Result<JobFuture<()>, SubmitError>, CallFailure> {
    let Some(function) = options.function else {
        return Err(CallFailure::argument("the function of a job is null"));
    };
    let job = CJob {
        function,
        ended: options.ended,
        data: options.data,
    };
    let (run, unrun) = (move || job.run(), move |why: &JoinError| job.unrun(why));
    if options.class_index == HEADWAY_CLASS_LEARNT {
        let key = options.key;
        return Ok(pool.pool.submit_unclassified_or_else(key, run, unrun));
    }
    let class = pool.class(options.class_index)?;
    Ok(pool.pool.submit_or_else(class, run, unrun))
}

/// Submits `function(data)` and waits until it has returned. For threads outside of the pool; HEADWAY_E_INSIDE for its jobs.
///
/// # Safety
/// As headway_pool_submit().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_pool_run(
    pool: *const HeadwayPool,
    class_index: u32,
    function: Option<unsafe extern "C" fn(data: *mut c_void)>,
    data: *mut c_void,
) -> c_int {
    report(|| {
        let Some(function) = function else {
            return Err(CallFailure::argument("the function of a job is null"));
        };
        // SAFETY: the caller's promise.
        let pool = unsafe { running(pool) }?;
        let job = CJob {
            function,
            ended: None,
            data,
        };
        let class = pool.class(class_index)?;
        pool.pool
            .run(class, move || job.run())
            .map_err(|why| CallFailure::from(&why))
    })
}

/// The job behind a handle, which is taken.
///
/// # Safety
/// `job` is null or came from headway_pool_submit() and was not taken.
unsafe fn take(job: *mut HeadwayJob) -> Result<JobFuture<()>, CallFailure> {
    if job.is_null() {
        let words = "the job is null: pass what headway_pool_submit() wrote";
        return Err(CallFailure::argument(words));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { Box::from_raw(job) }.0)
}

/// Waits until the job has ended, and frees its handle. HEADWAY_OK if its function has returned, else HEADWAY_E_SHED or HEADWAY_E_ABANDONED. A job of the same pool that calls it runs the other
/// one itself if that still waits.
///
/// # Safety
/// `job` is null, or came from headway_pool_submit() or headway_pool_try_submit(), and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_job_wait(job: *mut HeadwayJob) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let waited = unsafe { take(job) }?.wait();
        waited.map_err(|why| CallFailure::from(&why))
    })
}

/// Cancels the job and frees its handle. One that waits has ended when this returns; one that runs sees headway_pool_cancelled() and goes on.
///
/// # Safety
/// As headway_job_wait().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_job_cancel(job: *mut HeadwayJob) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        drop(unsafe { take(job) }?);
        Ok(())
    })
}

/// Lets the job go on without anybody who waits for it, and frees its handle.
///
/// # Safety
/// As headway_job_wait().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_job_detach(job: *mut HeadwayJob) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        unsafe { take(job) }?.detach();
        Ok(())
    })
}

/// Not 0 if the calling job was cancelled, or its pool has ended: a long job asks now and then, and returns early. 0 outside of jobs.
#[unsafe(no_mangle)]
pub extern "C" fn headway_pool_cancelled() -> c_int {
    c_int::from(headway_pool::cancelled())
}

/// Calls `function(data)`, which blocks (a file, a lock, another service), without keeping the job's worker: another thread takes the worker's place meanwhile. Outside of jobs
/// it calls the function only. No C++ exception may leave it.
///
/// # Safety
/// `function` may be called with `data`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_pool_blocking(
    function: unsafe extern "C" fn(data: *mut c_void),
    data: *mut c_void,
) {
    // SAFETY: the caller's promise.
    headway_pool::blocking(|| unsafe { function(data) });
}
