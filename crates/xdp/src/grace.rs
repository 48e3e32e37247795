//! Waits until every packet under way has finished with its table look-ups, by a thread of their own.
#![expect(unsafe_code, reason = "membarrier has no safe wrapper")]

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// `MEMBARRIER_CMD_GLOBAL`: the kernel waits for an RCU grace period.
const GLOBAL: libc::c_int = 1;

/// RCU grace periods, one after the other. Each takes milliseconds; on a machine whose cores all have other work seconds, in which the owner goes on.
pub(crate) struct GracePeriods(Arc<GraceWaiter>);

#[derive(Default)]
struct GraceWaiter {
    state: Mutex<GraceState>,
    changed: Condvar,
}

#[derive(Default)]
struct GraceState {
    /// The generation of the last tables.
    newest: u64,
    /// No packet goes by older tables than those of this generation.
    settled: u64,
    is_ended: bool,
}

impl GracePeriods {
    pub(crate) fn start() -> io::Result<Self> {
        Self::of(wait_for_packets)
    }

    /// Periods that are over when `period` returns.
    fn of(period: impl Fn() + Send + 'static) -> io::Result<Self> {
        let shared = Arc::<GraceWaiter>::default();
        let theirs = Arc::clone(&shared);
        thread::Builder::new()
            .name("hw-grace".into())
            .spawn(move || theirs.run(period))?;
        Ok(Self(shared))
    }

    /// Tables of this generation were published: asks for a period, which is over when every XDP program has ended that runs at the call.
    pub(crate) fn begin(&self, generation: u64) {
        self.0.state().newest = generation;
        self.0.changed.notify_all();
    }

    /// The generation such that no packet goes by older tables.
    pub(crate) fn settled(&self) -> u64 {
        self.0.state().settled
    }

    /// Waits until no packet goes by older tables than those of this generation, which were published.
    pub(crate) fn wait(&self, generation: u64) {
        let mut state = self.0.state();
        while state.settled < generation {
            state = self.0.wait(state);
        }
    }
}

impl Drop for GracePeriods {
    /// The thread ends by itself: at once, or after the period that it waits for.
    fn drop(&mut self) {
        self.0.state().is_ended = true;
        self.0.changed.notify_all();
    }
}

impl GraceWaiter {
    fn run(&self, period: impl Fn()) {
        let mut state = self.state();
        while !state.is_ended {
            if state.settled == state.newest {
                state = self.wait(state);
                continue;
            }
            // One period is enough for all that was published before it.
            let newest = state.newest;
            drop(state);
            period();
            state = self.state();
            state.settled = newest;
            self.changed.notify_all();
        }
    }

    fn state(&self) -> MutexGuard<'_, GraceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, GraceState>) -> MutexGuard<'a, GraceState> {
        let woken = self.changed.wait(state);
        woken.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns when every XDP program that was running at the call has ended: they run inside RCU read sections, and the call waits for all of these.
fn wait_for_packets() {
    // SAFETY: this command takes no pointer, and changes no memory of this process.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, GLOBAL, 0, 0) };
    if result != 0 {
        // Kernels with full dynticks refuse the command. A program takes microseconds.
        thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn the_owner_goes_on_while_a_period_lasts_and_what_is_asked_meanwhile_is_another() {
        let (begun, begins) = channel();
        let (end, ends) = channel();
        let periods = GracePeriods::of(move || {
            begun.send(()).expect("the test waits");
            ends.recv().expect("the test ends each");
        });
        let periods = periods.expect("a thread");
        assert_eq!(periods.settled(), 0);
        periods.begin(7);
        begins.recv().expect("the first one begins");
        assert_eq!(periods.settled(), 0);
        (8..10).for_each(|generation| periods.begin(generation));
        end.send(()).expect("the first one ends");
        periods.wait(7);
        begins.recv().expect("one more for both");
        assert_eq!(periods.settled(), 7);
        end.send(()).expect("the second one ends");
        periods.wait(9);
        assert!(periods.settled() == 9 && begins.try_recv().is_err());
    }

    #[test]
    fn the_kernels_periods_end() {
        let periods = GracePeriods::start().expect("a thread");
        periods.begin(1);
        periods.wait(1);
        assert_eq!(periods.settled(), 1);
    }
}
