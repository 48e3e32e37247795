//! Leaving a core in the middle of the code that a kthread runs: what its scheduler offers to the handler of an arbiter's signal.
#![expect(
    unsafe_code,
    reason = "a promise about the code that a signal interrupts"
)]

use std::ffi::{c_int, c_void};

/// Suspends the thread in user space that a signal interrupted: see [`AtSignal::suspends`].
type Suspend = unsafe fn(signal: c_int, context: *mut c_void) -> bool;

/// What an arbiter's signal does to the code that a kthread runs. The scheduler of that code knows, and the signal's handler asks.
#[derive(Clone, Copy, Debug)]
pub struct AtSignal {
    may_stop: fn() -> bool,
    suspend: Option<Suspend>,
}

impl AtSignal {
    /// The kthread stops, wherever it is, and goes on there with its next core.
    pub const STOPS: AtSignal = AtSignal::stops_where(|| true);

    /// The kthread goes on, and reads its orders by itself.
    pub const GOES_ON: AtSignal = AtSignal::stops_where(|| false);

    /// The kthread stops where `may_stop` permits it. The handler calls the function, so it only reads and writes thread-local words or returns a constant.
    pub const fn stops_where(may_stop: fn() -> bool) -> AtSignal {
        AtSignal {
            may_stop,
            suspend: None,
        }
    }

    /// As [`stops_where`](Self::stops_where). But where the kthread runs a thread in user space, `suspend` puts that thread back into its run queue, the kthread
    /// gives its core back, and another one may continue the thread (Shenango § 6.2). `suspend` returns `true` once the thread was suspended and resumed,
    /// maybe on another kthread, and `false` without an effect where it cannot be suspended.
    ///
    /// # Safety
    /// `suspend` may be called as [`suspend`](Self::suspend) is, by any kthread of the application, at any instruction where `may_stop` returns true.
    pub const unsafe fn suspends(may_stop: fn() -> bool, suspend: Suspend) -> AtSignal {
        AtSignal {
            may_stop,
            suspend: Some(suspend),
        }
    }

    /// Whether the kthread may stop at the point that the signal interrupted.
    pub fn may_stop(&self) -> bool {
        (self.may_stop)()
    }

    /// Suspends the interrupted thread in user space. After `true` the caller may run on another kernel thread. `false`: nothing has happened.
    ///
    /// # Safety
    /// The caller handles `signal`, on the stack of the code that it interrupted; [`may_stop`](Self::may_stop) returned true; the signal is blocked meanwhile;
    /// `context` is the `ucontext_t` that the handler was given.
    pub unsafe fn suspend(self, signal: c_int, context: *mut c_void) -> bool {
        // SAFETY: the promises of both callers.
        self.suspend
            .is_some_and(|suspend| unsafe { suspend(signal, context) })
    }
}
