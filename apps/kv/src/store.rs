//! The ordered store: fjall, a log-structured merge tree.
//!
//! The README has the figures that it was chosen by.

use std::ops::Bound;
use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, Slice};
use headway_runtime::NoPreempt;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::temp_folder::TempFolder;
use crate::{Checksum, KvError, key_of};

/// Room for blocks read from disk: all of a demonstration's data.
const CACHE_BYTES: u64 = 256 << 20;

/// Where a store says how it was filled.
const FILLING: &[u8] = b"filling";

/// What [`Store::fill`] was asked for, and whether it came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filling {
    /// Keys asked for.
    pub keys: u64,
    /// Whether all of them were written; a process that was killed meanwhile leaves some out.
    pub is_complete: bool,
}

impl Filling {
    fn encode(self) -> [u8; 9] {
        let mut bytes = [u8::from(self.is_complete); 9];
        bytes[1..].copy_from_slice(&self.keys.to_be_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (is_complete, keys) = bytes.split_first()?;
        Some(Self {
            keys: u64::from_be_bytes(keys.try_into().ok()?),
            is_complete: *is_complete == 1,
        })
    }
}

/// An ordered map from byte strings to byte strings, on disk and mostly in memory.
///
/// Any number of threads may read and write at once. What was written is found again after a restart.
pub struct Store {
    // Dropped in this order: the folder goes when nobody writes to it any more.
    entries: Keyspace,
    /// What the store says of itself, apart from the entries.
    about: Keyspace,
    database: Database,
    folder: Option<TempFolder>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Store")
            .field("path", &self.entries.path())
            .field("temporary", &self.folder.is_some())
            .finish_non_exhaustive()
    }
}

