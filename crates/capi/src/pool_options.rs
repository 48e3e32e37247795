//! A pool's options, and those of its classes.
#![expect(unsafe_code, reason = "reads what C programs point to")]

use std::ffi::{c_char, c_void};
use std::net::SocketAddr;
use std::slice;
use std::time::Duration;

use headway_pool::{ClassOptions, ControlPlace, PoolBuilder, PoolLayout};

use crate::options::{
    self, HEADWAY_FIBERS_OF_THREADS, HEADWAY_FIBERS_PLAIN, HEADWAY_LAYOUT_AUTO,
    HEADWAY_LAYOUT_DEDICATED, HEADWAY_LAYOUT_INLINE,
};
use crate::safe_stack::refuse_plain_fibers;
use crate::status::{CallFailure, HEADWAY_E_ADDRESS};
use crate::text;
use crate::versioned::Versioned;

/// The most classes that a pool may have.
pub const HEADWAY_POOL_MAX_CLASSES: usize = 15;
const _: () = assert!(HEADWAY_POOL_MAX_CLASSES == headway_pool::MAX_POOL_CLASSES);

/// The most cores of a pool's list: no kernel for x86-64 is built for more (`NR_CPUS`).
const MOST_CORES: u32 = 8192;

/// A class of a pool's jobs. 0 is each field's default, but the name's.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeadwayPoolClass {
    /// Its name in reports.
    pub name: *const c_char,
    /// Its mean service time as far as known, ns; means are learnt.
    pub mean_ns: u64,
    /// Its share of all jobs as far as known, 0 to 1.
    pub share: f64,
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
    /// The most jobs beside the workers, which left theirs to block; 0 for 64.
    pub blocking_threads: usize,
    /// The stack of a job that can be interrupted; 0 for 2 MiB. Only touched pages take memory.
    pub stack_bytes: usize,
    /// Not 0: long jobs have checkpoints, so where no policy is named the pool takes one that interrupts.
    pub checkpoints: u32,
    /// Who is the dispatcher: HEADWAY_LAYOUT_DEDICATED gives it a thread of its own; else the threads that submit and the workers take turns.
    pub layout: u32,
    /// The number of classes that are learnt from the keys of jobs (HEADWAY_CLASS_LEARNT), beside the declared ones.
    pub learn_classes: u32,
    /// The number of `cores`, at most 8192; 0 leaves the threads to the kernel.
    pub core_count: u32,
    /// The cores to which the threads are pinned, the first to the first and so on, and round again; null for none.
    pub cores: *const u32,
    /// Past its slice's end a job that goes on for longer without a probe counts as a stall, ns; 0 for 50 µs.
    pub stall_after_ns: u64,
    /// Where a thread of its own answers `headway ctl` and `headway top` while the pool runs (docs/ctl.md): the path of a socket, or "auto" for the path where they look; null for nowhere.
    pub control: *const c_char,
    /// Where threads of their own answer Prometheus and browsers, as in "127.0.0.1:9100"; port 0 lets the system choose. Null for nowhere. See headway_pool_metrics() too.
    pub metrics: *const c_char,
    /// HEADWAY_FIBERS_PLAIN: jobs, and all that they call, keep nothing of their thread over a probe, and are switched faster. One that is interrupted goes on in its
    /// thread: policies under which it goes on at any worker are refused. It shares its thread-local variables and its locks with the jobs that run meanwhile.
    pub fibers: u64,
    /// The most jobs that can be interrupted which have begun and not ended; 0 for 64 a worker. The others wait in their classes' queues. Nothing to plain fibers.
    pub begun_at_most: usize,
    /// Called by the workers between slices, and all the time while they have no job, in place of sleep: the program takes its events in and submits what came. It returns
    /// at once; several workers call it at once; it calls from the start until headway_pool_stop() has returned. Null: workers without a job sleep.
    pub poll: Option<unsafe extern "C" fn(*mut c_void)>,
    /// What `poll` is called with.
    pub poll_data: *mut c_void,
}

/// A program's function that workers call, and its data.
struct CPoll {
    function: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
}

// SAFETY: `headway_pool_start` asks that it can be called with the data from any thread, by several at once.
unsafe impl Send for CPoll {}
// SAFETY: as above.
unsafe impl Sync for CPoll {}

impl CPoll {
    fn call(&self) {
        // SAFETY: the promise of the caller of `headway_pool_start`.
        unsafe { (self.function)(self.data) };
    }
}

// SAFETY: as asked: numbers and pointers, which may be 0, the size first.
unsafe impl Versioned for HeadwayPoolOptions {
    const NAME: &'static str = "headway_pool_options";
}

