//! The control socket of a running server: its path and its protocol.

pub(crate) mod place;
pub(crate) mod protocol;
