//! Threads in user space that wait for the stack: the kthread runs others meanwhile.

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use headway_fiber::NoPreempt;
use headway_threads::{
    JoinHandle, PacketPoll, current_kthread, in_thread, park, park_timeout, sleep, spawn, yield_now,
};

use crate::net_stack::NetStack;
use crate::threads::{OsThreads, ThreadParking};

/// The threads of a [`headway_threads::Runtime`], and the system's threads beside it. A stack for them has as many lanes as the runtime has kthreads.
#[derive(Debug, Clone, Copy, Default)]
pub struct Uthreads;

impl ThreadParking for Uthreads {
    type Section = NoPreempt;

    fn waker(&self) -> Waker {
        if in_thread() {
            headway_threads::waker()
        } else {
            OsThreads.waker()
        }
    }

    fn park(&self, timeout: Option<Duration>) {
        match timeout {
            _ if !in_thread() => OsThreads.park(timeout),
            Some(timeout) => park_timeout(timeout),
            None => park(),
        }
    }

    fn enter_section(&self) -> NoPreempt {
        NoPreempt::enter()
    }

    fn kthread(&self) -> usize {
        current_kthread().unwrap_or_else(|| OsThreads.kthread())
    }

    fn is_polled_after(&self) -> bool {
        in_thread()
    }
}

/// Kthreads poll the stack between threads if their source wakes one for a packet ([`RuntimeBuilder::packets`](headway_threads::RuntimeBuilder::packets)).
impl PacketPoll for NetStack<Uthreads> {
    fn poll(&self, kthread: usize) -> bool {
        self.poll_by(|| kthread)
    }

    fn has_packet(&self) -> bool {
        NetStack::has_packet(self)
    }

    fn due_in_ns(&self) -> Option<u64> {
        let due_in = self.due_in()?;
        Some(u64::try_from(due_in.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// The polling thread's sleep after it found nothing, which bounds a packet's wait.
const IDLE_SLEEP: Duration = Duration::from_micros(20);

impl NetStack<Uthreads> {
    /// Starts a thread that polls the stack for as long as another owner holds it. After a poll that found packets it yields; after an empty one it sleeps
    /// for 20 µs. Called by a thread of the runtime.
    ///
    /// # Panics
    /// The caller is no thread of a runtime.
    pub fn spawn_polling(self: &Arc<Self>) -> JoinHandle<()> {
        let stack = Arc::downgrade(self);
        spawn(move || {
            while let Some(stack) = stack.upgrade() {
                let found = stack.poll();
                drop(stack);
                if found {
                    yield_now();
                } else {
                    sleep(IDLE_SLEEP);
                }
            }
        })
    }
}
