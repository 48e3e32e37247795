//! The server's threads: how they start, wait and end, and how they hear from the server's owner.
//!
//! [`control`] has the phases of a server's life, and the protocol by which it stops.

pub(crate) mod accepting;
pub(crate) mod control;
pub(crate) mod door;
pub(crate) mod groups;
pub(crate) mod hosted;
pub(crate) mod park;
pub(crate) mod rack;
pub(crate) mod rescuer;
pub(crate) mod rules;
pub(crate) mod server_threads;
