//! What a thread does while it has no job, and how it is told that there may be one.
//!
//! It sleeps, or it [polls](crate::poller) for the program's events and is told by a flag. Once the program's poll has panicked there is nothing to poll, and it sleeps:
//! who rouses it sets the flag first and looks for the panic then, and the sleeper looks the other way round, so one of them sees the other.

use std::sync::Arc;

use headway_sync::atomic::{AtomicBool, Ordering};
use headway_sync::hint;
use headway_sync::thread::{self, Thread};

use crate::poller::Poller;

/// How a thread without a job is told that there may be one.
#[derive(Clone, Debug)]
pub(crate) enum IdleHandle {
    Sleeps(Thread),
    Polls(Arc<PollingThread>),
}

/// A thread that polls.
#[derive(Debug)]
pub(crate) struct PollingThread {
    roused: AtomicBool,
    poller: Poller,
    thread: Thread,
}

impl IdleHandle {
    pub(crate) fn rouse(&self) {
        match self {
            Self::Sleeps(thread) => thread.unpark(),
            Self::Polls(polling) => {
                polling.roused.store(true, Ordering::SeqCst);
                if polling.poller.is_over() {
                    polling.thread.unpark();
                }
            }
        }
    }
}

/// What a thread does while it has no job.
pub(crate) enum IdleWait {
    Sleep,
    Poll(Arc<PollingThread>),
}

impl IdleWait {
    /// Of the calling thread.
    pub(crate) fn of_current(poller: Option<Poller>) -> Self {
        poller.map_or(Self::Sleep, |poller| {
            Self::Poll(Arc::new(PollingThread {
                roused: AtomicBool::new(false),
                poller,
                thread: thread::current(),
            }))
        })
    }

    /// Of the calling thread.
    pub(crate) fn handle(&self) -> IdleHandle {
        match self {
            Self::Sleep => IdleHandle::Sleeps(thread::current()),
            Self::Poll(polling) => IdleHandle::Polls(Arc::clone(polling)),
        }
    }

    /// What is polled, if anything is.
    pub(crate) fn poller(&self) -> Option<&Poller> {
        match self {
            Self::Sleep => None,
            Self::Poll(polling) => Some(&polling.poller),
        }
    }

    /// Until the handle is roused.
    pub(crate) fn wait(&self) {
        match self {
            Self::Sleep => thread::park(),
            Self::Poll(polling) => polling.wait(),
        }
    }
}

impl PollingThread {
    fn wait(&self) {
        loop {
            let has_nothing_to_poll = self.poller.is_over();
            if self.roused.load(Ordering::SeqCst) {
                break;
            }
            if has_nothing_to_poll {
                thread::park();
            } else {
                self.poller.poll();
                hint::spin_loop();
            }
        }
        self.roused.store(false, Ordering::Relaxed);
    }
}
