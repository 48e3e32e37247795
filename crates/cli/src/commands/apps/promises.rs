//! Which mechanisms of interruption the handlers of the built-in services tolerate.
#![expect(unsafe_code, reason = "the handlers of the services are known")]

use super::BuiltInApp;
use headway::config::HandlerPromises;

impl BuiltInApp {
    /// The ways in which the service's handlers may be interrupted and moved.
    pub(crate) fn promises(self) -> HandlerPromises {
        // SAFETY: no handler keeps anything of its thread where it may be interrupted. `spin` and `echo` read clocks and the request's own buffer, and
        // `sleep` meets no probe. `kv` uses its store in no-preempt sections, and a SCAN drops its iterator before its section ends.
        let promises = unsafe { HandlerPromises::none().keeping_nothing_in_threads() };
        match self {
            // A sleep would continue while the interrupting request runs.
            Self::Sleep => promises,
            // The handlers allocate outside of sections.
            Self::Kv => promises,
            // SAFETY: they neither allocate nor lock.
            Self::Spin | Self::Echo => unsafe { promises.interrupt_by_signal() },
        }
    }
}
