//! Notifications to the service manager: the daemon is ready, and alive (sd_notify(3)).

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The connection to the service manager.
#[derive(Debug)]
pub struct Notifier {
    socket: UnixDatagram,
    manager: SocketAddr,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Opens the socket that the environment names; `None` if it names none.
    ///
    /// # Errors
    /// As the system.
    pub fn from_environment() -> io::Result<Option<Self>> {
        let Some(place) = std::env::var_os("NOTIFY_SOCKET") else {
            return Ok(None);
        };
        let usec = std::env::var("WATCHDOG_USEC").ok();
        let watchdog = usec.and_then(|usec| usec.parse().ok());
        Self::to(
            &place.to_string_lossy(),
            watchdog.map(Duration::from_micros),
        )
        .map(Some)
    }

    fn to(place: &str, watchdog: Option<Duration>) -> io::Result<Self> {
        let manager = match place.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(place)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            manager,
            watchdog,
        })
    }

    /// The interval of the daemon's signs of life: half of the manager's timeout.
    pub fn every(&self) -> Option<Duration> {
        self.watchdog.map(|patience| patience / 2)
    }

    /// Sends a notification: `READY=1`, `WATCHDOG=1`, `STOPPING=1`.
    ///
    /// # Errors
    /// As the system.
    pub fn say(&self, what: &str) -> io::Result<()> {
        self.socket
            .send_to_addr(what.as_bytes(), &self.manager)
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manager_hears_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("notify");
        let manager = UnixDatagram::bind(&place).unwrap();
        let notifier =
            Notifier::to(&place.to_string_lossy(), Some(Duration::from_secs(4))).unwrap();
        notifier.say("READY=1").unwrap();
        let mut heard = [0; 32];
        let length = manager.recv(&mut heard).unwrap();
        assert_eq!(&heard[..length], b"READY=1");
        assert_eq!(notifier.every(), Some(Duration::from_secs(2)));
    }
}
