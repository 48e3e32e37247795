//! A key-value service over an embedded ordered store: microsecond GETs beside millisecond SCANs.
//!
//! `Kv` answers [`Request`]s from a `Store`; [`KvWorkload`] writes them for a load generator. `Kv` and `Store` are there with the
//! feature `store`, which is on by default and brings the storage engine; a client does without.
//!
//! # Classes
//!
//! By convention the type byte of the wire header, from which the server's policy takes the class, is
//! the [`Operation`]'s number: GET 0, SCAN 1, PUT 2, DELETE 3. It is only a hint of what a request
//! will cost. What is done is said by the body's first byte, so a request that is scheduled as another
//! class, or as unknown, still means the same.
//!
//! # Bodies
//!
//! After the wire header; numbers are big endian.
//!
//! | operation | request | reply |
//! |---|---|---|
//! | GET | 0, key length `u16`, key | 1, value; or 0 when there is none |
//! | SCAN | 1, key length `u16`, first key (may be empty), count `u32` | entries read `u32`, [`Checksum`] `u64`, last key read |
//! | PUT | 2, key length `u16`, key, value | nothing |
//! | DELETE | 3, key length `u16`, key | nothing |
//!
//! A SCAN reads every key and value of its range, as the checksum proves, and the reply stays small; the
//! last key is where the next one goes on. A body that is none of these is answered as a bad request, a
//! value too long for a datagram as too large, and a failure of the store as an error.

#[cfg(feature = "store")]
mod answer;
mod checksum;
#[cfg(feature = "store")]
mod error;
mod key;
#[cfg(feature = "store")]
mod kv;
#[cfg(feature = "store")]
mod measure;
mod protocol;
mod reply;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
mod temp_folder;
mod workload;
mod zipf;

pub use checksum::Checksum;
#[cfg(feature = "store")]
pub use error::KvError;
pub use key::{KEY_BYTES, key_of};
#[cfg(feature = "store")]
pub use kv::Kv;
pub use protocol::{Malformed, NoRoom, Operation, Request};
pub use reply::{ScanReply, read_get, read_scan};
#[cfg(feature = "store")]
pub use store::{Filling, Store};
pub use workload::{KeyChoice, KvWorkload, UnknownOperation};
