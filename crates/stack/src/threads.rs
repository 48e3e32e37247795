//! How threads wait for the stack, and the system's threads.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

/// How threads of an application wait, and on which kthread they run.
pub trait ThreadParking: Send + Sync + 'static {
    /// Its end ends what [`enter_section`](Self::enter_section) began.
    type Section;

    /// The waker of the current thread. A wake is not lost: one since the last [`park`](Self::park) ended ends the next at once.
    fn waker(&self) -> Waker;

    /// Blocks the current thread until its waker is called or was called, or the time is over. May return early.
    fn park(&self, timeout: Option<Duration>);

    /// Begins a section in which the current thread is not interrupted, and stays on its kthread: it holds the stack's lock, for which others of
    /// the same kthread would wait for ever.
    fn enter_section(&self) -> Self::Section;

    /// The kthread that the current thread runs on, asked in a section: its lane is the one that packets leave by.
    fn kthread(&self) -> usize;

    /// Whether the stack is polled before the current thread's kthread sleeps: the data plane hears then of what the thread sent, once of many packets.
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
