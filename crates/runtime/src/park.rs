//! Waiting: how long to spin, and how to sleep so that a wake is neither lost nor paid for in vain.

use std::ops::Range;
use std::sync::Arc;

use headway_machine::Clock;

use crate::stall::{StallLog, last_alive};
use crate::sync::{AtomicBool, Condvar, Mutex, Ordering, Padded, fence};

/// What a thread without work does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// Never sleeps: the shortest reaction, and a core that is always busy.
    Spin,
    /// Spins for so many nanoseconds, then sleeps until woken.
    SpinThenPark {
        /// How long to spin; about what a sleep and a wake cost is what a competitive algorithm would choose.
        spin_ns: u64,
    },
    /// Sleeps at once.
    Park,
}

impl Default for Idle {
    /// Spins for 20 µs, about what it costs to wake a sleeping core.
    fn default() -> Self {
        Self::SpinThenPark { spin_ns: 20_000 }
    }
}

/// The clock is read once in so many turns, lest reading it be what the spin consists of.
const TURNS_PER_LOOK: u32 = 16;

/// So many turns in vain follow each other at once; the later ones with a pause between them, which leaves a sibling hyperthread
/// more of the core. A pause takes up to 42 ns (measured on AMD Zen 3), most of a cache line's way there and back: what is waited for
/// while requests take a microsecond comes before the first one.
const EAGER_TURNS: u32 = 256;

/// How one thread waits: counts the turns in which it found nothing to do, and logs the stalls it notices.
#[derive(Debug)]
pub(crate) struct Backoff {
    idle: Idle,
    clock: Clock,
    turns: u32,
    since_ns: u64,
    /// When the thread was last seen to run.
    looked_ns: Option<u64>,
    stalls: Arc<StallLog>,
    /// More threads than cores: who spins keeps the one it waits for from running.
    oversubscribed: bool,
}

impl Backoff {
    pub(crate) fn new(
        idle: Idle,
        oversubscribed: bool,
        stalls: &Arc<StallLog>,
        clock: Clock,
    ) -> Self {
        Self {
            idle,
            clock,
            turns: 0,
            since_ns: 0,
            looked_ns: None,
            stalls: Arc::clone(stalls),
            oversubscribed,
        }
    }

    /// Whether threads that wait like this ever sleep, so that they may have to be woken.
    #[inline]
    pub(crate) fn may_sleep(&self) -> bool {
        self.idle != Idle::Spin
    }

    /// There was something to do.
    #[inline]
    pub(crate) fn reset(&mut self) {
        self.turns = 0;
    }

    /// The thread slept, and that was its own wish.
    #[inline]
    pub(crate) fn slept(&mut self) {
        self.turns = 0;
        self.looked_ns = None;
    }

    /// The thread runs at this time: it should have since it was last seen to.
    #[inline]
    pub(crate) fn saw(&mut self, now_ns: u64) {
        if let Some(looked_ns) = self.looked_ns {
            self.stalls.between(looked_ns, now_ns);
        }
        self.looked_ns = Some(now_ns);
    }

    /// The thread ran a handler during `span_ns`. Gaps inside a handler are no stalls, except the one since its last call of
    /// [`alive`](crate::stall::alive).
    #[inline]
    pub(crate) fn ran(&mut self, span_ns: &Range<u64>) {
        self.saw(span_ns.start);
        if let Some(alive_ns) = last_alive(span_ns.start) {
            self.stalls.between(alive_ns, span_ns.end);
        }
        self.looked_ns = Some(span_ns.end);
    }

    /// There was nothing to do: spins one turn. `true` when it is time to sleep.
    #[inline]
    pub(crate) fn exhausted(&mut self) -> bool {
        let spin_ns = match self.idle {
            Idle::Park => return true,
            Idle::Spin => u64::MAX,
            Idle::SpinThenPark { spin_ns } => spin_ns,
        };
        let look = self.turns.is_multiple_of(TURNS_PER_LOOK);
        let exhausted = look && self.look(spin_ns);
        self.turns = self.turns.wrapping_add(1).max(1);
        if self.turns > EAGER_TURNS {
            std::hint::spin_loop();
        }
        exhausted
    }

