//! The slices of a request that runs: how long they are, and whether one that is over is renewed.
#![expect(
    unsafe_code,
    reason = "a probe calls what renews a slice by its address"
)]

use headway_fiber::Attached;
use headway_machine::Clock;
use headway_policy::Job;

/// What says for how long a request runs.
pub(crate) trait SliceLimits {
    /// The slice is over, by another thread's wish where it is `asked`. `Some`: the request goes on for so much longer, ns, above 0.
    fn renew(&mut self, now_ns: u64, asked: bool) -> Option<u64>;

    /// The request said that it is long, and goes on: for so much longer, ns, above 0; `None`: as before.
    fn said_long(&mut self, now_ns: u64, job: &Job) -> Option<u64>;
}

/// A slice's length in both units.
#[derive(Clone, Copy, Default)]
pub(crate) struct SliceLength {
    ns: u64,
    ticks: u64,
}

/// One reading of the clock: slices are counted in ticks, all else in ns.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClockReading {
    pub(crate) ticks: u64,
    pub(crate) ns: u64,
}

/// Renews the slices of one request while a worker runs it.
pub(crate) struct Renewal<'r, L> {
    pub(crate) limits: &'r mut L,
    /// When the request began or went on.
    pub(crate) start: ClockReading,
    pub(crate) slice: SliceLength,
    /// When its present slice ends, ns.
    pub(crate) due_ns: u64,
    pub(crate) clock: Clock,
    pub(crate) attached: &'r Attached,
    /// When it was told on its own stack that it does not go on.
    pub(crate) refused_at: Option<ClockReading>,
}

impl<L: SliceLimits> Renewal<'_, L> {
    /// A slice was over at `ticks`, by another thread's wish if `asked`. When it was, if the request does not go on.
    #[inline(always)]
    pub(crate) fn refuses(&mut self, ticks: u64, asked: bool) -> Option<ClockReading> {
        let now = ClockReading {
            ticks,
            ns: self.clock.to_ns(ticks),
        };
        let now = now.max(self.start);
        if !asked && self.attached.slice_goes_on(now.ticks) {
            return None;
        }
        let Some(slice_ns) = self.limits.renew(now.ns, asked) else {
            return Some(now);
        };
        self.end_after(now, slice_ns);
        None
    }

    /// The request says that it is long, and goes on.
    #[cold]
    pub(crate) fn said_long(&mut self, job: &Job) {
        let ticks = self.clock.ticks();
        let now = ClockReading {
            ticks,
            ns: self.clock.to_ns(ticks),
        };
        let now = now.max(self.start);
        if let Some(slice_ns) = self.limits.said_long(now.ns, job) {
            self.end_after(now, slice_ns);
        }
    }

    /// The present slice ends so much after `now`.
    #[inline(always)]
    pub(crate) fn end_after(&mut self, now: ClockReading, slice_ns: u64) {
        self.due_ns = now.ns.saturating_add(slice_ns);
        let ticks = self.slice.ticks_of(self.clock, slice_ns);
        self.attached.extend_slice(now.ticks, ticks);
    }
}

/// Renews slices on the stack of the request that this thread runs.
///
/// # Safety
/// `renewal` lives until another function is set, and nobody uses it while a fiber of this thread runs.
#[inline(always)]
pub(crate) unsafe fn renewal_on<L: SliceLimits>(attached: &Attached, renewal: *mut Renewal<'_, L>) {
    // SAFETY: the function wants a renewal of this type; it takes as little stack as `renew` (see `Fibers::renewing_in_place`).
    unsafe { attached.set_renewal(Some(renew_in_place::<L>), renewal.cast()) };
}

/// # Safety
/// `renewal` is a `Renewal` of this `L` that nobody else uses now.
unsafe extern "C" fn renew_in_place<L: SliceLimits>(renewal: *mut (), tsc: u64) -> bool {
    // SAFETY: the caller's promise.
    let renewal = unsafe { &mut *renewal.cast::<Renewal<'_, L>>() };
    renewal.refused_at = renewal.refuses(tsc, false);
    renewal.refused_at.is_none()
}

impl SliceLength {
    /// Begins a slice of this length now.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        clock: Clock,
        attached: &Attached,
        now: ClockReading,
        slice_ns: u64,
    ) {
        let ticks = self.ticks_of(clock, slice_ns);
        attached.begin_slice(now.ticks, ticks);
    }

    /// The ticks of a slice, which has this length from now on.
    #[inline]
    fn ticks_of(&mut self, clock: Clock, slice_ns: u64) -> u64 {
        // Slices are mostly alike, and a conversion is a division.
        if self.ns != slice_ns {
            *self = Self {
                ns: slice_ns,
                ticks: clock.ticks_in(slice_ns),
            };
        }
        self.ticks
    }
}
