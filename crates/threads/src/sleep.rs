//! Waiting for a time.
#![expect(
    unsafe_code,
    reason = "timers lie on the stacks of the threads that wait"
)]

use std::ptr;
use std::time::Duration;

use headway_fiber::NoPreempt;

use crate::head::Uthread;
use crate::kernel::runtime_of;
use crate::schedule::{Suspending, kthread_of};
use crate::timers::{Alarm, TimerClaim};

impl Suspending {
    /// As [`wait`](Suspending::wait), until `due_ns` of the runtime's clock at most. Then `claim` decides whether the timer makes the thread ready.
    ///
    /// # Safety
    /// `claim` may be called with `data`, in any kthread, until this returns.
    pub(crate) unsafe fn wait_until(self, due_ns: u64, claim: TimerClaim, data: *const ()) {
        let alarm = Alarm::new(due_ns, self.me(), claim, data);
        // SAFETY: the thread that runs, in its section. A kthread outlives the runtime's threads.
        let timers = unsafe { &kthread_of(self.me()).timers };
        timers.add(&alarm);
        self.wait();
        let _section = NoPreempt::enter();
        timers.remove(&alarm);
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
    let due_ns = due_in(suspending.me(), duration);
    // SAFETY: takes no data.
    unsafe { suspending.wait_until(due_ns, always, ptr::null()) };
}

/// The time in `duration` from now, on the clock of the thread's runtime.
pub(crate) fn due_in(thread: Uthread, duration: Duration) -> u64 {
    // SAFETY: a runtime outlives its threads.
    let shared = unsafe { runtime_of(thread) };
    let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    shared.clock.now_ns().saturating_add(ns)
}
