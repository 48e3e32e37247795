//! What a rack's control plane tells a server to serve.

use crate::{BitSet, ClassId};
use alloc::vec::Vec;

/// One group of classes, and how many of the server's workers are its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// The group's classes, UNKNOWN among them where it belongs to it.
    pub classes: BitSet,
    /// The group's workers.
    pub workers: usize,
}

/// What a server is to serve: its groups, by ascending service time.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct GroupShares {
    /// The groups. One, or none: first come first served by all workers.
    pub shares: Vec<Share>,
    /// All classes by service time as last measured, UNKNOWN last. Empty: the order stays as it was.
    pub ascending: Vec<ClassId>,
}
