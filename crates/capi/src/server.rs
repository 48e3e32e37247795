//! Starting, watching and stopping a server.
#![expect(unsafe_code, reason = "functions with names that C links to")]

use std::ffi::{c_char, c_int};
use std::time::Duration;

use headway_policy::spec::{Spec, SpecError};
use headway_runtime as runtime;

use crate::options::{HeadwayOptions, ServerSetup};
use crate::safe_stack::refuse_plain_fibers;
use crate::service::{Callbacks, HeadwayService};
use crate::shim;
use crate::stats::{HeadwayClassStats, HeadwayStats, HeadwayWorkerStats};
use crate::status::{CallFailure, HEADWAY_E_POLICY, report};
use crate::text;
use crate::versioned;

/// Version of this interface. A program keeps working with any library of the same version.
pub const HEADWAY_ABI_VERSION: u32 = 1;

/// The version that the library has; HEADWAY_ABI_VERSION is the one a program was compiled with.
#[unsafe(no_mangle)]
pub extern "C" fn headway_abi_version() -> u32 {
    HEADWAY_ABI_VERSION
}

/// A running server.
pub struct HeadwayServer {
    server: runtime::Server,
}

/// Starts a server, once setup has run; returns when all its threads are ready. Writes its handle to `*server`, for headway_stop() to take.
/// Signals may reach the server's threads too: block the signals that the program waits for before this call.
///
/// # Safety
/// `options` and `service` are valid as their fields say, and their targets are valid during this call. Any thread may call the service's functions with its
/// context until headway_stop() has returned HEADWAY_OK. `server` can be written. If headway_options.fibers is HEADWAY_FIBERS_PLAIN, its code
/// keeps nothing of its thread over a probe (docs/c-api.md, "Threads"). With HEADWAY_PREEMPT_SIGNAL it may be interrupted at any instruction (docs/c-api.md,
/// "Interrupting by signal").
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_start(
    options: *const HeadwayOptions,
    service: *const HeadwayService,
    server: *mut *mut HeadwayServer,
) -> c_int {
    report(|| {
        if server.is_null() {
            return Err(CallFailure::argument("the place for the server is null"));
        }
        // SAFETY: the caller's promise.
        let (mut chosen, callbacks) =
            unsafe { (ServerSetup::read(options)?, Callbacks::read(service)?) };
        shim::tell(chosen.plain_fibers && chosen.roams, chosen.by_signal)?;
        if chosen.plain_fibers {
            refuse_plain_fibers("requests on plain fibers (headway_options.fibers)")?;
        }
        if callbacks.is_loop() {
            refuse_plain_fibers("loops (headway_service.serve)")?;
        }
        callbacks.setup()?;
        chosen.register()?;
        let builder = if chosen.plain_fibers {
            // SAFETY: the caller's promise.
            unsafe { chosen.builder.plain_fibers() }
        } else {
            chosen.builder
        };
        let builder = if chosen.by_signal {
            // SAFETY: the caller's promise.
            unsafe { builder.interrupt_by_signal() }
        } else {
            builder
        };
        let builder = builder
            .classifier(callbacks.classifier())
            .service(callbacks.program(chosen.stack_bytes))
            .listen_udp(chosen.listen);
        let builder = match chosen.steer {
            Some(steering) => builder.steer(steering),
            None => builder,
        };
        let running = HeadwayServer {
            server: builder.start()?,
        };
        // SAFETY: the caller's promise.
        unsafe { server.write(Box::into_raw(Box::new(running))) };
        Ok(())
    })
}

/// The server behind a handle; a null one is refused.
///
/// # Safety
/// `server` is null or came from headway_start() and was not stopped.
unsafe fn running<'a>(server: *const HeadwayServer) -> Result<&'a runtime::Server, CallFailure> {
    // SAFETY: the caller's promise.
    match unsafe { server.as_ref() } {
        Some(running) => Ok(&running.server),
        None => Err(CallFailure::argument(
            "the server is null: pass what headway_start() wrote",
        )),
    }
}

/// The port the server listens on; 0 if `server` is null, with a message in headway_last_error().
///
/// # Safety
/// `server` is null, or came from headway_start() and was not stopped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_port(server: *const HeadwayServer) -> u16 {
    let mut port = 0;
    report(|| {
        // SAFETY: the caller's promise.
        let addr = unsafe { running(server) }?.local_addr();
        port = addr.map_or(0, |addr| addr.port());
        Ok(())
    });
    port
}

/// The port where Prometheus and browsers ask, as headway_options.metrics chose it; 0 if it chose none, or `server` is null, with a message in
/// headway_last_error() then.
///
/// # Safety
/// As headway_port().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_metrics_port(server: *const HeadwayServer) -> u16 {
    let mut port = 0;
    report(|| {
        // SAFETY: the caller's promise.
        let addr = unsafe { running(server) }?.metrics_addr();
        port = addr.map_or(0, |addr| addr.port());
        Ok(())
    });
    port
}

