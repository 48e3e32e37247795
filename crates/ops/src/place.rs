//! Where processes listen for control: a socket for each, named by its port or process, in a directory of the user's own.

use nix::sys::socket::{getsockopt, sockopt};
use std::fmt::Display;
use std::fs::{self, DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The user that this process acts as.
///
/// # Errors
/// Those of a pair of sockets, by which it asks.
pub fn own_uid() -> io::Result<u32> {
    // Who makes a pair of sockets is its peer; unlike /proc it is there in every container.
    let (own, _peer) = UnixStream::pair()?;
    Ok(getsockopt(&own, sockopt::PeerCredentials)?.uid())
}

/// The directories in which processes of this user listen by default, the preferred one first.
#[must_use]
pub fn directories(uid: u32) -> Vec<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| path.is_absolute() && path.is_dir());
    let runtime = runtime.map(|path| path.join("headway"));
    let temporary = Path::new("/tmp").join(format!("headway-{uid}"));
    runtime.into_iter().chain([temporary]).collect()
}

/// The kind of process behind a control socket. Each kind is looked for by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketKind {
    /// A server: `headway serve`, or a program with one.
    Server,
    /// `headway rack`.
    Rack,
    /// `headway host`.
    Host,
    /// A program with a pool.
    Pool,
}

impl SocketKind {
    fn extension(self) -> &'static str {
        match self {
            Self::Server => "sock",
            Self::Rack => "rack",
            Self::Host => "host",
            Self::Pool => "pool",
        }
    }
}

/// The socket of this kind and name in one of the [`directories`]: a server's name is its port, a pool's `PROCESS-NUMBER`.
#[must_use]
pub fn socket(directory: &Path, kind: SocketKind, name: impl Display) -> PathBuf {
    directory.join(format!("{name}.{}", kind.extension()))
}

/// Makes the directory, for this user alone.
///
/// # Errors
/// A sentence: the directory cannot be made, or other users could write to it.
pub fn make_own(directory: &Path, uid: u32) -> Result<(), String> {
    let place = directory.display();
    match DirBuilder::new().mode(0o700).create(directory) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(format!("cannot make {place}: {error}")),
    }
    check_own(directory, uid)
}

/// Whether the directory is this user's alone.
///
/// # Errors
/// In a sentence.
pub fn check_own(directory: &Path, uid: u32) -> Result<(), String> {
    let place = directory.display();
    // The owner of a link could redirect it.
    let found = fs::symlink_metadata(directory).map_err(|error| format!("{place}: {error}"))?;
    if !found.is_dir() {
        return Err(format!("{place} is no directory"));
    }
    if found.uid() != uid {
        return Err(format!(
            "{place} belongs to user {}, not to {uid}",
            found.uid()
        ));
    }
    if found.permissions().mode() & 0o077 != 0 {
        return Err(format!(
            "others may enter {place}: make it yours alone (chmod 700)"
        ));
    }
    Ok(())
}

/// The socket that `name` gives in one of this user's [`directories`]; `None` if there is none.
///
/// # Errors
/// A sentence: what is there may be another user's, who would be asked in place of the process that was meant.
pub fn find(uid: u32, name: impl Fn(&Path) -> PathBuf) -> Result<Option<PathBuf>, String> {
    for directory in directories(uid) {
        let path = name(&directory);
        let Ok(found) = fs::symlink_metadata(&path) else {
            continue;
        };
        check_own(&directory, uid)?;
        if found.uid() != uid {
            let (place, owner) = (path.display(), found.uid());
            return Err(format!("{place} belongs to user {owner}, not to {uid}"));
        }
        return Ok(Some(path));
    }
    Ok(None)
}

/// Checks that the process at the other end of a connection is this user's or root's.
///
/// # Errors
/// A sentence.
pub fn check_peer(stream: &UnixStream, uid: u32) -> Result<(), String> {
    let peer = getsockopt(stream, sockopt::PeerCredentials);
    let peer = peer.map_err(|error| format!("cannot see whose it is: {error}"))?;
    if uid == 0 || peer.uid() == uid || peer.uid() == 0 {
        return Ok(());
    }
    Err(format!(
        "user {} listens there, who is neither you nor root",
        peer.uid()
    ))
}

/// The state of a socket's path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketState {
    /// Nothing is there.
    Nothing,
    /// A socket that nobody serves.
    Stale,
    /// A server answers.
    Served,
}

/// Looks at a socket's path.
///
/// # Errors
/// A sentence: the path holds something other than a socket of this user.
pub fn look(path: &Path, uid: u32) -> Result<SocketState, String> {
    let place = path.display();
    let found: Metadata = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(SocketState::Nothing),
        Err(error) => return Err(format!("{place}: {error}")),
    };
    if !found.file_type().is_socket() {
        return Err(format!("{place} is there and is no socket"));
    }
    if found.uid() != uid {
        return Err(format!(
            "{place} belongs to user {}, not to {uid}",
            found.uid()
        ));
    }
    match UnixStream::connect(path) {
        Ok(_) => Ok(SocketState::Served),
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(SocketState::Stale),
        Err(error) => Err(format!("{place}: {error}")),
    }
}

/// The sockets of this kind of this user that are served, by path.
#[must_use]
pub fn running(uid: u32, kind: SocketKind) -> Vec<PathBuf> {
    let own = directories(uid)
        .into_iter()
        .filter(|directory| check_own(directory, uid).is_ok());
    let entries = own.filter_map(|directory| fs::read_dir(directory).ok());
    let paths = entries.flatten().flatten().map(|entry| entry.path());
    let sockets = paths.filter(|path| path.extension().is_some_and(|end| end == kind.extension()));
    let mut served: Vec<_> = sockets
        .filter(|path| matches!(look(path, uid), Ok(SocketState::Served)))
        .collect();
    served.sort();
    served
}
