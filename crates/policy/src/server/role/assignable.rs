//! What a rack's control plane tells a server to serve.

use crate::server::JobId;
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

/// A server that somebody above it directs: a rack's control plane, through the server's agent.
pub trait Assignable {
    /// Says which classes the server is to serve on how many workers; policies of their own mind do not heed it.
    fn assign(&mut self, now_ns: u64, shares: &GroupShares);

    /// Takes the oldest request of the class back that waits and was not begun, to be served elsewhere; `None` when there is
    /// none, or the policy cannot.
    fn withdraw(&mut self, class: ClassId) -> Option<JobId>;

    /// Whether a request of the class that came now would start at once; `false` where that cannot be told.
    fn would_start(&self, class: ClassId) -> bool;
}

/// Heeds nobody above it, and keeps what it has accepted.
pub trait WithoutAssignment {}

impl<I: WithoutAssignment> Assignable for I {
    fn assign(&mut self, _now_ns: u64, _shares: &GroupShares) {}

    fn withdraw(&mut self, _class: ClassId) -> Option<JobId> {
        None
    }

    fn would_start(&self, _class: ClassId) -> bool {
        false
    }
}
