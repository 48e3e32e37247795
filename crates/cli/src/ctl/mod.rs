//! The socket by which a running server is looked into and tuned: where it lies, and what is said over it.

pub(crate) mod place;
pub(crate) mod protocol;
