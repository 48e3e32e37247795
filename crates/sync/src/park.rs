//! Parking: how a thread sleeps so that a wake is neither lost nor paid for in vain.

use std::sync::Arc;
use std::time::Duration;

use crate::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use crate::{Guarded, Padded};

/// Where one thread sleeps. Waking a thread that is awake costs a load.
///
/// The sleeper stores `parked`, then looks for work; the waker stores the work, then looks at `parked`; a fence
/// between store and look on both sides (Dekker) means that one of the two sees the other.
#[derive(Debug)]
pub struct Parker {
    parked: AtomicBool,
    sleeper: Guarded<()>,
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}

impl Parker {
    /// No thread sleeps here yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            parked: AtomicBool::new(false),
            sleeper: Guarded::new(()),
        }
    }

    /// Sleeps until woken, unless `ready` says there is work. For one thread only.
    ///
    /// `ready` is asked after the intention to sleep is visible: work stored before a wake that found nobody
    /// parked is work it sees.
    pub fn park_unless(&self, ready: impl FnOnce() -> bool) {
        self.begin();
        fence(Ordering::SeqCst);
        if ready() {
            self.parked.store(false, Ordering::Relaxed);
            return;
        }
        self.sleep();
    }

    /// Declares the thread parked, as the first step of a sleep: for a thread that counts itself among sleepers, or whose barrier is another than
    /// [`announce`]. The barrier and a last look for work come next, then [`sleep`](Self::sleep), or [`wake`](Self::wake) of itself.
    #[inline]
    pub fn begin(&self) {
        // A swap, so that what a late waker of an earlier sleep stored comes before this.
        self.parked.swap(true, Ordering::AcqRel);
    }

    /// Whether the thread is parked. `false`: what the waker stored is visible.
    #[inline]
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.parked.load(Ordering::Acquire)
    }

    /// Sleeps until woken since [`begin`](Self::begin).
    pub fn sleep(&self) {
        let guard = self.sleeper.lock();
        drop(self.sleeper.wait_while(guard, |()| self.is_parked()));
    }

    /// As [`sleep`](Self::sleep), for so long at most; it may return early. The thread stays parked if nobody woke it.
    pub fn sleep_for(&self, timeout: Duration) {
        let guard = self.sleeper.lock();
        if self.is_parked() {
            drop(self.sleeper.wait_for(guard, timeout));
        }
    }

    /// Wakes the thread if it sleeps; `false` when it was awake. Call [`announce`] between storing the
    /// work and this.
    #[inline]
    pub fn wake(&self) -> bool {
        self.parked.load(Ordering::Relaxed) && self.wake_parked()
    }

    #[cold]
    fn wake_parked(&self) -> bool {
        let taken = self
            .parked
            .compare_exchange(true, false, Ordering::AcqRel, Ordering::Relaxed);
        if taken.is_err() {
            return false;
        }
        // The sleeper looks at `parked` under the lock: holding it once means that it waits, or has seen the change.
        drop(self.sleeper.lock());
        self.sleeper.notify_one();
        true
    }
}

/// The workers' parkers, each on cache lines of its own.
#[derive(Clone, Debug)]
pub struct Parkers(Arc<ParkedWorkers>);

#[derive(Debug)]
struct ParkedWorkers {
    parkers: Box<[Padded<Parker>]>,
    /// Workers between the beginning and the end of a sleep: while there are none, whoever wants to wake one looks at no parker.
    sleeping: Padded<AtomicUsize>,
}

impl Parkers {
    /// Parkers of so many workers.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self(Arc::new(ParkedWorkers {
            parkers: (0..workers).map(|_| Padded(Parker::new())).collect(),
            sleeping: Padded(AtomicUsize::new(0)),
        }))
    }

    /// As [`Parker::park_unless`], for the thread of this worker.
    #[inline]
    pub fn park_unless(&self, worker: usize, ready: impl FnOnce() -> bool) {
        // Before the parker's fence, as its own word.
        self.0.sleeping.fetch_add(1, Ordering::Relaxed);
        self.0.parkers[worker].park_unless(ready);
        self.0.sleeping.fetch_sub(1, Ordering::Relaxed);
    }

    /// Wakes this worker if it sleeps. Call [`announce`] before.
    #[inline]
    pub fn wake(&self, worker: usize) {
        self.0.parkers[worker].wake();
    }

    /// Wakes the first worker that sleeps; whether one did. Call [`announce`] before. While none sleeps it costs a load, however many workers there are.
    #[inline]
    pub fn wake_one(&self) -> bool {
        self.0.sleeping.load(Ordering::Relaxed) > 0 && self.wake_first()
    }

    #[cold]
    fn wake_first(&self) -> bool {
        self.0.parkers.iter().any(|parker| parker.wake())
    }

    /// Wakes every worker that sleeps. Call [`announce`] before.
    pub fn wake_all(&self) {
        for parker in &self.0.parkers {
            parker.wake();
        }
    }
}

/// Makes work stored so far visible to everyone who goes to sleep from now on; one call serves any
/// number of wakes.
#[inline]
pub fn announce() {
    fence(Ordering::SeqCst);
}
