//! The interruption of computing threads: probes read the clock, and once per slice they call [`is_renewed`]. An arbiter's signal may stop or suspend them.
#![expect(
    unsafe_code,
    reason = "a probe calls a function by its address; a promise of the threads' author"
)]

use std::cell::Cell;
use std::ptr;

use headway_fiber::{Attached, Mechanism};
use headway_kthread::AtSignal;
use headway_policy::host::TurnLooks;
use headway_sync::atomic::Ordering;

use crate::kernel::KthreadRunner;

/// The slices of the threads that a kthread runs.
pub(crate) struct UthreadSlices<'a> {
    kthread: &'a KthreadRunner,
    attached: &'a Attached,
    looks: Cell<TurnLooks>,
    /// Whether the time-stamp counter is the clock. If not, probes do not read it, and threads are not interrupted.
    timed: bool,
}

impl<'a> UthreadSlices<'a> {
    /// Must be called by the kthread's own thread.
    pub(crate) fn new(kthread: &'a KthreadRunner, attached: &'a Attached) -> UthreadSlices<'a> {
        UthreadSlices {
            kthread,
            attached,
            looks: Cell::default(),
            timed: kthread.shared().clock.is_cheap() && Mechanism::Tsc.check().is_ok(),
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

    /// Starts a slice for a thread that begins or resumes. Threads to which it switches share the slice.
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

/// Called at the end of a slice: whether the thread continues.
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

/// An arbiter's signal stops a kthread in the middle of a thread, which goes on there with the kthread's next core. In a no-preempt section it does not: the
/// section's end gives the core back, and the thread goes to the run queue; after a section of a [`NoPreemptAlloc`](headway_fiber::NoPreemptAlloc) the thread's
/// next probe does. Between two threads the kthread reads its orders by itself.
///
/// Pass it to `headway-host` in `ClientOptions`.
pub const STOP_AT_SIGNAL: AtSignal = AtSignal::stops_where(headway_fiber::may_stop_here);

/// As [`STOP_AT_SIGNAL`]. But the thread goes to the run queue after any of its instructions, and any kthread may continue it.
///
/// # Safety
/// [`Migration`](crate::Migration) holds for every instruction of the threads outside of [`NoPreempt`](headway_fiber::NoPreempt) sections. Code with state of
/// its kernel thread (`std`'s locks, thread-local variables and output, a panic, `errno`) runs inside such sections. The global allocator is a
/// [`NoPreemptAlloc`](headway_fiber::NoPreemptAlloc), since functions of this crate allocate too. Code that computes on memory of its own needs no section, and
/// neither do calls of this crate.
pub const unsafe fn suspend_at_signal() -> AtSignal {
    // SAFETY: the caller's promise is the function's condition; beyond it the function may be called in any handler.
    unsafe {
        AtSignal::suspends(
            headway_fiber::may_suspend_here,
            headway_fiber::suspend_interrupted,
        )
    }
}
