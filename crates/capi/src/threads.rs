//! Threads in user space, and the runtime that runs them.
#![expect(unsafe_code, reason = "functions with names that C links to")]

use std::ffi::{c_char, c_int, c_void};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use headway_host::client::ClientOptions;
use headway_stack::{NetStack, Uthreads};
use headway_threads::{
    JoinHandle, MAX_KTHREADS, Migration, Runtime, RuntimeBuilder, STOP_AT_SIGNAL, in_thread, sleep,
    try_spawn, yield_now,
};

use crate::granted::HostNames;
use crate::safe_stack::refuse_plain_fibers;
use crate::status::{CallFailure, HEADWAY_E_INSIDE, HEADWAY_E_NONE, HEADWAY_E_START, report};
use crate::versioned::{self, Versioned};

/// A runtime's options. 0 is every field's default.
#[repr(C)]
pub struct HeadwayRuntimeOptions {
    /// sizeof(struct headway_runtime_options).
    pub size: usize,
    /// Kernel threads, at most 256, each of which has a run queue and steals from the others; 1 by default. With more than one, a thread may resume on another
    /// kernel thread after a function of this interface and after a probe (docs/threads.md, "C and C++").
    pub kthreads: usize,
    /// Usable bytes of each thread's stack; 64 KiB by default.
    pub stack_bytes: usize,
    /// The slice after which a probe interrupts a computing thread while others wait; 10 us by default.
    pub slice_ns: u64,
    /// The name under which the program registers with a host's daemon, which grants its kernel threads their cores (docs/host-daemon.md); null for none.
    /// Then `kthreads` is the most cores that it uses at once, and SIGUSR1 is the daemon's.
    pub application: *const c_char,
    /// The daemon's socket; null for /run/headway/host.sock.
    pub host_socket: *const c_char,
    /// Not 0: the program has probes in all its loops (headway-cc), and leaves a core that is taken at the next one. Otherwise the daemon sends SIGUSR1,
    /// whose handler stops the kernel thread where it is until it has a core again.
    pub probes: usize,
    /// Not 0: the program has the packets of the daemon's device, and TCP over them; the most bytes of each of a socket's two buffers. It needs an
    /// `application`.
    pub network_buffer_bytes: usize,
}

// SAFETY: `repr(C)`, begins with its size, integers and pointers that may be null.
unsafe impl Versioned for HeadwayRuntimeOptions {
    const NAME: &'static str = "headway_runtime_options";
}

/// The stack of a runtime, if it has packets.
type RuntimeStack = Option<Arc<NetStack<Uthreads>>>;

/// Kernel threads that run threads of the program.
pub struct HeadwayRuntime {
    runtime: Runtime,
    pub(crate) stack: RuntimeStack,
}

/// A thread that has not been joined or detached yet.
pub struct HeadwayThread {
    _opaque: [u8; 0],
}

/// A word of the program's, which goes to another thread.
struct ThreadWord(*mut c_void);

// SAFETY: the program defines its use.
unsafe impl Send for ThreadWord {}

/// Starts a runtime. Writes its handle to `*runtime`, for headway_runtime_stop() to take. `options` may be null.
///
/// # Safety
/// `options` is null or has as many bytes as its size says, and its strings end with a NUL; `runtime` can be written. With more than one kernel thread, the
/// program's threads keep to docs/threads.md, "C and C++".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_runtime_start(
    options: *const HeadwayRuntimeOptions,
    runtime: *mut *mut HeadwayRuntime,
) -> c_int {
    report(|| {
        if runtime.is_null() {
            return Err(CallFailure::argument("the place for the runtime is null"));
        }
        let (mut builder, mut stack) = (Runtime::builder(), None);
        if !options.is_null() {
            // SAFETY: the caller's promise.
            (builder, stack) = unsafe { configured(builder, &versioned::read(options)?) }?;
        }
        let runtime_started = builder
            .start()
            .map_err(|error| CallFailure::new(HEADWAY_E_START, error.to_string()))?;
        let started = HeadwayRuntime {
            runtime: runtime_started,
            stack,
        };
        // SAFETY: the caller's promise.
        unsafe { runtime.write(Box::into_raw(Box::new(started))) };
        Ok(())
    })
}

/// # Safety
/// As [`headway_runtime_start`]'s.
unsafe fn configured(
    mut builder: RuntimeBuilder,
    options: &HeadwayRuntimeOptions,
) -> Result<(RuntimeBuilder, RuntimeStack), CallFailure> {
    refuse_plain_fibers("threads in user space")?;
    if options.kthreads > MAX_KTHREADS {
        let kthreads = options.kthreads;
        return Err(CallFailure::argument(format!(
            "headway_runtime_options.kthreads is {kthreads}: give 1 to {MAX_KTHREADS}, or 0 for one"
        )));
    }
    let mut stack = None;
    // SAFETY: the caller's promise.
    let (host, migration) = unsafe {
        let host = HostNames::read(options.application, options.host_socket)?;
        (host, Migration::allow())
    };
    if let Some(host) = host {
        let client = host.register(&ClientOptions {
            probes: options.probes != 0,
            at_signal: STOP_AT_SIGNAL,
            network: options.network_buffer_bytes > 0,
            ..ClientOptions::new(host.application(), options.kthreads.max(1))
        })?;
        let client = Arc::new(client);
        if options.network_buffer_bytes > 0 {
            let made = NetStack::of_host(&client, options.network_buffer_bytes, Uthreads);
            let made =
                made.map_err(|error| CallFailure::new(HEADWAY_E_START, error.to_string()))?;
            builder = builder.packets(Arc::<NetStack<Uthreads>>::clone(&made));
            stack = Some(made);
        }
        builder = builder.source(client, migration);
    } else if options.network_buffer_bytes > 0 {
        return Err(CallFailure::argument(
            "network_buffer_bytes needs an application: set application too, or leave it 0",
        ));
    } else if options.kthreads > 1 {
        builder = builder.kthreads(options.kthreads, migration);
    }
    if options.stack_bytes > 0 {
        builder = builder.stack_bytes(options.stack_bytes);
    }
    if options.slice_ns > 0 {
        builder = builder.slice(Duration::from_nanos(options.slice_ns));
    }
    Ok((builder, stack))
}

