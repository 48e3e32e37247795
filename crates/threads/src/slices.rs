//! How a kthread interrupts a thread that computes: probes read the clock, and once in a slice they call [`is_renewed`].
#![expect(unsafe_code, reason = "a probe calls a function by its address")]

use std::cell::Cell;
use std::ptr;

use headway_fiber::{Attached, Mechanism};
use headway_policy::host::TurnLooks;

use crate::kernel::KthreadRunner;
use crate::sync::Ordering;

/// The slices of the threads that a kthread runs.
pub(crate) struct UthreadSlices<'a> {
    kthread: &'a KthreadRunner,
    attached: &'a Attached,
    looks: Cell<TurnLooks>,
    /// Whether the time-stamp counter is the clock. If not, probes do not read it, and threads are not interrupted.
    timed: bool,
}

impl<'a> UthreadSlices<'a> {
    /// Of the calling thread, which is the kthread.
    pub(crate) fn new(kthread: &'a KthreadRunner, attached: &'a Attached) -> UthreadSlices<'a> {
        UthreadSlices {
            kthread,
            attached,
            looks: Cell::default(),
            timed: kthread.shared().clock.is_tsc() && Mechanism::Tsc.check().is_ok(),
        }
    }

    /// Has probes call [`is_renewed`] from now on.
    pub(crate) fn watch(&self) {
        self.attached.self_timed(self.timed);
        // SAFETY: dropping `self` unsets it. The function reads and writes a few words.
        unsafe {
            self.attached
                .set_renewal(Some(is_renewed), (&raw const *self).cast_mut().cast());
        }
    }

    /// A thread begins to run, or goes on. Threads to which it switches share its slice.
    #[inline]
    pub(crate) fn begin(&self) {
        if self.timed {
            let shared = self.kthread.shared();
            let now = shared.clock.ticks();
            self.attached
                .set_deadline(now.saturating_add(shared.slice_ticks));
        }
    }
}

impl Drop for UthreadSlices<'_> {
    fn drop(&mut self) {
        // SAFETY: no function.
        unsafe { self.attached.set_renewal(None, ptr::null_mut()) };
    }
}

/// A slice is over: whether the thread goes on.
///
/// # Safety
/// `slices` points to the [`UthreadSlices`] of the calling kthread.
unsafe extern "C" fn is_renewed(slices: *mut (), tsc: u64) -> bool {
    // SAFETY: the caller's promise.
    let slices = unsafe { &*slices.cast::<UthreadSlices<'_>>() };
    let kthread = slices.kthread;
    let passes = kthread.passes.load(Ordering::Relaxed);
    let mut looks = slices.looks.get();
    let is_over = looks.is_over(passes, kthread.keeps_waiting(), kthread.must_leave());
    slices.looks.set(looks);
    if slices.timed && !is_over {
        let slice_ticks = kthread.shared().slice_ticks;
        slices
            .attached
            .move_deadline(tsc.saturating_add(slice_ticks));
    }
    !is_over
}

/// For the handler of an arbiter's signal that tells a kthread to leave its core: whether the kthread may stop right where it is. In a no-preempt
/// section of a thread it may not: the section's end gives the core back then, and the thread goes to the run queue. Between two threads the kthread
/// looks at its orders by itself.
///
/// It is safe in a signal handler, in any thread. `ClientOptions` of `headway-host` have a place for it.
pub fn may_stop() -> bool {
    headway_fiber::may_stop_here()
}
