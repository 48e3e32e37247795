//! Workers that poll: they see to the program's own events between slices, and all the time while they have no job.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use headway_sync::atomic::{AtomicBool, Ordering};
use headway_sync::hint;
use headway_sync::thread::{self, Thread};

use crate::current;

/// What a program has its workers call.
#[derive(Clone)]
pub(crate) struct Poller {
    call: Arc<dyn Fn() + Send + Sync>,
    /// One that panicked is not called again.
    panicked: Arc<AtomicBool>,
}

impl Poller {
    pub(crate) fn new(call: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            call: Arc::new(call),
            panicked: Arc::new(AtomicBool::new(false)),
        }
    }

    fn is_over(&self) -> bool {
        self.panicked.load(Ordering::Relaxed)
    }

    /// Called on a worker's stack, between slices.
    #[inline]
    pub(crate) fn poll(&self) {
        if self.is_over() {
            return;
        }
        // It is no part of the job that was interrupted: what it submits comes from outside, and a future that it polls runs nothing here.
        let polled = current::polling(|| catch_unwind(AssertUnwindSafe(|| (self.call)())));
        if polled.is_err() {
            self.panicked.store(true, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Poller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Poller").finish_non_exhaustive()
    }
}

/// How a thread without a job is told that there may be one.
#[derive(Clone, Debug)]
pub(crate) enum IdleHandle {
    Sleeps(Thread),
    Polls(Arc<AtomicBool>),
}

impl IdleHandle {
    pub(crate) fn rouse(&self) {
        match self {
            Self::Sleeps(thread) => thread.unpark(),
            Self::Polls(roused) => roused.store(true, Ordering::Release),
        }
    }
}

/// What a thread does while it has no job.
pub(crate) enum IdleWait {
    Sleep,
    Poll {
        poller: Poller,
        roused: Arc<AtomicBool>,
    },
}

impl IdleWait {
    pub(crate) fn new(poller: Option<&Poller>) -> Self {
        poller.map_or(Self::Sleep, |poller| Self::Poll {
            poller: poller.clone(),
            roused: Arc::new(AtomicBool::new(false)),
        })
    }

    /// Of the calling thread.
    pub(crate) fn handle(&self) -> IdleHandle {
        match self {
            Self::Sleep => IdleHandle::Sleeps(thread::current()),
            Self::Poll { roused, .. } => IdleHandle::Polls(Arc::clone(roused)),
        }
    }

    /// Until the handle is roused.
    pub(crate) fn wait(&self) {
        match self {
            Self::Sleep => thread::park(),
            Self::Poll { poller, roused } => {
                while !roused.load(Ordering::Acquire) {
                    poller.poll();
                    hint::spin_loop();
                }
                roused.store(false, Ordering::Relaxed);
            }
        }
    }
}
