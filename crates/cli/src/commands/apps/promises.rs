//! Which mechanisms of interruption the handlers of the built-in services tolerate.
#![expect(unsafe_code, reason = "the handlers of the services are known")]

use super::BuiltInApp;
use headway::config::HandlerPromises;

impl BuiltInApp {
    /// The ways in which the service's handlers may be interrupted and moved.
    pub(crate) fn promises(self) -> HandlerPromises {
        let promises = HandlerPromises::none();
        match self {
            // A sleep would continue while the interrupting request runs.
            Self::Sleep => promises,
            // The storage engine allocates, and its locks and caches belong to a thread.
            Self::Kv => promises,
            // SAFETY: the handlers read clocks and the request's own buffer. They keep no thread's state across an interruption, and
            // neither allocate nor lock.
            Self::Spin | Self::Echo => unsafe { promises.resume_anywhere().interrupt_by_signal() },
        }
    }
}
