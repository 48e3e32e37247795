//! Wakes the thread that sleeps at a receive queue; costs a fence and a load while none does.

use std::sync::Arc;

use headway_net::datapath::Rx;

use headway_sync::Padded;
use headway_sync::atomic::{AtomicBool, Ordering};
use headway_sync::park::announce;

/// A receive queue, and whether a thread sleeps at it.
///
/// [`Rx::wake`] alone would be correct; but it writes a shared line each time, and completions come by the million.
pub(crate) struct RxWaker {
    rx: Arc<dyn Rx>,
    asleep: Padded<AtomicBool>,
}

impl RxWaker {
    pub(crate) fn new(rx: Arc<dyn Rx>) -> Self {
        Self {
            rx,
            asleep: Padded(AtomicBool::new(false)),
        }
    }

    #[inline]
    pub(crate) fn rx(&self) -> &dyn Rx {
        &*self.rx
    }

    /// Sleeps until a request may have come, another thread wakes this one, or the time is over, unless `ready` says that there is
    /// something to do.
    pub(crate) fn sleep_unless(&self, timeout_ns: u64, ready: impl FnOnce() -> bool) {
        self.asleep.store(true, Ordering::Relaxed);
        announce();
        if !ready() {
            self.rx.wait(timeout_ns);
        }
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Wakes the sleeper, if there is one, after the work for it was stored.
    #[inline]
    pub(crate) fn wake(&self) {
        announce();
        self.wake_announced();
    }

    #[inline]
    pub(crate) fn wake_announced(&self) -> bool {
        let asleep = self.asleep.load(Ordering::Relaxed);
        if asleep {
            self.rx.wake();
        }
        asleep
    }

    /// Whether a thread slept at the queue a moment ago.
    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }
}
