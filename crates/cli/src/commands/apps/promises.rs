//! What the handlers of the built-in services bear.
#![expect(unsafe_code, reason = "the handlers of the services are known")]

use super::BuiltInApp;
use headway::config::HandlerPromises;

impl BuiltInApp {
    /// What may be done to its handlers.
    pub(crate) fn promises(self) -> HandlerPromises {
        let promises = HandlerPromises::none();
        match self {
            // A sleep would go on beside the request that interrupted it.
            Self::Sleep => promises,
            // The storage engine has locks and caches that belong to a thread, and it allocates.
            Self::Kv => promises,
            // SAFETY: they read clocks and the request's own buffer; nothing that they keep over an interruption is the thread's, and they
            // neither allocate nor lock.
            Self::Spin | Self::Echo => unsafe { promises.resume_anywhere().interrupt_by_signal() },
        }
    }
}
