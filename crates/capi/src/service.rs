//! The program's functions, which the server calls.
#![expect(unsafe_code, reason = "calls functions of C programs")]

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use headway_net::classify::{AnyClassifier, Classifier, WireType};
use headway_policy::WorkerId;
use headway_runtime::{self as runtime, Call, Pull, PullService, SetupFailure};

use crate::request::HeadwayRequest;
use crate::requests::HeadwayRequests;
use crate::status::{CallFailure, HEADWAY_E_SETUP};
use crate::versioned::{self, Versioned};

/// Bytes of the wire header that every datagram begins with: docs/wire.md.
pub const HEADWAY_HEADER_BYTES: usize = 10;
const _: () = assert!(HEADWAY_HEADER_BYTES == headway_net::header::HEADER_BYTES);

/// The functions that the server calls. Begin with `struct headway_service service = {.size = sizeof service};`. No C++ exception may leave
/// one of the functions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HeadwayService {
    /// sizeof(struct headway_service).
    pub size: usize,
    /// Handed to each of the functions. Used by all threads.
    pub context: *mut c_void,
    /// Called once by headway_start(), before any thread exists; may be null. The server starts only if it returns 0.
    pub setup: Option<unsafe extern "C" fn(context: *mut c_void) -> c_int>,
    /// Called once by each thread that will handle requests, before the first of them; may be null. `core` is the one the thread is pinned to,
    /// or -1; `worker` counts from 0, and is the number of workers for a dispatcher that works too. The server starts only if it returns 0.
    pub setup_worker:
        Option<unsafe extern "C" fn(context: *mut c_void, worker: c_uint, core: c_int) -> c_int>,
    /// Answers a request; called by all workers at once. Null if `serve` is not. It is interrupted at its probes, and resumes where
    /// headway_options.resume says. A request that it leaves unanswered gets an answer without payload.
    pub handle_request:
        Option<unsafe extern "C" fn(context: *mut c_void, request: *mut HeadwayRequest)>,
    /// Tells a request's class from its datagram, wire header included; may be null: then the header's type is the class. Called by
    /// one thread at a time with a dispatcher, by all workers without; never interrupted. Negative for unknown.
    pub classify: Option<
        unsafe extern "C" fn(context: *mut c_void, datagram: *const u8, length: usize) -> c_int,
    >,
    /// In place of handle_request: a loop that takes requests by headway_recv() and answers them by headway_send() until headway_recv() has none while it holds
    /// none. Called once by each worker's thread as the server starts, and again for each request that begins while all of the worker's loops are busy with
    /// others. A loop that returns earlier fails the requests that it holds.
    pub serve: Option<unsafe extern "C" fn(context: *mut c_void, requests: *mut HeadwayRequests)>,
    /// Called once in each thread that lends requests its state (headway_options.fibers), before the first of them; may be null. What setup_worker left in
    /// thread-local variables is not there.
    pub setup_fiber: Option<unsafe extern "C" fn(context: *mut c_void)>,
}

// SAFETY: as asked: pointers, which may be null, the size first.
unsafe impl Versioned for HeadwayService {
    const NAME: &'static str = "headway_service";
}

/// The program's functions, as Rust calls them.
#[derive(Clone, Copy)]
pub(crate) struct Callbacks {
    service: HeadwayService,
}

// SAFETY: `headway_start` asks that the functions can be called with the context from any thread.
unsafe impl Send for Callbacks {}
// SAFETY: as above, and at once.
unsafe impl Sync for Callbacks {}

impl Callbacks {
    /// # Safety
    /// `service` is null or points to as many readable bytes as its size says; its functions are what the struct asks for.
    pub(crate) unsafe fn read(service: *const HeadwayService) -> Result<Self, CallFailure> {
        // SAFETY: the caller's promise.
        let service = unsafe { versioned::read(service) }?;
        match (service.handle_request, service.serve) {
            (None, None) => Err(CallFailure::argument(
                "headway_service.handle_request is null, and serve is too: set one of them",
            )),
            (Some(_), Some(_)) => Err(CallFailure::argument(
                "headway_service has both handle_request and serve: set one of them",
            )),
            _ => Ok(Self { service }),
        }
    }

    /// Whether requests are taken by loops.
    pub(crate) fn is_loop(&self) -> bool {
        self.service.serve.is_some()
    }

