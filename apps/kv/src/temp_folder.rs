//! The folder of a temporary store. A killed process leaves it behind, and a later one removes it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "headway-kv-";
/// The file that the storage engine locks in its folder.
const ENGINE_LOCK: &str = "lock";
/// A folder may be taken for a left one between its making and its locking, which is some microseconds long.
const TRIES: usize = 16;

/// A folder that is removed when dropped.
pub(crate) struct TempFolder {
    folder: TempDir,
    /// Locked: its owner lives.
    _lock: File,
}

impl TempFolder {
    /// Makes one in `parent`, and removes those there that nobody has any more.
    pub(crate) fn new_in(parent: &Path) -> io::Result<Self> {
        let mut made = Self::made_in(parent);
        for _ in 1..TRIES {
            if !matches!(&made, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
                break;
            }
            made = Self::made_in(parent);
        }
        let made = made?;
        clear_left_behind(parent, made.path());
        Ok(made)
    }

    fn made_in(parent: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = File::open(folder.path());
        match lock {
            Ok(lock) if lock.try_lock().is_ok() && folder.path().exists() => Ok(Self {
                folder,
                _lock: lock,
            }),
            _ => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of this user's processes that are gone: those that nobody has locked, neither as a whole nor, as older versions do, by the
/// engine's file alone.
fn clear_left_behind(parent: &Path, own: &Path) {
    let (Ok(entries), Ok(own_metadata)) = (fs::read_dir(parent), fs::metadata(own)) else {
        return;
    };
    for entry in entries.flatten() {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let is_mine = || {
            let metadata = fs::symlink_metadata(entry.path());
            metadata.is_ok_and(|it| it.is_dir() && it.uid() == own_metadata.uid())
        };
        if !ours || !is_mine() {
            continue;
        }
        let path = entry.path();
        let locked = [File::open(&path), File::open(path.join(ENGINE_LOCK))];
        // Held until the folder is gone.
        if locked
            .iter()
            .all(|file| file.as_ref().is_ok_and(|file| file.try_lock().is_ok()))
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn left(parent: &Path, name: &str) -> PathBuf {
        let path = parent.join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join(ENGINE_LOCK), "").unwrap();
        path
    }

    #[test]
    fn what_killed_processes_left_is_removed_and_what_live_ones_have_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let dead = left(parent.path(), "headway-kv-dead");
        let other = left(parent.path(), "another-program");
        let older = left(parent.path(), "headway-kv-older");
        let lives = File::open(older.join(ENGINE_LOCK)).unwrap();
        lives.try_lock().unwrap();
        let first = TempFolder::new_in(parent.path()).unwrap();
        fs::write(first.path().join(ENGINE_LOCK), "").unwrap();
        let second = TempFolder::new_in(parent.path()).unwrap();
        assert!(!dead.exists());
        for kept in [&*other, &*older, first.path(), second.path()] {
            assert!(kept.exists(), "{}", kept.display());
        }
        drop(lives);
        drop((first, second));
        let _third = TempFolder::new_in(parent.path()).unwrap();
        assert!(!older.exists() && other.exists());
    }
}
