//! The two cache lines that a kthread and its arbiter share. Both may lie in memory that two processes share: each word is an atomic, and no
//! value of a word is invalid.

use headway_sync::atomic::{AtomicU32, AtomicU64, Ordering};
use nix::time::{ClockId, clock_gettime};

/// The number of a grant of a core: the first is 1. 0 stands for none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Grant(pub u64);

/// The line that the kthread writes and the arbiter reads.
///
/// Head and tail counters only grow: the entries between them wait. Thieves of the same application advance the heads too.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct KthreadLine {
    /// User-level threads ever taken out of the run queue.
    pub run_head: AtomicU64,
    /// User-level threads ever put into it.
    pub run_tail: AtomicU64,
    /// Packets, or requests, ever taken out of the ingress queue.
    pub ingress_head: AtomicU64,
    /// Packets, or requests, ever put into it. Where the arbiter fills the queue it keeps its own count.
    pub ingress_tail: AtomicU64,
    /// The last grant that the kthread has left.
    left: AtomicU64,
    /// When the kthread's next timer is due, ns of `CLOCK_MONOTONIC`; 0 for none.
    wake_at_ns: AtomicU64,
    /// The kernel's thread id of the kthread, 0 before it runs: the arbiter pins it and sends it signals.
    tid: AtomicU32,
    /// Whether the kthread was interrupted in work that is in none of its queues, and needs a core to go on.
    interrupted: AtomicU32,
}

/// The line that the arbiter writes and the kthread reads.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct OrderLine {
    granted: AtomicU64,
    revoked: AtomicU64,
    core: AtomicU32,
    /// The futex on which the kthread sleeps: it changes before each wake-up.
    wakes: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<KthreadLine>() == 64 && size_of::<OrderLine>() == 64);

impl KthreadLine {
    /// Publishes the calling kernel thread's id.
    pub fn set_tid(&self, tid: u32) {
        self.tid.store(tid, Ordering::Release);
    }

    /// The kernel thread's id, once it runs.
    pub fn tid(&self) -> Option<u32> {
        Some(self.tid.load(Ordering::Acquire)).filter(|&tid| tid != 0)
    }

    /// Publishes whether the kthread was interrupted in work and needs a core to go on.
    pub fn set_interrupted(&self, interrupted: bool) {
        self.interrupted
            .store(u32::from(interrupted), Ordering::Release);
    }

    /// Whether the kthread was interrupted in work.
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed) != 0
    }

    /// Publishes when the kthread's next timer is due, ns of `CLOCK_MONOTONIC`: at that time it needs a core, even if it left its core before.
    #[inline]
    pub fn set_wake_at_ns(&self, at_ns: Option<u64>) {
        self.wake_at_ns.store(at_ns.unwrap_or(0), Ordering::Release);
    }

    /// When the kthread's next timer is due, ns of `CLOCK_MONOTONIC`.
    #[inline]
    pub fn wake_at_ns(&self) -> Option<u64> {
        Some(self.wake_at_ns.load(Ordering::Acquire)).filter(|&at_ns| at_ns != 0)
    }

    /// Nanoseconds until the kthread's next timer is due; 0 if it is due already.
    pub fn wakes_in_ns(&self) -> Option<u64> {
        Some(self.wake_at_ns()?.saturating_sub(now_ns()))
    }

    /// Publishes that the kthread has left this grant. Its earlier writes to its queues are visible to a reader of this number.
    pub fn leave(&self, grant: Grant) {
        self.left.store(grant.0, Ordering::Release);
    }

    /// The last grant that the kthread has left.
    #[inline]
    pub fn left(&self) -> Grant {
        Grant(self.left.load(Ordering::Acquire))
    }
}

impl OrderLine {
    /// Grants a core under the next number. Only the arbiter, a single thread, calls it.
    pub fn grant(&self, core: u32) -> Grant {
        self.core.store(core, Ordering::Relaxed);
        let grant = self.granted.load(Ordering::Relaxed) + 1;
        self.granted.store(grant, Ordering::Release);
        Grant(grant)
    }

    /// Grants a core under the arbiter's own number, for an arbiter that does not trust this memory.
    pub fn grant_as(&self, core: u32, grant: Grant) {
        self.core.store(core, Ordering::Relaxed);
        self.granted.store(grant.0, Ordering::Release);
    }

    /// Revokes this grant and all earlier ones.
    pub fn revoke_to(&self, grant: Grant) {
        self.revoked.store(grant.0, Ordering::Release);
    }

    /// The word on which the kthread sleeps.
    pub fn wakes(&self) -> &AtomicU32 {
        &self.wakes
    }

    /// Revokes the last grant.
    pub fn revoke(&self) {
        let granted = self.granted.load(Ordering::Relaxed);
        self.revoked.store(granted, Ordering::Release);
    }

    /// The last grant.
    #[inline]
    pub fn granted(&self) -> Grant {
        Grant(self.granted.load(Ordering::Acquire))
    }

    /// The core of the last grant, as the arbiter's machine numbers it.
    pub fn core(&self) -> u32 {
        self.core.load(Ordering::Relaxed)
    }

    /// Whether the kthread must leave its core. One load of a line that is written only when orders come.
    #[inline]
    pub fn is_revoked(&self, grant: Grant) -> bool {
        self.revoked.load(Ordering::Relaxed) >= grant.0
    }
}

/// The time of `CLOCK_MONOTONIC`, which all processes share.
///
/// # Panics
/// The system has no such clock, which every Linux has.
pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("Linux has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_to_leave_concerns_the_grants_so_far_and_no_later_one() {
        let orders = OrderLine::default();
        let first = orders.grant(3);
        assert_eq!((first, orders.core()), (Grant(1), 3));
        assert!(!orders.is_revoked(first));
        orders.revoke();
        assert!(orders.is_revoked(first));
        let second = orders.grant(4);
        assert!(!orders.is_revoked(second));
        assert_eq!(orders.granted(), second);
    }

    #[test]
    fn a_kthread_shows_which_grant_it_left() {
        let line = KthreadLine::default();
        assert_eq!((line.left(), line.tid()), (Grant(0), None));
        line.set_tid(7);
        line.leave(Grant(1));
        assert_eq!((line.left(), line.tid()), (Grant(1), Some(7)));
    }
}
