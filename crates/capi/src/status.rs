//! Return codes, and the message of the last one.
#![expect(unsafe_code, reason = "functions with names that C links to")]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use headway_pool::{BuildError, JoinError, ShutdownTimeout, SubmitError};
use headway_runtime::{DoorError, ShutdownError, StartError};

/// Success.
pub const HEADWAY_OK: c_int = 0;
/// An argument is null, out of range, or of a later version than the library.
pub const HEADWAY_E_ARGUMENT: c_int = -1;
/// The policy's name or one of its parameters is wrong.
pub const HEADWAY_E_POLICY: c_int = -2;
/// The address is malformed, or cannot be listened on.
pub const HEADWAY_E_ADDRESS: c_int = -3;
/// setup or setup_worker did not return 0.
pub const HEADWAY_E_SETUP: c_int = -4;
/// The server could not start for another reason.
pub const HEADWAY_E_START: c_int = -5;
/// A handler, or a job of a pool, did not return in time; its thread was left behind.
pub const HEADWAY_E_STUCK: c_int = -6;
/// The response is larger than HEADWAY_MAX_REPLY_BYTES; the client gets an error. Or a text does not fit the room for it.
pub const HEADWAY_E_TOO_LARGE: c_int = -7;
/// A bug in Headway itself: a thread of the server, or this call, panicked.
pub const HEADWAY_E_INTERNAL: c_int = -8;
/// headway_recv() has no request: the server has ended, or no other may begin beside the requests that the loop holds. Or a joined thread never
/// ends, since its runtime was stopped.
pub const HEADWAY_E_NONE: c_int = -9;
/// A pool did not accept the job: a queue is full, or the SLO of its class would be missed by waiting.
pub const HEADWAY_E_OVERLOADED: c_int = -10;
/// A pool accepted the job and shed it before it began: it made room for a shorter class, or did not begin in time.
pub const HEADWAY_E_SHED: c_int = -11;
/// The job was cancelled before it began.
pub const HEADWAY_E_CANCELLED: c_int = -12;
/// The pool ended before the job began.
pub const HEADWAY_E_ABANDONED: c_int = -13;
/// The pool is shut down, or the process was forked and its pool is the parent's.
pub const HEADWAY_E_SHUT_DOWN: c_int = -14;
/// A job of the pool would wait for the pool itself, or a thread of a runtime would end that.
pub const HEADWAY_E_INSIDE: c_int = -15;
/// A connection was refused, reset, or is closed.
pub const HEADWAY_E_CONNECTION: c_int = -16;
/// It did not happen in time, or the peer was silent for too long.
pub const HEADWAY_E_TIMEOUT: c_int = -17;

/// A code with its message.
#[derive(Debug)]
pub(crate) struct CallFailure {
    code: c_int,
    message: String,
}

impl CallFailure {
    pub(crate) fn new(code: c_int, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(HEADWAY_E_ARGUMENT, message)
    }
}

impl From<StartError> for CallFailure {
    fn from(error: StartError) -> Self {
        let code = match error {
            StartError::Doors(DoorError::Control(why)) => {
                return Self::argument(format!(
                    "headway_options.control: {why}: choose another path, or null for none"
                ));
            }
            StartError::Doors(DoorError::Metrics { .. }) => {
                return Self::argument(format!("headway_options.metrics: {error}"));
            }
            StartError::Policy(_) => HEADWAY_E_POLICY,
            StartError::Bind(_) => HEADWAY_E_ADDRESS,
            StartError::Setup { .. } => HEADWAY_E_SETUP,
            StartError::SameName { .. } => HEADWAY_E_ARGUMENT,
            _ => HEADWAY_E_START,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ShutdownError> for CallFailure {
    fn from(error: ShutdownError) -> Self {
        let code = match error {
            ShutdownError::Stuck { .. } => HEADWAY_E_STUCK,
            _ => HEADWAY_E_INTERNAL,
        };
        Self::new(code, error.to_string())
    }
}

impl From<BuildError> for CallFailure {
    fn from(error: BuildError) -> Self {
        let code = match error {
            BuildError::Policy(_)
            | BuildError::KnownProfile { .. }
            | BuildError::SeveralDispatchers { .. }
            | BuildError::NoDispatcher { .. } => HEADWAY_E_POLICY,
            BuildError::Doors(DoorError::Metrics { .. }) => HEADWAY_E_ADDRESS,
            BuildError::Thread(_) | BuildError::Pin(_) | BuildError::Stacks(_) => HEADWAY_E_START,
            _ => HEADWAY_E_ARGUMENT,
        };
        Self::new(code, error.to_string())
    }
}

impl From<SubmitError> for CallFailure {
    fn from(error: SubmitError) -> Self {
        let code = match error {
            SubmitError::Overloaded { .. } => HEADWAY_E_OVERLOADED,
            SubmitError::ShutDown | SubmitError::Forked => HEADWAY_E_SHUT_DOWN,
            SubmitError::InsidePool => HEADWAY_E_INSIDE,
            _ => HEADWAY_E_ARGUMENT,
        };
        Self::new(code, error.to_string())
    }
}

impl From<&JoinError> for CallFailure {
    fn from(error: &JoinError) -> Self {
        let code = match error {
            JoinError::Refused(refused) => return refused.clone().into(),
            JoinError::Cancelled => HEADWAY_E_CANCELLED,
            JoinError::Shed(_) => HEADWAY_E_SHED,
            JoinError::Abandoned => HEADWAY_E_ABANDONED,
            _ => HEADWAY_E_INTERNAL,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ShutdownTimeout> for CallFailure {
    fn from(left: ShutdownTimeout) -> Self {
        let code = if left.running > 0 {
            HEADWAY_E_STUCK
        } else {
            HEADWAY_E_ABANDONED
        };
        Self::new(code, left.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The message of this thread's last failed call, in English; empty before the first. Valid until the next call that fails.
#[unsafe(no_mangle)]
pub extern "C" fn headway_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// Runs the body of an interface function, and turns a failure or a panic into its code.
pub(crate) fn report(body: impl FnOnce() -> Result<(), CallFailure>) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(body));
    let failure = match result {
        Ok(Ok(())) => return HEADWAY_OK,
        Ok(Err(failure)) => failure,
        Err(panic) => CallFailure::new(HEADWAY_E_INTERNAL, words_of(&*panic)),
    };
    let words = failure.message.replace('\0', "\u{fffd}");
    // An ending thread has no thread-local storage for the message any more; the code alone has to do.
    let _ = LAST.try_with(|last| *last.borrow_mut() = CString::new(words).unwrap_or_default());
    failure.code
}

fn words_of(panic: &(dyn Any + Send)) -> String {
    let said = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!(
        "a mistake in Headway: {}",
        said.unwrap_or("a panic without words")
    )
}