/// Runs `body(argument)` in a thread of the runtime, and returns when the thread has ended. Threads that it spawned may still run.
///
/// # Safety
/// `runtime` came from headway_runtime_start() and was not stopped. No exception leaves `body`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_runtime_run(
    runtime: *const HeadwayRuntime,
    body: Option<unsafe extern "C" fn(argument: *mut c_void)>,
    argument: *mut c_void,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let (Some(runtime), Some(body)) = (unsafe { runtime.as_ref() }, body) else {
            return Err(CallFailure::argument("the runtime or the function is null"));
        };
        let argument = ThreadWord(argument);
        runtime.runtime.run(move || {
            let argument = argument;
            // SAFETY: the caller's promise.
            unsafe { body(argument.0) };
        });
        Ok(())
    })
}

/// Ends a runtime and frees its handle. Threads that have not ended never resume, and joining one returns HEADWAY_E_NONE. HEADWAY_E_INSIDE: the caller is a
/// thread of the runtime; nothing has ended, and the handle stays valid.
///
/// # Safety
/// `runtime` is null or came from headway_runtime_start(), and is not used after HEADWAY_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_runtime_stop(runtime: *mut HeadwayRuntime) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let Some(running) = (unsafe { runtime.as_ref() }) else {
            return Ok(());
        };
        if running.runtime.is_inside() {
            return Err(CallFailure::new(
                HEADWAY_E_INSIDE,
                "a thread of the runtime itself would end it, and would wait for itself: call headway_runtime_stop() after headway_runtime_run() has \
                 returned",
            ));
        }
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(runtime) });
        Ok(())
    })
}

/// Whether the caller is a thread of a runtime.
#[unsafe(no_mangle)]
pub extern "C" fn headway_in_thread() -> bool {
    in_thread()
}

/// Starts a thread that runs `body(argument)`, at the end of the run queue. Called by a thread of a runtime. Writes its handle to `*thread`, for
/// headway_join() or headway_detach() to take; if `thread` is null it is detached.
///
/// # Safety
/// `thread` is null or can be written. No exception leaves `body`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_spawn(
    thread: *mut *mut HeadwayThread,
    body: Option<unsafe extern "C" fn(argument: *mut c_void) -> *mut c_void>,
    argument: *mut c_void,
) -> c_int {
    report(|| {
        let Some(body) = body else {
            return Err(CallFailure::argument("the thread's function is null"));
        };
        in_thread_of_runtime("headway_spawn")?;
        let argument = ThreadWord(argument);
        let spawned = try_spawn(move || {
            let argument = argument;
            // SAFETY: the caller's promise.
            ThreadWord(unsafe { body(argument.0) })
        });
        let handle =
            spawned.map_err(|error| CallFailure::new(HEADWAY_E_START, error.to_string()))?;
        if !thread.is_null() {
            // SAFETY: the caller's promise.
            unsafe { thread.write(handle.into_raw().as_ptr().cast()) };
        }
        Ok(())
    })
}

/// Waits until the thread has ended, and frees its handle. Its function's return value goes to `*result`, unless `result` is null. Any thread may
/// wait, also one of the operating system. HEADWAY_E_NONE: its runtime was stopped before.
///
/// # Safety
/// `thread` came from headway_spawn(), and is not used afterwards; `result` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_join(
    thread: *mut HeadwayThread,
    result: *mut *mut c_void,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let ended = unsafe { handle_of(thread) }?.join();
        let word = ended.map_err(|_| {
            CallFailure::new(HEADWAY_E_NONE, "the thread's runtime was stopped before")
        })?;
        if !result.is_null() {
            // SAFETY: the caller's promise.
            unsafe { result.write(word.0) };
        }
        Ok(())
    })
}

/// Frees a thread's handle; the thread continues by itself.
///
/// # Safety
/// `thread` came from headway_spawn(), and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_detach(thread: *mut HeadwayThread) -> c_int {
    // SAFETY: the caller's promise.
    report(|| unsafe { handle_of(thread) }.map(drop))
}

/// Lets the other threads that are ready run first.
#[unsafe(no_mangle)]
pub extern "C" fn headway_thread_yield() {
    yield_now();
}

/// Suspends the thread for at least `ns`.
#[unsafe(no_mangle)]
pub extern "C" fn headway_thread_sleep(ns: u64) {
    sleep(Duration::from_nanos(ns));
}

/// # Safety
/// As [`headway_join`].
unsafe fn handle_of(thread: *mut HeadwayThread) -> Result<JoinHandle<ThreadWord>, CallFailure> {
    let word: Option<NonNull<()>> = NonNull::new(thread).map(NonNull::cast);
    let word = word.ok_or_else(|| CallFailure::argument("the thread is null"))?;
    // SAFETY: the caller's promise.
    Ok(unsafe { JoinHandle::from_raw(word) })
}

/// Refuses callers that are no threads of a runtime.
pub(crate) fn in_thread_of_runtime(function: &str) -> Result<(), CallFailure> {
    if in_thread() {
        return Ok(());
    }
    Err(CallFailure::argument(format!(
        "{function}() is called by a thread of a runtime: see headway_runtime_run()"
    )))
}

const _: () = assert!(size_of::<JoinHandle<ThreadWord>>() == size_of::<*const ()>());
