//! ThreadParking that wait for the stack: the system's, or user-level threads.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

/// How threads of an application wait, and on which kthread they run.
pub trait ThreadParking: Send + Sync + 'static {
    /// The waker of the current thread. A wake is not lost: one since the last [`park`](Self::park) ended ends the next at once.
    fn waker(&self) -> Waker;

    /// Blocks the current thread until its waker is called or was called, or the time is over. May return early.
    fn park(&self, timeout: Option<Duration>);

    /// The kthread that the current thread runs on: its lane is the one that packets leave by.
    fn kthread(&self) -> usize;
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

    fn kthread(&self) -> usize {
        0
    }
}
