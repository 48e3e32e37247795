//! A file of the programs that the daemon confines. Programs without support for the daemon cannot register with the next daemon themselves.

use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A program, with enough to identify its process for the next daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct KnownProgram {
    pub(super) name: String,
    pub(super) pid: i32,
    /// The start time of the process, which separates it from later processes of the same number.
    pub(super) started: u64,
    /// The cores on which it ran before.
    pub(super) home: Vec<usize>,
    pub(super) most: usize,
}

/// The file beside a socket.
pub(super) fn path_for(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".programs");
    PathBuf::from(name)
}

/// The programs of the last daemon; none when the file is missing or unreadable.
pub(super) fn read(path: &Path) -> Vec<KnownProgram> {
    let text = fs::read(path).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
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
    fs::write(&beside, serde_json::to_vec(programs)?)?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_back_and_nonsense_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = path_for(&folder.path().join("host.sock"));
        assert_eq!(read(&path), []);
        let program = KnownProgram {
            name: "pricer".into(),
            pid: 7,
            started: 9,
            home: vec![0, 1],
            most: 2,
        };
        write(&path, std::slice::from_ref(&program)).unwrap();
        assert_eq!(read(&path), [program]);
        fs::write(&path, "{").unwrap();
        assert_eq!(read(&path), []);
        write(&path, &[]).unwrap();
        assert!(!path.exists());
    }
}
