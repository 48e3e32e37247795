//! The protocol and the store.

mod protocol;
#[cfg(feature = "store")]
mod store;
