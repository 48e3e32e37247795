//! A process whose status is asked for again and again.

use super::client::status_of;
use anyhow::{Result, anyhow};
use serde_json::Value;
use std::io::ErrorKind;
use std::path::PathBuf;

/// The process that answers at a control socket.
pub(crate) struct WatchedProcess<N> {
    socket: PathBuf,
    /// The noun for it.
    what: &'static str,
    /// The error with its flag for a reason why nobody is asked.
    nobody: N,
}

impl<N: Fn(String) -> anyhow::Error> WatchedProcess<N> {
    pub(crate) fn new(socket: PathBuf, what: &'static str, nobody: N) -> Self {
        Self {
            socket,
            what,
            nobody,
        }
    }

    /// Its status at the first look.
    pub(crate) fn status(&self) -> Result<Value> {
        status_of(&self.socket, &self.nobody)
    }

    /// Its status at a further look. None where it has ended in order: it took its socket along.
    ///
    /// # Errors
    /// It was killed, or does not answer. The user named it rightly before, so this is no usage error.
    pub(crate) fn status_again(&self) -> Result<Option<Value>> {
        match status_of(&self.socket, |why| anyhow!(why)) {
            Err(_) if self.took_its_socket_along() => Ok(None),
            status => status.map(Some),
        }
    }

    /// Says that it has ended.
    pub(crate) fn tell_end(&self) {
        eprintln!("the {} at {} has ended", self.what, self.socket.display());
    }

    fn took_its_socket_along(&self) -> bool {
        let found = self.socket.symlink_metadata();
        found.is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }
}
