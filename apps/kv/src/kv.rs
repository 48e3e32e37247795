//! The service: requests in, replies out.

use std::path::Path;
use std::sync::Arc;

use headway_net::header::Status;
use headway_runtime::{Call, Service};

use crate::answer::Reply;
use crate::store::{Filling, Scanned};
use crate::{KvError, KvWorkload, Operation, Request, Store};

/// The key-value service on a store.
///
/// A clone answers from the same store.
#[derive(Debug, Clone)]
pub struct Kv {
    store: Arc<Store>,
}

impl Kv {
    /// Keys of a new store, unless chosen otherwise.
    pub const DEFAULT_KEYS: u64 = KvWorkload::DEFAULT_KEYS;

    /// The service on this store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        let store = Arc::new(store);
        Self { store }
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// A service on a temporary store with `keys` keys and values of `value_len` bytes, for
    /// demonstrations; see [`Store::fill`].
    ///
    /// # Errors
    /// Those of [`Store::temporary`] and [`Store::fill`].
    pub fn filled(keys: u64, value_len: usize, seed: u64) -> Result<Self, KvError> {
        Self::filled_while(keys, value_len, seed, || true)
    }

    /// As [`filled`](Self::filled), while `goes_on` says so: it is asked before each key. Otherwise the store is removed.
    ///
    /// # Errors
    /// [`KvError::CutOff`], and those of [`Store::temporary`] and [`Store::fill`].
    pub fn filled_while(
        keys: u64,
        value_len: usize,
        seed: u64,
        goes_on: impl Fn() -> bool,
    ) -> Result<Self, KvError> {
        let store = Store::temporary()?;
        store.fill_while(keys, value_len, seed, goes_on)?;
        Ok(Self::new(store))
    }

    /// A service on the store in a folder. A new store, and one whose last fill was cut off, is filled with `keys` keys, by default
    /// [`DEFAULT_KEYS`](Self::DEFAULT_KEYS); any other is served as it is.
    ///
    /// # Errors
    /// [`KvError::OtherKeys`] when the store was filled with another number of keys than `keys`; those of [`Store::open`] and
    /// [`Store::fill`].
    pub fn open_filled(
        path: impl AsRef<Path>,
        keys: Option<u64>,
        value_len: usize,
        seed: u64,
    ) -> Result<Self, KvError> {
        let store = Store::open(&path)?;
        let filling = store.filling()?;
        if let (Some(Filling { keys: found, .. }), Some(asked)) = (filling, keys)
            && found != asked
        {
            let path = path.as_ref().to_owned();
            return Err(KvError::OtherKeys { path, found, asked });
        }
        let missing = match filling {
            Some(filling) if filling.is_complete => None,
            Some(filling) => Some(filling.keys),
            None if store.is_empty()? => Some(keys.unwrap_or(Self::DEFAULT_KEYS)),
            // Written by others: their entries count.
            None => None,
        };
        if let Some(keys) = missing {
            store.fill(keys, value_len, seed)?;
        }
        Ok(Self::new(store))
    }

    /// Answers the request in `body`: writes the reply's body to the front of `room` and returns its
    /// length. The server does the same without the copy; this is for other ways to reach the store.
    ///
    /// # Errors
    /// The status that the reply must have: bad request, too large, or error.
    pub fn answer(&self, body: &[u8], room: &mut [u8]) -> Result<usize, Status> {
        let request = Request::decode(body).map_err(|_| Status::BadRequest)?;
        let reply = self.execute(request).map_err(|_| Status::Error)?;
        let len = reply.write(room);
        if len <= room.len() {
            Ok(len)
        } else {
            Err(Status::TooLarge)
        }
    }

    #[inline]
    pub(crate) fn execute(&self, request: Request<'_>) -> Result<Reply, KvError> {
        match request {
            Request::Get { key } => Ok(Reply::Value(self.store.get(key)?)),
            Request::Scan { first, count } => {
                let Scanned {
                    entries,
                    checksum,
                    last,
                } = self.store.scan(first, count)?;
                Ok(Reply::Scanned {
                    entries,
                    checksum,
                    last,
                })
            }
            Request::Put { key, value } => self.store.put(key, value).map(|()| Reply::Done),
            Request::Delete { key } => self.store.delete(key).map(|()| Reply::Done),
        }
    }
}

impl Kv {
    /// Answers the request that is in the call's payload.
    #[inline]
    fn answer_call(&self, call: &mut Call<'_>) {
        let Ok(request) = Request::decode(call.payload()) else {
            return call.bad_request();
        };
        match self.execute(request) {
            Ok(reply) => call.reply_with(|room| reply.write(room)),
            Err(_) => call.fail(),
        }
    }
}

impl Service for Kv {
    /// A SCAN says that it is long: a server that goes [by feedback](headway_runtime::Builder::by_feedback) interrupts nothing else.
    #[inline]
    fn handle(&self, call: &mut Call<'_>) {
        let is_scan = call.payload().first() == Some(&(Operation::Scan as u8));
        if is_scan {
            call.long(|call| self.answer_call(call));
        } else {
            self.answer_call(call);
        }
    }
}
