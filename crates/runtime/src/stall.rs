//! Times in which a thread of the server did not get on: what the machine takes from it.
//!
//! Threads read the clock every few turns while they wait, around each handler and in each turn of the dispatcher anyway; readings
//! too far apart were separated by somebody else's work, or by a system call that took that long. Handlers are left out:
//! they know best how long they should take.

use std::sync::{Mutex, PoisonError};

/// Between two readings of the clock there are less than 4 µs of the server's own work; an interrupt takes about as long as this.
const STALL_NS: u64 = 5_000;

/// A time in which a thread of the server did not get on, on the scale of
/// [`Clock::global`](headway_machine::Clock::global).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stall {
    /// When it was last seen to run, ns.
    pub from_ns: u64,
    /// When it ran again, ns.
    pub to_ns: u64,
}

/// The stalls of all threads. Off unless asked for: where every reply is a system call, every request is such a time, and noting
/// it takes a lock.
#[derive(Debug)]
pub(crate) struct StallLog {
    /// How many are kept; 0: none is noted.
    most: usize,
    kept: Mutex<Vec<Stall>>,
}

impl StallLog {
    pub(crate) fn new(most: usize) -> Self {
        let kept = Mutex::new(Vec::with_capacity(most));
        Self { most, kept }
    }

    /// Notes the time between two readings of the clock, if it is one in which the thread did not run.
    #[inline]
    pub(crate) fn between(&self, from_ns: u64, to_ns: u64) {
        if self.most > 0 && to_ns.saturating_sub(from_ns) > STALL_NS {
            self.note(Stall { from_ns, to_ns });
        }
    }

    #[cold]
    fn note(&self, stall: Stall) {
        let mut stalls = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Within the room it began with: a server that is stopped all the time must not allocate on top.
        if stalls.len() < self.most {
            stalls.push(stall);
        }
    }

    /// What was noted so far, in no particular order.
    pub(crate) fn stalls(&self) -> Vec<Stall> {
        self.kept
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn only_long_times_are_stalls() {
        let log = StallLog::new(2);
        log.between(10, 10 + STALL_NS);
        log.between(20, 21 + STALL_NS);
        log.between(30, 20);
        let stall = Stall {
            from_ns: 20,
            to_ns: 21 + STALL_NS,
        };
        assert_eq!(log.stalls(), [stall]);
        log.between(40, 100_000);
        log.between(50, 100_000);
        assert_eq!(log.stalls().len(), 2, "no more than asked for");
        let off = StallLog::new(0);
        off.between(0, 1_000_000);
        assert_eq!(off.stalls(), []);
    }
}
