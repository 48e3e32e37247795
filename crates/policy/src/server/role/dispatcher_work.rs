//! What a dispatcher runs itself.

use crate::server::{Job, JobId};

/// What the dispatcher runs itself, and for how long (Concord § 3.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DispatcherSlice {
    /// The request.
    pub job: JobId,
    /// Its longest run, ns, above 0; then the dispatcher interrupts itself.
    pub slice_ns: u64,
}

/// A dispatcher that runs requests itself while every worker has enough (Concord § 3.3).
pub trait DispatcherWork {
    /// Whether [`work`](Self::work) may ever name something: an engine need not ask otherwise.
    const WORKS: bool;

    /// What the dispatcher runs itself now that nothing can be dispatched. Until it says
    /// [`worked`](Self::worked) it sees nothing and decides nothing.
    fn work(&mut self, now_ns: u64) -> Option<DispatcherSlice>;

    /// The dispatcher's slice is over; `cpu_ns` when that finished the request.
    fn worked(&mut self, now_ns: u64, job: Job, cpu_ns: Option<u64>);
}

/// Only dispatches.
pub trait WithoutDispatcherWork {}

impl<I: WithoutDispatcherWork> DispatcherWork for I {
    const WORKS: bool = false;

    #[inline]
    fn work(&mut self, _now_ns: u64) -> Option<DispatcherSlice> {
        None
    }

    fn worked(&mut self, _now_ns: u64, _job: Job, _cpu_ns: Option<u64>) {}
}
