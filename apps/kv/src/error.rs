//! What can go wrong outside of requests.

use std::io;
use std::path::PathBuf;

/// Why the store could not do what was asked.
#[derive(thiserror::Error)]
pub enum KvError {
    /// The database cannot be opened.
    #[error(
        "cannot open the store at {}: {source}; it must be writable, and open in no other process", path.display()
    )]
    Open {
        /// Its folder.
        path: PathBuf,
        /// What the storage engine said.
        source: fjall::Error,
    },
    /// The store has another number of keys than was asked for.
    #[error(
        "the store at {} was filled with {found} keys, not {asked}: ask for {found}, leave the number out, or use another folder",
        path.display()
    )]
    OtherKeys {
        /// Its folder.
        path: PathBuf,
        /// Keys it was filled with.
        found: u64,
        /// Keys asked for.
        asked: u64,
    },
    /// No folder for a temporary store.
    #[error("cannot make a temporary folder for the store: {0}; set TMPDIR to a writable one")]
    Temporary(#[source] io::Error),
    /// Reading or writing failed.
    #[error("the store failed: {0}; check the disk it is on")]
    Storage(#[from] fjall::Error),
    /// SCANs as long as asked for need a larger store.
    #[error(
        "a SCAN of {target_us} µs reads about {needed} entries, but the store has {found}; fill it \
         with more keys, or ask for a shorter SCAN"
    )]
    TooFewEntries {
        /// How long a SCAN was to take, in µs.
        target_us: u128,
        /// Entries it would have to read.
        needed: u64,
        /// Entries there are.
        found: u64,
    },
    /// Whoever had the store filled had it end early.
    #[error("the store was not filled to its end")]
    CutOff,
    /// Nothing to measure on.
    #[error("the store is empty; fill it first")]
    Empty,
}

headway_words::debug_is_display!(KvError);