/// The builder with the declared classes, and their names.
///
/// # Safety
/// As [`headway_pool_start`](crate::pool::headway_pool_start)'s.
pub(crate) unsafe fn classes<'a>(
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
        // A mistaken count would make the reads below run past the array.
        (false, count) if count > HEADWAY_POOL_MAX_CLASSES => {
            return Err(CallFailure::argument(format!(
                "headway_pool_options.class_count is {count}: a pool has at most {HEADWAY_POOL_MAX_CLASSES} classes"
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
    let mut options = ClassOptions::new().share(class.share);
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
/// As [`headway_pool_start`](crate::pool::headway_pool_start)'s.
pub(crate) unsafe fn configured(
    mut builder: PoolBuilder,
    options: &HeadwayPoolOptions,
) -> Result<PoolBuilder, CallFailure> {
    // SAFETY: the caller's promise.
    let (policy, name, doors, cores) = unsafe {
        (
            text::optional(options.policy, "the policy")?,
            text::optional(options.name, "the name")?,
            doors(options)?,
            cores(options)?,
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
    if options.stall_after_ns > 0 {
        builder = builder.stall_after(Duration::from_nanos(options.stall_after_ns));
    }
    if options.begun_at_most > 0 {
        builder = builder.begun_at_most(options.begun_at_most);
    }
    if let Some(function) = options.poll {
        let data = options.poll_data;
        let poll = CPoll { function, data };
        builder = builder.poll_with(move || poll.call());
    }
    if let Some(addr) = doors.metrics {
        builder = builder.metrics(addr);
    }
    if plain_fibers(options.fibers)? {
        // SAFETY: the caller's promise: the field says what it asks of jobs.
        builder = unsafe { builder.plain_fibers() };
    }
    Ok(builder
        .control(doors.control)
        .layout(layout(options.layout)?)
        .learn_classes(options.learn_classes as usize)
        .pin(&cores)
        .nice(u8::try_from(options.nice).unwrap_or(u8::MAX)))
}

/// Where the pool answers about itself.
struct PoolDoors {
    control: ControlPlace,
    metrics: Option<SocketAddr>,
}

/// # Safety
/// As [`headway_pool_start`](crate::pool::headway_pool_start)'s.
unsafe fn doors(options: &HeadwayPoolOptions) -> Result<PoolDoors, CallFailure> {
    // SAFETY: the caller's promise.
    let (control, metrics) = unsafe {
        (
            text::optional(options.control, "headway_pool_options.control")?,
            text::optional(options.metrics, "headway_pool_options.metrics")?,
        )
    };
    let metrics = metrics.map(|text| {
        text.parse().map_err(|_| {
            let words = format!(
                "headway_pool_options.metrics is '{text}': expected ADDRESS:PORT with a numeric address, as in 127.0.0.1:9100"
            );
            CallFailure::new(HEADWAY_E_ADDRESS, words)
        })
    });
    Ok(PoolDoors {
        control: options::place(control),
        metrics: metrics.transpose()?,
    })
}

/// # Safety
/// As [`headway_pool_start`](crate::pool::headway_pool_start)'s.
unsafe fn cores(options: &HeadwayPoolOptions) -> Result<Vec<usize>, CallFailure> {
    let cores = match (options.cores.is_null(), options.core_count) {
        (_, 0) => &[],
        (true, count) => {
            return Err(CallFailure::argument(format!(
                "headway_pool_options.cores is null, and core_count is {count}"
            )));
        }
        // As for the classes.
        (false, count) if count > MOST_CORES => {
            return Err(CallFailure::argument(format!(
                "headway_pool_options.core_count is {count}: name at most {MOST_CORES} cores"
            )));
        }
        // SAFETY: the caller's promise.
        (false, count) => unsafe { slice::from_raw_parts(options.cores, count as usize) },
    };
    Ok(cores.iter().map(|&core| core as usize).collect())
}

fn plain_fibers(code: u64) -> Result<bool, CallFailure> {
    const OF_THREADS: u64 = HEADWAY_FIBERS_OF_THREADS as u64;
    const PLAIN: u64 = HEADWAY_FIBERS_PLAIN as u64;
    match code {
        OF_THREADS => Ok(false),
        PLAIN => {
            refuse_plain_fibers("jobs on plain fibers (headway_pool_options.fibers)")?;
            Ok(true)
        }
        other => Err(CallFailure::argument(format!(
            "headway_pool_options.fibers has no value {other}"
        ))),
    }
}

fn layout(code: u32) -> Result<PoolLayout, CallFailure> {
    match code {
        HEADWAY_LAYOUT_AUTO | HEADWAY_LAYOUT_INLINE => Ok(PoolLayout::Inline),
        HEADWAY_LAYOUT_DEDICATED => Ok(PoolLayout::Dedicated),
        other => Err(CallFailure::argument(format!(
            "headway_pool_options.layout has no value {other}"
        ))),
    }
}
