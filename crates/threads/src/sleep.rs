//! Waiting for a time.
#![expect(
    unsafe_code,
    reason = "timers lie on the stacks of the threads that wait"
)]

use std::ptr;
use std::time::Duration;

use headway_fiber::NoPreempt;

use crate::head::Uthread;
use crate::suspending::Suspending;
use crate::timers::{Alarm, TimerClaim};

impl Suspending {
    /// As [`wait`](Suspending::wait), until `due_ns` of the runtime's clock at most. Then `claim` decides whether the timer makes the thread ready.
    ///
    /// # Safety
    /// `claim` may be called with `data`, in any kthread, until this returns.
    pub(crate) unsafe fn wait_until(self, due_ns: u64, claim: TimerClaim, data: *const ()) {
        let alarm = Alarm::new(due_ns, self.me(), claim, data);
        // SAFETY: the thread uses it up to its return from here.
        let timers = unsafe { self.timers() };
        timers.add(&alarm);
        self.wait();
        let _section = NoPreempt::enter();
        timers.remove(&alarm);
    }

    /// The time in `duration` from now, on the clock of the thread's runtime.
    pub(crate) fn due_in(&self, duration: Duration) -> u64 {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.now_ns().saturating_add(ns)
    }
}

/// The claim of threads that wait for nothing but the time.
unsafe fn always(_: *const (), _: Uthread) -> bool {
    true
}

/// Suspends the thread for at least `duration`. Outside of a runtime's threads, the operating system does.
pub fn sleep(duration: Duration) {
    let Some(suspending) = Suspending::begin() else {
        return std::thread::sleep(duration);
    };
    let due_ns = suspending.due_in(duration);
    // SAFETY: takes no data.
    unsafe { suspending.wait_until(due_ns, always, ptr::null()) };
}
