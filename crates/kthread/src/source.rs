//! The source of cores for an application's kthreads.

use crate::lines::{Grant, KthreadLine, OrderLine};

/// The application's side of an arbiter. Kthreads are numbered from 0.
pub trait CoreSource: Send + Sync {
    /// The number of kthreads: the most cores that the application may have.
    fn kthreads(&self) -> usize;

    /// The line in which a kthread shows its waiting work.
    ///
    /// # Panics
    /// There is no such kthread.
    fn line(&self, kthread: usize) -> &KthreadLine;

    /// The line with the arbiter's orders to a kthread.
    ///
    /// # Panics
    /// There is no such kthread.
    fn orders(&self, kthread: usize) -> &OrderLine;

    /// Makes the calling thread this kthread. Blocks until it has a core.
    fn enter(&self, kthread: usize) -> Grant;

    /// Gives the core back, and blocks until the kthread has a core again.
    ///
    /// `finds_nothing` looks for work once more after the kthread's sleep is announced. If it returns `false`, the kthread may keep its core. It is
    /// not called when the arbiter revoked the core.
    fn leave(&self, kthread: usize, grant: Grant, finds_nothing: &mut dyn FnMut() -> bool)
    -> Grant;

    /// Called after work was put into a queue: wakes a kthread that sleeps on a core of the application, or asks for a core if no kthread has one. It costs a
    /// load when there is nothing to wake. Further cores are the arbiter's to give, which sees how long work waits.
    fn notify(&self);

    /// Called after entries were put into a queue that all kthreads share, so that the arbiter sees their waiting time.
    fn put(&self, entries: u64);

    /// Called after entries were taken out of the shared queue.
    fn took(&self, entries: u64);

    /// Whether the daemon that brings this kthread's packets runs on the same core, so that none can come while the kthread runs.
    fn is_daemons_core(&self, kthread: usize) -> bool;

    /// Called when the calling thread, a kthread until now, ends.
    fn exit(&self);

    /// Wakes every kthread so that each sees the application's end. Afterwards no kthread sleeps.
    fn close(&self);
}
