//! The slice of the job that a thread runs. A job whose slice is over goes on, on its own stack and without the pool's lock, while the decision of its policy holds
//! and nothing has happened since.
#![expect(
    unsafe_code,
    reason = "a probe calls what renews a slice by its address"
)]

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use headway_fiber::Attached;
use headway_machine::Clock;

use crate::shared::SharedPool;

/// Of the thread that it was made in.
pub(crate) struct RunningSlice {
    attached: Attached,
    clock: Clock,
    /// How long a slice is, ns and in the clock's ticks.
    slice_ns: Cell<u64>,
    slice_ticks: Cell<u64>,
    /// When the slice under way is over, ns; never where none is.
    over_ns: Cell<u64>,
    /// The policy's last decision holds until then, ns, while no more than so many events are counted.
    holds_until_ns: Cell<u64>,
    events_seen: Cell<u64>,
    events: Arc<AtomicU64>,
    /// Slices renewed here that nobody was told of.
    renewals: Cell<u64>,
    /// A job that meets no probe for so long after its slice is looked at, ns.
    stall_ns: u64,
}

impl RunningSlice {
    pub(crate) fn new(attached: Attached, shared: &SharedPool) -> Self {
        Self {
            attached,
            clock: shared.clock,
            slice_ns: Cell::new(0),
            slice_ticks: Cell::new(0),
            over_ns: Cell::new(u64::MAX),
            holds_until_ns: Cell::new(0),
            events_seen: Cell::new(0),
            events: Arc::clone(&shared.events),
            renewals: Cell::new(0),
            stall_ns: shared.stall_ns,
        }
    }

    /// From now on probes of this thread's fibers renew slices here.
    pub(crate) fn renew_in_place(self: &Rc<Self>) {
        let slice = Rc::as_ptr(self).cast_mut().cast::<()>();
        // SAFETY: the function wants a `RunningSlice`, which stays where it is; it is shared within this thread alone, and all that changes is in cells. Once it is dropped,
        // `Attached` has taken the function back. It takes some words of stack.
        unsafe { self.attached.set_renewal(Some(renews), slice) };
    }

    #[inline]
    pub(crate) fn attached(&self) -> &Attached {
        &self.attached
    }

    #[inline]
    pub(crate) fn begin(&self, slice_ns: u64) {
        let ticks = self.clock.ticks();
        // Slices are mostly alike, and a conversion is a division.
        if self.slice_ns.replace(slice_ns) != slice_ns {
            self.slice_ticks.set(self.clock.ticks_in(slice_ns));
        }
        self.attached.begin_slice(ticks, self.slice_ticks.get());
        let now_ns = self.clock.to_ns(ticks);
        self.over_ns.set(now_ns.saturating_add(slice_ns));
    }

    /// There is no slice any more.
    pub(crate) fn leave(&self) {
        self.over_ns.set(u64::MAX);
    }

    /// For how long the slice has been over, ns. Asked once a slice.
    #[inline]
    pub(crate) fn late_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.over_ns.replace(u64::MAX))
    }

    /// The policy decided, after so many events, that the job goes on until then, ns.
    #[inline]
    pub(crate) fn hold_until(&self, until_ns: u64, events: u64) {
        self.holds_until_ns.set(until_ns);
        self.events_seen.set(events);
    }

    /// Slices renewed here since this was last asked.
    #[inline]
    pub(crate) fn take_renewals(&self) -> u64 {
        self.renewals.take()
    }

    /// The slice was over at `ticks`. Whether the job goes on for another one.
    #[inline]
    fn renews(&self, ticks: u64) -> bool {
        let now_ns = self.clock.to_ns(ticks);
        let holds = now_ns < self.holds_until_ns.get()
            && self.events.load(Ordering::Acquire) == self.events_seen.get();
        let in_time = now_ns.saturating_sub(self.over_ns.get()) <= self.stall_ns;
        if !holds || !in_time {
            return false;
        }
        self.renewals.set(self.renewals.get() + 1);
        self.over_ns.set(now_ns.saturating_add(self.slice_ns.get()));
        self.attached.extend_slice(ticks, self.slice_ticks.get());
        true
    }
}

/// # Safety
/// `slice` is a [`RunningSlice`] of this thread.
unsafe extern "C" fn renews(slice: *mut (), ticks: u64) -> bool {
    // SAFETY: the caller's promise.
    let slice = unsafe { &*slice.cast::<RunningSlice>() };
    slice.renews(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::PoolLayout;
    use crate::virtual_time::{core, shared_parts};

    /// Whether a slice that is over now is renewed while the decision holds for `holds_ns` more, after the events that are counted so far and `more`.
    fn is_renewed(holds_ns: u64, more: u64, late_ns: u64) -> bool {
        let shared = SharedPool::new(core("gittins", PoolLayout::Inline, 1, 8), shared_parts());
        let slice = RunningSlice::new(Attached::new(), &shared);
        slice.begin(1_000);
        let ticks = slice.clock.ticks();
        let now_ns = slice.clock.to_ns(ticks);
        slice.over_ns.set(now_ns - late_ns);
        slice.hold_until(now_ns + holds_ns, shared.events.load(Ordering::Relaxed));
        shared.events.fetch_add(more, Ordering::Relaxed);
        let renewed = slice.renews(ticks);
        assert_eq!(slice.take_renewals(), u64::from(renewed));
        slice.attached.no_slice();
        renewed
    }

    #[test]
    fn a_slice_is_renewed_while_the_decision_holds_nothing_happened_and_the_job_met_its_probe_in_time()
     {
        assert!(is_renewed(1_000_000, 0, 0));
        assert!(!is_renewed(0, 0, 0), "the decision is over");
        assert!(!is_renewed(1_000_000, 1, 0), "something happened");
        assert!(!is_renewed(1_000_000, 0, 1_000_000_000), "it stalled");
    }
}
