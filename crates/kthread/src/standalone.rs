//! Kthreads without an arbiter: each has a core whenever it wants one.

use std::time::Duration;

use headway_sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use headway_sync::barrier::AsymmetricBarrier;
use headway_sync::park::Parker;

use crate::lines::{Grant, KthreadLine, OrderLine};
use crate::source::CoreSource;

/// Kthreads that only the operating system schedules. They sleep while they find no work.
///
/// A kthread that is about to sleep announces it and looks for work once more. A thread that puts work into a queue then looks for sleepers. A
/// [`AsymmetricBarrier`] ensures that one of the two sees the other.
#[derive(Debug)]
pub struct Standalone {
    kthreads: Box<[KthreadSlot]>,
    sleepers: AtomicUsize,
    closed: AtomicBool,
    barrier: AsymmetricBarrier,
}

#[derive(Debug, Default)]
struct KthreadSlot {
    line: KthreadLine,
    orders: OrderLine,
    parker: Parker,
}

impl Standalone {
    /// Creates `kthreads` kthreads; none runs yet.
    pub fn new(kthreads: usize) -> Standalone {
        Standalone {
            kthreads: (0..kthreads).map(|_| KthreadSlot::default()).collect(),
            sleepers: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            barrier: AsymmetricBarrier::new(),
        }
    }

    fn wake(&self, slot: &KthreadSlot) -> bool {
        let slept = slot.parker.wake();
        if slept {
            self.sleepers.fetch_sub(1, Ordering::AcqRel);
        }
        slept
    }

    #[cold]
    fn wake_one(&self) {
        let _ = self.kthreads.iter().any(|slot| self.wake(slot));
    }
}

impl CoreSource for Standalone {
    fn kthreads(&self) -> usize {
        self.kthreads.len()
    }

    #[inline]
    fn line(&self, kthread: usize) -> &KthreadLine {
        &self.kthreads[kthread].line
    }

    #[inline]
    fn orders(&self, kthread: usize) -> &OrderLine {
        &self.kthreads[kthread].orders
    }

    fn enter(&self, kthread: usize) -> Grant {
        self.kthreads[kthread].orders.grant(0)
    }

    fn leave(
        &self,
        kthread: usize,
        grant: Grant,
        finds_nothing: &mut dyn FnMut() -> bool,
    ) -> Grant {
        let slot = &self.kthreads[kthread];
        slot.parker.begin();
        self.sleepers.fetch_add(1, Ordering::AcqRel);
        self.barrier.heavy();
        if self.closed.load(Ordering::Acquire) || !finds_nothing() {
            self.wake(slot);
        }
        while slot.parker.is_parked() {
            match slot.line.wakes_in_ns() {
                None => slot.parker.sleep(),
                Some(0) => {
                    self.wake(slot);
                }
                Some(ns) => slot.parker.sleep_for(Duration::from_nanos(ns)),
            }
        }
        grant
    }

    #[inline]
    fn notify(&self) {
        self.barrier.light();
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake_one();
        }
    }

    fn put(&self, _entries: u64) {}

    fn took(&self, _entries: u64) {}

    fn is_daemons_core(&self, _: usize) -> bool {
        false
    }

    fn exit(&self) {}

    fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.barrier.light();
        for slot in &self.kthreads {
            self.wake(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    #[test]
    fn no_work_is_missed_however_sleep_and_notice_meet() {
        const ROUNDS: u64 = 20_000;
        let source = Standalone::new(1);
        let (put, taken) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut grant = source.enter(0);
                for round in 1..=ROUNDS {
                    while put.load(Ordering::Acquire) < round {
                        grant = source.leave(0, grant, &mut || put.load(Ordering::Acquire) < round);
                    }
                    taken.store(round, Ordering::Release);
                }
            });
            for round in 1..=ROUNDS {
                put.store(round, Ordering::Release);
                source.notify();
                while taken.load(Ordering::Acquire) < round {
                    thread::yield_now();
                }
            }
        });
        assert_eq!(taken.into_inner(), ROUNDS);
    }

    #[test]
    fn a_timer_wakes_who_sleeps() {
        let source = Standalone::new(1);
        let grant = source.enter(0);
        let due_ns = crate::now_ns() + 3_000_000;
        source.line(0).set_wake_at_ns(Some(due_ns));
        source.leave(0, grant, &mut || true);
        assert!(crate::now_ns() >= due_ns);
    }

    #[test]
    fn closing_wakes_who_sleeps_and_who_is_about_to() {
        let source = Standalone::new(2);
        thread::scope(|scope| {
            for kthread in 0..2 {
                let source = &source;
                scope.spawn(move || {
                    let grant = source.enter(kthread);
                    source.leave(kthread, grant, &mut || true);
                });
            }
            thread::yield_now();
            source.close();
        });
        let grant = source.orders(0).granted();
        assert_eq!(source.leave(0, grant, &mut || true), grant);
    }
}
