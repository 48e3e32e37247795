//! A thread that accepts connections where no descriptor is free: it waits, and says once why it answers nobody.

use headway_machine::stderr;
use nix::errno::Errno;
use std::io;
use std::time::Duration;

/// The connections that a listening socket could not accept, by which it says once what is missing.
#[derive(Debug)]
pub struct AcceptFailures {
    listener: String,
    is_told: bool,
}

impl AcceptFailures {
    /// How long to wait after a failed call: the connection stays in the socket's queue, so another call would fail at once.
    pub const RETRY: Duration = Duration::from_millis(100);

    /// None yet. `listener` begins the sentence: `the control socket /run/headway/1.sock`.
    #[must_use]
    pub fn new(listener: impl Into<String>) -> Self {
        Self {
            listener: listener.into(),
            is_told: false,
        }
    }

    /// Writes to standard error what is missing and the remedy, for the first call that failed for want of descriptors.
    pub fn tell(&mut self, error: &io::Error) {
        if let Some(sentence) = self.sentence(error)
            && !std::mem::replace(&mut self.is_told, true)
        {
            stderr::write_line(&sentence);
        }
    }

    /// `None` for errors of a single connection.
    fn sentence(&self, error: &io::Error) -> Option<String> {
        let missing = match Errno::from_raw(error.raw_os_error()?) {
            Errno::EMFILE => {
                "this process has as many files open as it may: raise the limit (`ulimit -n`) and start it anew"
            }
            Errno::ENFILE => {
                "this machine has as many files open as it may: raise the limit (`sysctl fs.file-max`)"
            }
            Errno::ENOBUFS | Errno::ENOMEM => "the kernel has no memory for a connection",
            _ => return None,
        };
        let listener = &self.listener;
        Some(format!(
            "headway: {listener} answers no new client for now, and tries again: {missing}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_has_its_remedy_and_a_lost_connection_is_nobodys_fault() {
        let failures = AcceptFailures::new("port 9100");
        let said = |errno: Errno| failures.sentence(&errno.into());
        let own = said(Errno::EMFILE).unwrap();
        assert!(
            own.starts_with("headway: port 9100 answers no new client"),
            "{own}"
        );
        assert!(own.contains("`ulimit -n`"), "{own}");
        assert!(said(Errno::ENFILE).unwrap().contains("fs.file-max"));
        assert!(said(Errno::ENOMEM).unwrap().contains("no memory"));
        assert_eq!(said(Errno::ECONNABORTED), None);
    }
}
