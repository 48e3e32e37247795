//! A file of the programs that the daemon confines. Programs without support for the daemon cannot register with the next daemon themselves.

use crate::peer::PeerProcess;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// More than 64 applications take.
const BYTES_MAX: u64 = 1 << 20;

/// A program, with enough to identify its process for the next daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct KnownProgram {
    pub(super) name: String,
    pub(super) pid: i32,
    /// Its user; a daemon of an earlier version did not say.
    #[serde(default)]
    pub(super) uid: Option<u32>,
    /// The start time of the process, which separates it from later processes of the same number.
    pub(super) started: u64,
    /// The cores on which it ran before.
    pub(super) home: Vec<usize>,
    pub(super) most: usize,
    /// The control groups from which its process came, if it has one of its own.
    #[serde(default)]
    pub(super) groups: Vec<PathBuf>,
}

impl KnownProgram {
    /// Its process, if that is still the same.
    pub(super) fn process(&self) -> Option<PeerProcess> {
        let peer = PeerProcess::open(self.pid).ok()?;
        let is_same =
            self.uid.is_none_or(|uid| uid == peer.uid()) && peer.started() == Some(self.started);
        is_same.then_some(peer)
    }
}

/// The file beside a socket.
pub(super) fn path_for(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".programs");
    PathBuf::from(name)
}

/// The programs of the last daemon; none when the file is missing or unreadable, or is not the daemon's own.
pub(super) fn read(path: &Path, own_uid: u32) -> Vec<KnownProgram> {
    let mut bytes = Vec::new();
    let mut options = File::options();
    let file = options
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path);
    let Ok(file) = file else { return Vec::new() };
    let is_own = |found: Metadata| found.is_file() && found.uid() == own_uid;
    if !file.metadata().is_ok_and(is_own) {
        return Vec::new();
    }
    match file.take(BYTES_MAX).read_to_end(&mut bytes) {
        Ok(_) => serde_json::from_slice(&bytes).unwrap_or_default(),
        Err(_) => Vec::new(),
    }
}

/// Writes them so that a crash leaves the old file or the new one.
pub(super) fn write(path: &Path, programs: &[KnownProgram]) -> io::Result<()> {
    if programs.is_empty() {
        return match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    // Whatever lies there: the file is a new one, so no link is followed.
    let _ = fs::remove_file(&beside);
    let mut options = File::options();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&beside)?;
    file.write_all(&serde_json::to_vec(programs)?)?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::super::access::own_uid;
    use super::*;

    #[test]
    fn no_link_is_followed_and_nobody_elses_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_for(&folder.path().join("host.sock"));
        let victim = folder.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        std::os::unix::fs::symlink(&victim, &beside).unwrap();
        let program = KnownProgram {
            name: "pricer".into(),
            pid: 7,
            uid: Some(8),
            started: 9,
            home: vec![0],
            most: 1,
            groups: Vec::new(),
        };
        write(&path, std::slice::from_ref(&program)).unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
        assert_eq!(read(&path, own_uid()), [program]);
        assert_eq!(read(&path, own_uid() + 1), [], "it is another user's");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(read(&link, own_uid()), []);
    }

    #[test]
    fn programs_read_back_and_nonsense_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_for(&folder.path().join("host.sock"));
        assert_eq!(read(&path, own_uid()), []);
        let program = KnownProgram {
            name: "pricer".into(),
            pid: 7,
            uid: Some(8),
            started: 9,
            home: vec![0, 1],
            most: 2,
            groups: vec!["/sys/fs/cgroup".into()],
        };
        write(&path, std::slice::from_ref(&program)).unwrap();
        assert_eq!(read(&path, own_uid()), [program]);
        fs::write(&path, "{").unwrap();
        assert_eq!(read(&path, own_uid()), []);
        write(&path, &[]).unwrap();
        assert!(!path.exists());
    }
}
