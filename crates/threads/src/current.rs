//! The running thread, and the kthread that runs it.
#![expect(unsafe_code, reason = "finds the kthread of a thread by its address")]

use headway_fiber::NoPreempt;

use crate::head::Uthread;
use crate::kernel::KthreadRunner;

pub(crate) const WAITS_IN_READ: &str = "a thread does not wait while it reads a read-mostly cell";

/// # Panics
/// The calling thread reads a read-mostly cell.
pub(crate) fn assert_not_reading() {
    let _section = NoPreempt::enter();
    let reads = Uthread::current().is_some_and(|me| {
        // SAFETY: the thread that runs, in the section.
        unsafe { kthread_of(me) }.reads.any()
    });
    assert!(!reads, "{WAITS_IN_READ}");
}

/// The kthread that runs a thread.
///
/// # Safety
/// The thread is the one that runs, in a no-preempt section that does not end while the reference is used.
#[inline(always)]
pub(crate) unsafe fn kthread_of<'a>(me: Uthread) -> &'a KthreadRunner {
    // SAFETY: set before the thread was resumed; a kthread outlives its threads' turns.
    unsafe { &*me.head().kthread.get().cast() }
}

/// The number of the kthread that runs the calling thread; `None` outside of a runtime's threads. Outside a no-preempt section the thread may change
/// kthreads at any time.
#[must_use]
pub fn current_kthread() -> Option<usize> {
    let me = Uthread::current()?;
    let _section = NoPreempt::enter();
    // SAFETY: the thread that runs, in a section.
    Some(unsafe { kthread_of(me) }.index)
}

/// Whether the caller is a thread of a runtime.
#[inline]
pub fn in_thread() -> bool {
    Uthread::current().is_some()
}