/// The server's counts so far.
///
/// # Safety
/// As headway_port(); `stats` is null or has as many bytes as its size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_read_stats(
    server: *const HeadwayServer,
    stats: *mut HeadwayStats,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        unsafe { versioned::write(&HeadwayStats::from(&running(server)?.stats()), stats) }
    })
}

/// The server's counts so far for one class; the number of classes stands for unknown.
///
/// # Safety
/// As headway_port(); `stats` is null or has as many bytes as its size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_read_class_stats(
    server: *const HeadwayServer,
    index: usize,
    stats: *mut HeadwayClassStats,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let all = unsafe { running(server) }?.stats();
        let Some(of_class) = all.classes.get(index) else {
            let last = all.classes.len() - 1;
            return Err(CallFailure::argument(format!(
                "there is no class {index}: the last one, unknown, is {last}"
            )));
        };
        // SAFETY: the caller's promise.
        unsafe { versioned::write(&HeadwayClassStats::from(of_class), stats) }
    })
}

/// The server's counts so far for one worker. Behind the workers come the dispatchers, where the policy has any; one that only dispatches counts nothing.
///
/// # Safety
/// As headway_port(); `stats` is null or has as many bytes as its size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_read_worker_stats(
    server: *const HeadwayServer,
    index: usize,
    stats: *mut HeadwayWorkerStats,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let all = unsafe { running(server) }?.stats();
        let threads: Vec<_> = all.workers.iter().chain(&all.dispatchers).collect();
        let Some(of_worker) = threads.get(index) else {
            let (workers, dispatchers) = (all.workers.len(), all.dispatchers.len());
            return Err(CallFailure::argument(format!(
                "there is no worker {index}: the server has {workers}, and {dispatchers} dispatchers behind them"
            )));
        };
        // SAFETY: the caller's promise.
        unsafe { versioned::write(&HeadwayWorkerStats::from(*of_worker), stats) }
    })
}

/// Sets parameters of the server's policy while it serves, as in "q=5us,factor=3": those that docs/policies.md calls changeable. All of them change, or none.
/// Requests keep their places, and a slice that has begun ends as it was given.
///
/// # Safety
/// As headway_port(); `parameters` is null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_set_parameters(
    server: *const HeadwayServer,
    parameters: *const c_char,
) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        let (server, parameters) =
            unsafe { (running(server)?, text::optional(parameters, "parameters")?) };
        let Some(parameters) = parameters else {
            return Err(CallFailure::argument("the parameters are null"));
        };
        let spec = format!("{},{parameters}", server.policy());
        let set = |spec: Spec| server.tuner().set(&spec.params);
        let changed = spec.parse().and_then(set);
        changed
            .map_err(|error: SpecError| CallFailure::new(HEADWAY_E_POLICY, error.to_string()))?;
        Ok(())
    })
}

/// Asks the server to drain, and returns at once: it answers accepted requests and refuses later ones. It takes a lock, so do not call it in a
/// signal handler.
///
/// # Safety
/// As headway_port().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_request_stop(server: *const HeadwayServer) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        unsafe { running(server) }?.stopper().request_stop();
        Ok(())
    })
}

/// Waits until some thread calls headway_request_stop(), or a thread of the server fails. Call headway_stop() then: its deadline begins with its call.
///
/// # Safety
/// As headway_port().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_wait(server: *const HeadwayServer) -> c_int {
    report(|| {
        // SAFETY: the caller's promise.
        unsafe { running(server) }?.wait();
        Ok(())
    })
}

/// Stops the server and frees its handle, whatever the return value. The server takes the requests sent before, answers all that it
/// accepted, and ends its threads. Requests not begun after `deadline_ns` are given up. Unless `stats` is null it gets the server's total
/// counts, except when a handler did not return (HEADWAY_E_STUCK).
///
/// # Safety
/// As headway_port(), and the handle is not used afterwards; `stats` is null or has as many bytes as its size says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn headway_stop(
    server: *mut HeadwayServer,
    deadline_ns: u64,
    stats: *mut HeadwayStats,
) -> c_int {
    report(|| {
        if server.is_null() {
            return Err(CallFailure::argument(
                "the server is null: pass what headway_start() wrote",
            ));
        }
        // SAFETY: the caller's promise.
        let HeadwayServer { server } = *unsafe { Box::from_raw(server) };
        let done = server.shutdown(Duration::from_nanos(deadline_ns))?;
        if stats.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { versioned::write(&HeadwayStats::from(&done), stats) }
    })
}
