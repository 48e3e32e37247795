//! Programs on the cores that a host's daemon grants.
#![expect(unsafe_code, reason = "reads strings of C programs")]

use std::ffi::c_char;

use headway_host::SYSTEM_SOCKET;
use headway_host::client::{ClientOptions, HostClient};

use crate::status::{CallFailure, HEADWAY_E_START};
use crate::text;

/// The names that a struct of options gives: of an application in the daemon's settings, and of the daemon's socket.
pub(crate) struct HostNames {
    pub(crate) application: *const c_char,
    pub(crate) host_socket: *const c_char,
}

impl HostNames {
    /// Registers the program, if it names an application. `fill` completes the options by that name.
    ///
    /// # Safety
    /// Both are null or strings that end with a NUL.
    pub(crate) unsafe fn register(
        &self,
        fill: impl FnOnce(&str) -> ClientOptions,
    ) -> Result<Option<HostClient>, CallFailure> {
        // SAFETY: the caller's promise.
        let (application, socket) = unsafe {
            let application = text::optional(self.application, "application")?;
            (
                application,
                text::optional(self.host_socket, "host_socket")?,
            )
        };
        let Some(application) = application else {
            return match socket {
                Some(_) => Err(CallFailure::argument(
                    "host_socket is the daemon's of an application: name that too, or leave it null",
                )),
                None => Ok(None),
            };
        };
        HostClient::register(socket.unwrap_or(SYSTEM_SOCKET), &fill(application))
            .map(Some)
            .map_err(|error| CallFailure::new(HEADWAY_E_START, error.to_string()))
    }
}