impl Store {
    /// The store in this folder, made if there is none.
    ///
    /// # Errors
    /// [`KvError::Open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, KvError> {
        Self::open_in(path.as_ref(), None)
    }

    /// A new store that is removed when dropped. Those that killed processes of this user left are removed now.
    ///
    /// # Errors
    /// [`KvError::Temporary`] or [`KvError::Open`].
    pub fn temporary() -> Result<Self, KvError> {
        let folder = TempFolder::new_in(&std::env::temp_dir()).map_err(KvError::Temporary)?;
        let path = folder.path().to_owned();
        Self::open_in(&path, Some(folder))
    }

    fn open_in(path: &Path, folder: Option<TempFolder>) -> Result<Self, KvError> {
        let open = || {
            // One thread for flushes and compactions: they are rare here, and cores are for requests.
            let builder = Database::builder(path)
                .cache_size(CACHE_BYTES)
                .worker_threads(1);
            let database = builder.open()?;
            let entries = database.keyspace("entries", KeyspaceCreateOptions::default)?;
            let about = database.keyspace("about", KeyspaceCreateOptions::default)?;
            Ok((database, entries, about))
        };
        let (database, entries, about) = open().map_err(|source| KvError::Open {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            entries,
            about,
            database,
            folder,
        })
    }

    /// Writes the keys [`key_of`]`(0..keys)` with values of `value_len` random bytes, the same for the
    /// same seed. What [`filling`](Self::filling) says is complete only after the last one.
    ///
    /// # Errors
    /// [`KvError::Storage`].
    pub fn fill(&self, keys: u64, value_len: usize, seed: u64) -> Result<(), KvError> {
        self.fill_while(keys, value_len, seed, || true)
    }

    pub(crate) fn fill_while(
        &self,
        keys: u64,
        value_len: usize,
        seed: u64,
        goes_on: impl Fn() -> bool,
    ) -> Result<(), KvError> {
        self.say(Filling {
            keys,
            is_complete: false,
        })?;
        self.write_keys(keys, value_len, seed, goes_on)?;
        self.say(Filling {
            keys,
            is_complete: true,
        })?;
        self.persist()
    }

    /// The last [`fill`](Self::fill) of this store; `None` where there was none.
    ///
    /// # Errors
    /// [`KvError::Storage`].
    pub fn filling(&self) -> Result<Option<Filling>, KvError> {
        let said = self.about.get(FILLING)?;
        Ok(said.and_then(|bytes| Filling::decode(&bytes)))
    }

    fn say(&self, filling: Filling) -> Result<(), KvError> {
        Ok(self.about.insert(FILLING, filling.encode())?)
    }

    fn write_keys(
        &self,
        keys: u64,
        value_len: usize,
        seed: u64,
        goes_on: impl Fn() -> bool,
    ) -> Result<(), KvError> {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut value = vec![0; value_len];
        for i in 0..keys {
            if !goes_on() {
                return Err(KvError::CutOff);
            }
            random.fill_bytes(&mut value);
            self.put(&key_of(i), &value)?;
        }
        Ok(())
    }

    /// Waits until everything written is on disk. Dropping the store does so, too; without either a crash
    /// of the machine, not of the process, may lose the last writes.
    ///
    /// # Errors
    /// [`KvError::Storage`].
    pub fn persist(&self) -> Result<(), KvError> {
        Ok(self.database.persist(fjall::PersistMode::SyncAll)?)
    }

    /// How many entries there are. Reads all of them.
    ///
    /// # Errors
    /// [`KvError::Storage`].
    pub fn len(&self) -> Result<u64, KvError> {
        Ok(self.entries.len()? as u64)
    }

    /// Whether there are none.
    ///
    /// # Errors
    /// [`KvError::Storage`].
    pub fn is_empty(&self) -> Result<bool, KvError> {
        Ok(self.entries.is_empty()?)
    }

    /// The value of a key, shared with the store rather than copied.
    #[inline]
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Slice>, KvError> {
        let _section = NoPreempt::enter();
        Ok(self.entries.get(key)?)
    }

    pub(crate) fn put(&self, key: &[u8], value: &[u8]) -> Result<(), KvError> {
        let _section = NoPreempt::enter();
        Ok(self.entries.insert(key, value)?)
    }

    pub(crate) fn delete(&self, key: &[u8]) -> Result<(), KvError> {
        let _section = NoPreempt::enter();
        Ok(self.entries.remove(key)?)
    }

    /// Reads up to `count` entries from `first` on, keys and values.
    ///
    /// A SCAN that must yield goes on from its last key, perhaps in another thread. Meanwhile it holds nothing of the store or of its thread. So it
    /// sees every entry that is there for its whole time once, in order, and of the others some.
    pub(crate) fn scan(&self, first: &[u8], count: u32) -> Result<Scanned, KvError> {
        let mut scanned = Scanned::default();
        loop {
            let section = NoPreempt::enter();
            if self.scan_on(first, count, &mut scanned, &section)? == ScanPart::Last {
                return Ok(scanned);
            }
        }
    }

    /// Goes on with a scan until its end, or until it must yield. A function of its own: the compiler may keep addresses of thread-local variables
    /// within a function, and the caller's thread may change.
    #[inline(never)]
    fn scan_on(
        &self,
        first: &[u8],
        count: u32,
        scanned: &mut Scanned,
        section: &NoPreempt,
    ) -> Result<ScanPart, KvError> {
        let from = match &scanned.last {
            None => Bound::Included(first),
            Some(last) => Bound::Excluded(&**last),
        };
        let left = (count - scanned.entries) as usize;
        let range = (from, Bound::Unbounded);
        for entry in self.entries.range::<&[u8], _>(range).take(left) {
            let (key, value) = entry.into_inner()?;
            scanned.checksum.add(&key);
            scanned.checksum.add(&value);
            scanned.entries += 1;
            scanned.last = Some(key);
            if section.must_yield() {
                return Ok(ScanPart::Interrupted);
            }
        }
        Ok(ScanPart::Last)
    }
}

/// Where a part of a scan ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScanPart {
    /// At the scan's end.
    Last,
    /// Where it must yield.
    Interrupted,
}

/// What a scan read.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    pub(crate) entries: u32,
    pub(crate) checksum: Checksum,
    pub(crate) last: Option<Slice>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kv;

    #[test]
    fn a_fill_that_was_cut_off_is_done_again() {
        let folder = tempfile::tempdir().unwrap();
        let cut_off = Store::open(folder.path()).unwrap();
        // What a fill of 300 keys leaves when it is killed at the 100th.
        cut_off
            .say(Filling {
                keys: 300,
                is_complete: false,
            })
            .unwrap();
        cut_off.write_keys(100, 10, 1, || true).unwrap();
        drop(cut_off);
        let kv = Kv::open_filled(folder.path(), None, 10, 1).unwrap();
        assert_eq!(kv.store().len().unwrap(), 300);
        let filling = kv.store().filling().unwrap().unwrap();
        assert_eq!((filling.keys, filling.is_complete), (300, true));
    }
}
