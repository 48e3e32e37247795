//! Times in which a thread of the server did not get on: what the machine takes from it.
//!
//! Threads read the clock every few turns while they wait, around each handler and in each turn of the dispatcher anyway; readings
//! too far apart were separated by somebody else's work, or by a system call that took that long. Handlers are left out:
//! they know best how long they should take, and can [say](alive) that they get on.

use std::sync::{Mutex, PoisonError};

use headway_fiber::{NoPreempt, alive_ns, set_alive_ns};

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

/// A handler that gets on says so, with the time by [`Clock::global`](headway_machine::Clock::global) in ns. Returns when its thread was
/// last known to: as a worker turned to this request, or as the request last said so. So a handler that reads the clock all the time sees
/// each time that its thread was kept from running, also just before it began or went on; one that came just after it ended
/// or was interrupted is among the server's [stalls](crate::Server::stalls).
#[inline(never)] // The thread may be another at the next call.
pub fn alive(now_ns: u64) -> u64 {
    let _in_this_thread = NoPreempt::enter();
    let before_ns = alive_ns();
    set_alive_ns(now_ns);
    before_ns
}

/// This thread turns to a request.
#[inline]
pub(crate) fn turned_to_request(now_ns: u64) {
    set_alive_ns(now_ns);
}

/// The last call of [`alive`] by the request that this thread turned to at `start_ns`, if there was one.
#[inline]
pub(crate) fn last_alive(start_ns: u64) -> Option<u64> {
    let alive_ns = alive_ns();
    (alive_ns > start_ns).then_some(alive_ns)
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
    fn a_request_says_that_its_thread_gets_on() {
        turned_to_request(100);
        assert_eq!(last_alive(100), None, "it has said nothing yet");
        assert_eq!(alive(150), 100);
        assert_eq!(alive(170), 150);
        assert_eq!(last_alive(100), Some(170));
        turned_to_request(200);
        assert_eq!(last_alive(200), None, "that was the one before");
    }

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
