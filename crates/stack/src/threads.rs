//! The interface by which threads wait for the stack, and its implementation for the system's threads.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

/// The way an application's threads wait, and the kthreads they run on.
pub trait ThreadParking: Send + Sync + 'static {
    /// A section of [`enter_section`](Self::enter_section), which ends when this is dropped.
    type Section;

    /// The waker of the current thread. A wake is not lost: one since the last [`park`](Self::park) ended ends the next at once.
    fn waker(&self) -> Waker;

    /// Blocks the current thread until its waker is called, was called, or the timeout passed. May return early.
    fn park(&self, timeout: Option<Duration>);

    /// Begins a section in which the current thread is not interrupted, and stays on its kthread: it holds the stack's lock, and other threads of the
    /// same kthread would wait for that lock for ever.
    fn enter_section(&self) -> Self::Section;

    /// The kthread that the current thread runs on; call it in a section. Packets leave by this kthread's lane.
    fn kthread(&self) -> usize;

    /// Whether the current thread's kthread polls the stack before it sleeps. That poll rings the data plane once for all packets sent until then.
    fn is_polled_after(&self) -> bool;
}

/// The system's threads, all on kthread 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsThreads;

struct ParkedThread(Thread);

impl Wake for ParkedThread {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

impl ThreadParking for OsThreads {
    type Section = ();

    fn waker(&self) -> Waker {
        thread_local! {
            static WAKER: Waker = Waker::from(Arc::new(ParkedThread(std::thread::current())));
        }
        WAKER.with(Waker::clone)
    }

    fn park(&self, timeout: Option<Duration>) {
        match timeout {
            Some(timeout) => std::thread::park_timeout(timeout),
            None => std::thread::park(),
        }
    }

    fn enter_section(&self) {}

    fn kthread(&self) -> usize {
        0
    }

    fn is_polled_after(&self) -> bool {
        false
    }
}
