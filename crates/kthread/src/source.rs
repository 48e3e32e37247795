//! Where an application's kthreads get their cores.

use crate::lines::{Grant, KthreadLine, OrderLine};

/// The application's side of an arbiter. Kthreads are numbered from 0.
pub trait CoreSource: Send + Sync {
    /// The number of kthreads: the most cores that the application may have.
    fn kthreads(&self) -> usize;

    /// The line in which a kthread shows what waits at it.
    ///
    /// # Panics
    /// There is no such kthread.
    fn line(&self, kthread: usize) -> &KthreadLine;

    /// The line with the arbiter's orders to a kthread.
    ///
    /// # Panics
    /// There is no such kthread.
    fn orders(&self, kthread: usize) -> &OrderLine;

    /// The calling thread is this kthread from now on. Blocks until it has a core.
    fn enter(&self, kthread: usize) -> Grant;

    /// Gives the core back, and blocks until there is one again.
    ///
    /// `finds_nothing` looks for work once more after others can see that the kthread is about to sleep; if it says false, the kthread may keep its
    /// core. An arbiter that revoked the core does not ask.
    fn leave(&self, kthread: usize, grant: Grant, finds_nothing: &mut dyn FnMut() -> bool)
    -> Grant;

    /// Work was put into a queue: sees to it that a kthread looks at it, should all of them sleep. Costs a load when nobody sleeps.
    fn notify(&self);

    /// Entries were put into a queue that all kthreads share: the arbiter sees for how long they wait.
    fn put(&self, entries: u64);

    /// Entries were taken out of it.
    fn took(&self, entries: u64);

    /// The calling thread, a kthread until now, ends.
    fn exit(&self);

    /// Wakes every kthread for good, so that each sees that the application ends: from now on nobody sleeps.
    fn close(&self);
}
