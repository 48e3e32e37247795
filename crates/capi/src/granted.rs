//! Programs on the cores that a host's daemon grants.
#![expect(unsafe_code, reason = "reads strings of C programs")]

use std::ffi::c_char;

use headway_host::SYSTEM_SOCKET;
use headway_host::client::{ClientOptions, HostClient};

use crate::status::{CallFailure, HEADWAY_E_START};
use crate::text;

/// What a struct of options names: an application of the daemon's settings, and the daemon's socket.
pub(crate) struct HostNames {
    application: String,
    socket: String,
}

impl HostNames {
    /// The names, if there is an application.
    ///
    /// # Safety
    /// Both are null or strings that end with a NUL.
    pub(crate) unsafe fn read(
        application: *const c_char,
        socket: *const c_char,
    ) -> Result<Option<HostNames>, CallFailure> {
        // SAFETY: the caller's promise.
        let (application, socket) = unsafe {
            let application = text::optional(application, "application")?;
            (application, text::optional(socket, "host_socket")?)
        };
        match (application, socket) {
            (Some(application), socket) => Ok(Some(HostNames {
                application: application.into(),
                socket: socket.unwrap_or(SYSTEM_SOCKET).into(),
            })),
            (None, None) => Ok(None),
            (None, Some(_)) => Err(CallFailure::argument(
                "host_socket needs an application: set application too, or leave host_socket null",
            )),
        }
    }

    /// The application's name.
    pub(crate) fn application(&self) -> &str {
        &self.application
    }

    /// Registers the program.
    pub(crate) fn register(&self, options: &ClientOptions) -> Result<HostClient, CallFailure> {
        HostClient::register(&self.socket, options)
            .map_err(|error| CallFailure::new(HEADWAY_E_START, error.to_string()))
    }
}