    fn look(&mut self, spin_ns: u64) -> bool {
        if self.oversubscribed {
            std::thread::yield_now();
        }
        let now_ns = self.clock.now_ns();
        if self.turns == 0 {
            self.since_ns = now_ns;
        }
        self.saw(now_ns);
        now_ns.saturating_sub(self.since_ns) > spin_ns
    }
}

/// Where one thread sleeps. Waking a thread that is awake costs a load.
///
/// The sleeper stores `parked`, then looks for work; the waker stores the work, then looks at `parked`; a fence
/// between store and look on both sides (Dekker) means that one of the two sees the other.
#[derive(Debug)]
pub struct Parker {
    parked: AtomicBool,
    lock: Mutex<()>,
    woken: Condvar,
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
            lock: Mutex::new(()),
            woken: Condvar::new(),
        }
    }

    /// Sleeps until woken, unless `ready` says there is work. For one thread only.
    ///
    /// `ready` is asked after the intention to sleep is visible: work stored before a wake that found nobody
    /// parked is work it sees.
    ///
    /// # Panics
    /// Never: nothing can panic while the lock is held.
    pub fn park_unless(&self, ready: impl FnOnce() -> bool) {
        // A swap, so that what a late waker of an earlier sleep stored comes before this.
        self.parked.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if ready() {
            self.parked.store(false, Ordering::Relaxed);
            return;
        }
        let mut guard = self.lock.lock().expect("nothing panics under this lock");
        while self.parked.load(Ordering::Acquire) {
            guard = self
                .woken
                .wait(guard)
                .expect("nothing panics under this lock");
        }
    }

    /// Wakes the thread if it sleeps; `false` when it was awake. Call [`announce`] between storing the
    /// work and this.
    ///
    /// # Panics
    /// Never: nothing can panic while the lock is held.
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
        drop(self.lock.lock().expect("nothing panics under this lock"));
        self.woken.notify_one();
        true
    }
}

/// The workers' parkers, each on cache lines of its own.
#[derive(Clone, Debug)]
pub(crate) struct Parkers(Arc<[Padded<Parker>]>);

impl Parkers {
    pub(crate) fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| Padded(Parker::new())).collect())
    }

    /// As [`Parker::park_unless`], for the thread of this worker.
    #[inline]
    pub(crate) fn park_unless(&self, worker: usize, ready: impl FnOnce() -> bool) {
        self.0[worker].park_unless(ready);
    }

    /// Wakes this worker if it sleeps. Call [`announce`] before.
    #[inline]
    pub(crate) fn wake(&self, worker: usize) {
        self.0[worker].wake();
    }

    /// Wakes the first worker that sleeps; whether one did. Call [`announce`] before.
    #[inline]
    pub(crate) fn wake_one(&self) -> bool {
        self.0.iter().any(|parker| parker.wake())
    }

    /// Wakes every worker that sleeps. Call [`announce`] before.
    pub(crate) fn wake_all(&self) {
        for parker in &*self.0 {
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::stall::{Stall, alive, turned_to_request};

    const STOP_NS: u64 = 50_000;

    fn noted(run: impl FnOnce(&mut Backoff)) -> Vec<Stall> {
        let stalls = Arc::new(StallLog::new(8));
        run(&mut Backoff::new(
            Idle::Spin,
            false,
            &stalls,
            Clock::global(),
        ));
        stalls.stalls()
    }

    #[test]
    fn who_is_stopped_after_it_said_that_it_gets_on_has_stalled() {
        let stalls = noted(|backoff| {
            turned_to_request(1_000);
            alive(1_500);
            alive(2_000);
            backoff.ran(&(1_000..2_000 + STOP_NS));
        });
        let stall = Stall {
            from_ns: 2_000,
            to_ns: 2_000 + STOP_NS,
        };
        assert_eq!(stalls, [stall]);
    }

    #[test]
    fn a_handler_that_says_nothing_may_take_as_long_as_it_likes() {
        let stalls = noted(|backoff| {
            turned_to_request(1_000);
            backoff.ran(&(1_000..1_000 + STOP_NS));
            // Until the next one the thread was seen to run all the time.
            backoff.saw(2_000 + STOP_NS);
        });
        assert_eq!(stalls, []);
    }
}
