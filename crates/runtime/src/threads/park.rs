//! Waiting: how long a thread without work spins before it sleeps.

use std::ops::Range;
use std::sync::Arc;

use headway_machine::Clock;
use headway_sync::world;

use crate::stats::stall::{StallLog, last_alive};

/// What a thread without work does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Idle {
    /// Never sleeps: the shortest reaction, and a core that is always busy.
    Spin,
    /// Spins for so many nanoseconds, then sleeps until woken. Of more threads than cores, one that got its core back later than that sleeps at once for the
    /// next second: another program wants it too.
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

/// For how long a thread sleeps at once after others had its core for longer than it would have spun: to look again whether they still want it costs it a turn
/// of theirs, which takes milliseconds.
const CROWDED_NS: u64 = 1_000_000_000;

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
    /// Until when others want the core too.
    crowded_until_ns: u64,
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
            crowded_until_ns: 0,
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
    /// [`alive`](crate::stats::stall::alive).
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
        let is_crowded = self.oversubscribed && self.is_crowded(spin_ns);
        let now_ns = self.clock.now_ns();
        if self.turns == 0 {
            self.since_ns = now_ns;
        }
        self.saw(now_ns);
        is_crowded || now_ns.saturating_sub(self.since_ns) > spin_ns
    }

    /// Lets another thread have the core, unless that took longer lately than to sleep and be woken: the scheduler lets a thread that slept go before those that
    /// never do, and one that yielded after them.
    fn is_crowded(&mut self, spin_ns: u64) -> bool {
        let given_ns = self.clock.now_ns();
        if given_ns < self.crowded_until_ns {
            return true;
        }
        world::yield_now();
        let back_ns = self.clock.now_ns();
        if back_ns.saturating_sub(given_ns) > spin_ns {
            self.crowded_until_ns = back_ns + CROWDED_NS;
        }
        false
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    use crate::stats::stall::{Stall, alive, turned_to_request};

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

    #[test]
    fn who_waited_for_a_core_that_it_gave_away_sleeps_at_once() {
        static NOW_NS: AtomicU64 = AtomicU64::new(0);
        /// Each look at it takes more than a thread would spin.
        fn read_ns() -> u64 {
            NOW_NS.fetch_add(30_000, Ordering::Relaxed)
        }
        let stalls = Arc::new(StallLog::new(8));
        let backoff = |oversubscribed| {
            let mut backoff = Backoff::new(
                Idle::default(),
                oversubscribed,
                &stalls,
                Clock::given(read_ns),
            );
            assert!(!backoff.exhausted(), "it looks once more");
            while !backoff.exhausted() {}
            backoff.slept();
            backoff
        };
        assert!(!backoff(false).exhausted(), "nobody else is there");
        let mut backoff = backoff(true);
        for _ in 0..3 {
            assert!(backoff.exhausted());
            backoff.slept();
        }
        NOW_NS.fetch_add(CROWDED_NS, Ordering::Relaxed);
        assert!(!backoff.exhausted(), "it looks whether they are gone");
    }
}
