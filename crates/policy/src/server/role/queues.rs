//! What waits where, as monitors and workers see it.

use crate::server::{JobId, WorkerId};
use crate::{BitSet, ClassId};

/// Outcome of an attempt to steal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Steal {
    /// The victim had nothing to take.
    Empty,
    /// Another thief interfered; there may be work.
    Retry,
    /// So many requests are now at the tail of the thief's own queue.
    Batch(usize),
}

/// What waits where, and what workers and monitor tell each other: all of it the engine's. Lengths may be stale.
pub trait Backlog {
    /// How many workers there are.
    fn workers(&self) -> usize;
    /// Length of a worker's queue, running request not included.
    fn len(&self, worker: WorkerId) -> usize;
    /// Consumer and producer counters of one of the server's shared queues, below
    /// their number; both only grow.
    fn shared_counters(&self, queue: usize) -> (u64, u64);
    /// The shared queues that are congested, a bit each: SYNERGY's `check_wait_queue`. 0 until a [`tick`](super::Ticking::tick) said otherwise.
    fn congested(&self) -> u64;
    /// The mean service time that a worker told of its short requests, ns; 0 before it did.
    fn short_ns(&self, worker: WorkerId) -> u64;
    /// Whether the class is among those that a worker told of as long; none is before it did.
    fn is_long(&self, worker: WorkerId, class: ClassId) -> bool;
}

/// The queues as one worker sees them. The live server implements it with lock-free rings, simulator and pool with
/// [lists](crate::server::queue_lists).
pub trait Queues: Backlog {
    /// The worker who looks.
    fn me(&self) -> WorkerId;
    /// The worker on the other hyper-thread of this one's physical core, where the engine knows one.
    fn sibling(&self) -> Option<WorkerId>;
    /// The head of the own queue.
    fn pop(&mut self) -> Option<JobId>;
    /// Puts a request at the tail of the own queue.
    fn push(&mut self, job: JobId);
    /// Moves at most `max` requests from the head of `victim`'s queue to the own one.
    fn try_steal(&mut self, victim: WorkerId, max: usize) -> Steal;
    /// The head of one of the shared queues: SYNERGY's preempted longs, a queue a kind; all that arrives under Tardis.
    fn pop_shared(&mut self, queue: usize) -> Option<JobId>;
    /// Puts a request at the tail of a shared queue. `false`: the queue is full, and the request stays with the caller.
    fn push_shared(&mut self, queue: usize, job: JobId) -> bool;
    /// Tells the others this worker's [`short_ns`](Backlog::short_ns).
    fn set_short_ns(&mut self, mean_ns: u64);
    /// Tells the others which classes this worker finds [long](Backlog::is_long).
    fn set_longs(&mut self, longs: BitSet);
    /// Tells the engine which classes this worker refuses first as buffers run out, from now on in place of
    /// [`System::sheds_first`](crate::server::systems::System::sheds_first).
    fn set_sheds_first(&mut self, classes: BitSet);
}