    /// The handler of requests. A loop's stack has `stack_bytes` bytes, or the default for 0.
    pub(crate) fn program(self, stack_bytes: usize) -> Program {
        let stack_bytes = match stack_bytes {
            0 => Pull::<Self>::STACK_BYTES,
            bytes => bytes,
        };
        match self.service.handle_request {
            Some(handle) => Program::Handler {
                callbacks: self,
                handle,
            },
            None => Program::Loop(Pull::with(self, Pull::<Self>::MOST_HELD, stack_bytes)),
        }
    }

    fn setup_worker(&self, worker: WorkerId, core: Option<usize>) -> Result<(), SetupFailure> {
        let Some(setup) = self.service.setup_worker else {
            return Ok(());
        };
        let core = core.map_or(-1, |core| core as c_int);
        // SAFETY: what it is was promised to `read`.
        match unsafe { setup(self.service.context, c_uint::from(worker.0), core) } {
            0 => Ok(()),
            code => Err(format!("setup_worker returned {code}").into()),
        }
    }

    /// Calls `setup`.
    pub(crate) fn setup(&self) -> Result<(), CallFailure> {
        let Some(setup) = self.service.setup else {
            return Ok(());
        };
        // SAFETY: what it is was promised to `read`.
        match unsafe { setup(self.service.context) } {
            0 => Ok(()),
            code => Err(CallFailure::new(
                HEADWAY_E_SETUP,
                format!("setup returned {code}"),
            )),
        }
    }

    /// The classifier of requests.
    pub(crate) fn classifier(self) -> Classes {
        Classes {
            header: AnyClassifier::Header(WireType::identity()),
            callbacks: self,
        }
    }
}

/// The handler of requests: a function called with each, or a loop that takes them.
pub(crate) enum Program {
    Handler {
        callbacks: Callbacks,
        handle: unsafe extern "C" fn(*mut c_void, *mut HeadwayRequest),
    },
    Loop(Pull<Callbacks>),
}

impl runtime::Service for Program {
    #[inline]
    fn handle(&self, call: &mut Call<'_>) {
        match self {
            Self::Handler { callbacks, handle } => {
                // SAFETY: what it is was promised to `read`. The request is valid until the function returns.
                unsafe { handle(callbacks.service.context, ptr::from_mut(call).cast()) };
            }
            Self::Loop(pull) => pull.handle(call),
        }
    }

    fn setup_worker(&self, worker: WorkerId, core: Option<usize>) -> Result<(), SetupFailure> {
        match self {
            Self::Handler { callbacks, .. } => callbacks.setup_worker(worker, core),
            Self::Loop(pull) => pull.setup_worker(worker, core),
        }
    }

    fn setup_fiber(&self) {
        if let Self::Handler { callbacks, .. } = self
            && let Some(setup) = callbacks.service.setup_fiber
        {
            // SAFETY: what it is was promised to `read`.
            unsafe { setup(callbacks.service.context) };
        }
    }

    fn has_own_stacks(&self) -> bool {
        matches!(self, Self::Loop(_))
    }

    fn leave_worker(&self) {
        match self {
            Self::Handler { .. } => {}
            Self::Loop(pull) => pull.leave_worker(),
        }
    }
}

impl PullService for Callbacks {
    fn serve(&self, requests: &runtime::Requests) {
        let Some(serve) = self.service.serve else {
            unreachable!("a program without handle_request has a loop");
        };
        // SAFETY: what it is was promised to `read`. The requests are there until the function returns.
        unsafe {
            serve(
                self.service.context,
                ptr::from_ref(requests).cast_mut().cast(),
            );
        };
    }

    fn setup_worker(&self, worker: WorkerId, core: Option<usize>) -> Result<(), SetupFailure> {
        Callbacks::setup_worker(self, worker, core)
    }
}

/// Classifies by the wire header's type, or by the program's function.
pub(crate) struct Classes {
    header: AnyClassifier,
    callbacks: Callbacks,
}

impl Classifier for Classes {
    #[inline]
    fn classify(&self, datagram: &[u8]) -> Option<u16> {
        let service = &self.callbacks.service;
        let Some(classify) = service.classify else {
            return self.header.classify(datagram);
        };
        // SAFETY: what it is was promised to `read`; the bytes are there for the call.
        let class = unsafe { classify(service.context, datagram.as_ptr(), datagram.len()) };
        u16::try_from(class).ok()
    }

    #[inline]
    fn is_request(&self, datagram: &[u8]) -> bool {
        self.header.is_request(datagram)
    }
}
