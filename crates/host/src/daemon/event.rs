//! The events by which the daemon's threads and its applications wake each other.

use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;

/// A new event that nobody has rung.
///
/// # Errors
/// The system's error. A filter of system calls looks like a lack of rights: there the call is named.
pub(super) fn event() -> io::Result<EventFd> {
    let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
    EventFd::from_value_and_flags(0, flags).map_err(refused)
}

/// The limit of open files stays what it is.
fn refused(errno: Errno) -> io::Error {
    match errno {
        Errno::EPERM | Errno::EACCES | Errno::ENOSYS => io::Error::new(
            io::Error::from(errno).kind(),
            format!(
                "eventfd2: {errno}: a filter of system calls (seccomp) refuses what the daemon's threads are woken by; allow eventfd2 there"
            ),
        ),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_event_names_the_call_and_the_filter() {
        for errno in [Errno::EPERM, Errno::EACCES, Errno::ENOSYS] {
            let told = refused(errno).to_string();
            assert!(
                told.contains("eventfd2") && told.contains("seccomp"),
                "{told}"
            );
        }
        assert_eq!(refused(Errno::EMFILE).raw_os_error(), Some(libc::EMFILE));
    }

    #[test]
    fn an_event_is_quiet_until_it_rings() {
        let event = event().unwrap();
        assert_eq!(event.read(), Err(Errno::EAGAIN));
        event.write(1).unwrap();
        assert_eq!(event.read(), Ok(1));
    }
}
