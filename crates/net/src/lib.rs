//! Datapaths behind one trait, the wire header and the request classifiers.

pub mod classify;
pub mod datapath;
pub mod header;
pub mod pool;
pub mod replay;
pub mod slot;
pub mod udp;
pub mod waker;
