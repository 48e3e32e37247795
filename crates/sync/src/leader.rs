//! Leadership without a leader thread: how workers share one dispatcher (leader/followers, Schmidt et al., `PLoP` 2000).
//!
//! With two cores, a dispatcher thread of its own would take half of the machine. Instead the
//! dispatcher's state lies under a lock that is only ever *tried*: whoever gets it leads, that is, takes
//! requests in and hands them out, while the others run requests. The protocol of a worker:
//!
//! 1. If its ring holds a request, run it and report its completion in its other ring. Repeat.
//! 2. Else try the lock ([`try_lead`](Leadership::try_lead)). Whoever gets it takes turns as the dispatcher until its own ring
//!    holds a request, waking each parked worker that it gave one. With nothing to do it may sleep *at the
//!    receive queue*, still leading: a packet wakes it, and so does a completion that finds it asleep.
//! 3. A leader with a request for itself [resigns](Leadership::resign): it unlocks, and then wakes one parked worker, if there is any,
//!    to lead while it runs.
//! 4. A worker that got neither a request nor the lock parks ([`follow`](Leadership::follow)): it declares itself parked, and
//!    then looks *again* at its ring and tries the lock again; only if both fail it sleeps.
//!
//! From this follows: **while nobody leads, nobody is parked** (but for wakes under way). So every request is
//! seen by someone: by the leader, or by a worker that comes to step 2 as soon as it has finished running.
//!
//! The two races:
//! - *A leader resigns while another parks.* It unlocks, fences and looks for parked ones; the other declares
//!   itself parked, fences and tries the lock. One of the two sees the other (Dekker).
//! - *A leader hands out a request to a worker that parks.* It pushes, fences and looks whether that one is
//!   parked; the worker declares itself parked, fences and looks into its ring. The same.
//!
//! State passes from leader to leader by the lock's release and acquire.

use crate::Padded;
use crate::park::{Parkers, announce};
use crate::trylock::{TryLock, TryLockGuard};

/// The dispatcher's state and the workers that wait for a turn at it.
#[derive(Debug)]
pub struct Leadership<S> {
    state: Padded<TryLock<S>>,
    followers: Parkers,
}

/// The right to lead, until [resigned](Leadership::resign).
///
/// Threads share it only where they may share the state:
///
/// ```
/// fn share<T: Sync>() {}
/// share::<headway_sync::leader::Lead<'_, u32>>();
/// ```
///
/// ```compile_fail,E0277
/// fn share<T: Sync>() {}
/// share::<headway_sync::leader::Lead<'_, std::cell::Cell<u32>>>();
/// ```
pub type Lead<'a, S> = TryLockGuard<'a, S>;

impl<S> Leadership<S> {
    /// Nobody leads, nobody is parked.
    #[must_use]
    pub fn new(state: S, workers: usize) -> Self {
        Self {
            state: Padded(TryLock::new(state)),
            followers: Parkers::new(workers),
        }
    }

    /// Leads, unless another does.
    #[inline]
    pub fn try_lead(&self) -> Option<Lead<'_, S>> {
        self.state.try_lock()
    }

    /// Whether a worker led a moment ago.
    #[inline]
    pub fn is_led(&self) -> bool {
        self.state.is_held()
    }

    /// Stops leading, and sees to it that somebody else is awake to lead.
    #[inline]
    pub fn resign(&self, lead: Lead<'_, S>) {
        drop(lead);
        announce();
        // A worker that does not sleep comes to lead by itself.
        let _ = self.followers.wake_one();
    }

    /// Sleeps until woken, unless `ready` says that there is something to run, or nobody leads: then the caller does.
    #[inline]
    pub fn follow(&self, worker: usize, ready: impl FnOnce() -> bool) -> Option<Lead<'_, S>> {
        let mut lead = None;
        self.followers.park_unless(worker, || {
            ready() || {
                lead = self.try_lead();
                lead.is_some()
            }
        });
        lead
    }

    /// Wakes this worker if it is parked. Call [`announce`] before.
    #[inline]
    pub fn wake(&self, worker: usize) {
        self.followers.wake(worker);
    }

    /// Wakes a parked worker, if there is one; whether there was. Call [`announce`] before.
    #[inline]
    pub fn wake_follower(&self) -> bool {
        self.followers.wake_one()
    }

    /// Wakes everyone.
    pub fn wake_all(&self) {
        announce();
        self.followers.wake_all();
    }
}
