//! A key-value service over an embedded ordered store.
