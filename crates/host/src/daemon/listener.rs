//! The socket at which applications register; one daemon owns it.

use super::access;
use super::settings::AppRule;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, listen, socket,
};
use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A listening socket, and the lock that keeps a second daemon out.
#[derive(Debug)]
pub(super) struct HostListener {
    pub(super) socket: OwnedFd,
    path: PathBuf,
    _lock: File,
    /// Whether the last daemon crashed.
    pub(super) was_stale: bool,
    /// Whether the daemon has started. One that fails at its start leaves no socket, which would look like a crash.
    serves: bool,
}

impl Drop for HostListener {
    fn drop(&mut self) {
        // After a crash the socket stays, so that the next daemon waits for the applications.
        if !self.serves && !self.was_stale {
            self.remove();
        }
    }
}

impl HostListener {
    /// Listens at a path, for the daemon's user and those that the rules name.
    ///
    /// # Errors
    /// A sentence with the remedy.
    pub(super) fn bind(path: &Path, rules: &[AppRule]) -> Result<Self, String> {
        let place = path.display();
        let lock_path = path.with_added_extension("lock");
        let cannot = |what: &str, error: io::Error| {
            format!("cannot {what} {place}: {error}; choose another place with --socket")
        };
        let lock = own_lock(&lock_path).map_err(|error| cannot("lock", error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!(
                    "another daemon listens at {place}: end it, or choose another place with --socket"
                ));
            }
            Err(TryLockError::Error(error)) => return Err(cannot("lock", error)),
        }
        // The lock proves that an existing socket belongs to a dead daemon.
        let was_stale = match fs::symlink_metadata(path) {
            Ok(found) if found.file_type().is_socket() => {
                fs::remove_file(path).map_err(|error| cannot("remove the old socket", error))?;
                true
            }
            Ok(_) => {
                return Err(format!(
                    "{place} is there and is no socket: remove it, or choose another place with --socket"
                ));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(cannot("look at", error)),
        };
        let listening = || -> io::Result<OwnedFd> {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let fd = socket(AddressFamily::Unix, SockType::SeqPacket, flags, None)?;
            bind(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
            access::open_to(path, rules)?;
            listen(&fd, Backlog::new(64)?)?;
            Ok(fd)
        };
        Ok(Self {
            socket: listening().map_err(|error| cannot("listen at", error))?,
            path: path.into(),
            _lock: lock,
            was_stale,
            serves: false,
        })
    }

    /// Records that the daemon has started: from now on only [`remove`](Self::remove) removes the socket.
    pub(super) fn serve(&mut self) {
        self.serves = true;
    }

    /// Removes the socket when the daemon ends in order.
    pub(super) fn remove(&self) {
        // An error means that the file is gone already.
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens the lock file for the daemon's user alone: whoever can open it can lock it, and so keep every daemon from starting.
fn own_lock(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    let file = options
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)?;
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != access::own_uid() || found.nlink() != 1 {
        let why = format!(
            "{} is there, and is no file of this user's own: remove it",
            path.display()
        );
        return Err(io::Error::other(why));
    }
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_daemon_listens_and_a_stale_socket_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.sock");
        let failed = HostListener::bind(&path, &[]).unwrap();
        drop(failed);
        assert!(!path.exists(), "the daemon never started");
        let mut first = HostListener::bind(&path, &[]).unwrap();
        assert!(!first.was_stale);
        first.serve();
        let second = HostListener::bind(&path, &[]).unwrap_err();
        assert!(second.contains("another daemon listens"), "{second}");
        drop(first);
        assert!(path.exists(), "it died");
        drop(HostListener::bind(&path, &[]).unwrap());
        assert!(
            path.exists(),
            "applications still wait for the one that died"
        );
        let third = HostListener::bind(&path, &[]).unwrap();
        assert!(third.was_stale);
        third.remove();
        drop(third);
        fs::write(&path, "").unwrap();
        let taken = HostListener::bind(&path, &[]).unwrap_err();
        assert!(taken.contains("is no socket"), "{taken}");
        let nowhere = folder.path().join("absent/host.sock");
        let error = HostListener::bind(&nowhere, &[]).unwrap_err();
        assert!(error.contains("choose another place"), "{error}");
    }

    #[test]
    fn nobody_else_can_lock_it_and_no_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.sock");
        let lock = path.with_added_extension("lock");
        fs::write(&lock, "").unwrap();
        fs::set_permissions(&lock, Permissions::from_mode(0o644)).unwrap();
        let listener = HostListener::bind(&path, &[]).unwrap();
        let mode = fs::metadata(&lock).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(listener);
        fs::remove_file(&lock).unwrap();
        let victim = folder.path().join("victim");
        std::os::unix::fs::symlink(&victim, &lock).unwrap();
        let refused = HostListener::bind(&path, &[]).unwrap_err();
        assert!(refused.contains("cannot lock"), "{refused}");
        assert!(!victim.exists(), "no file was made behind the link");
    }
}
