//! The slices of a request that runs: how long they are, and whether one that is over is renewed.
#![expect(
    unsafe_code,
    reason = "a probe calls what renews a slice by its address"
)]

use headway_fiber::Attached;
use headway_machine::Clock;

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
pub(crate) struct Renewal<'r, F> {
    pub(crate) renew: &'r mut F,
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

impl<F: FnMut(u64, bool) -> Option<u64>> Renewal<'_, F> {
    /// A slice was over at `ticks`, by another thread's wish if `asked`. When it was, if the request does not go on.
    #[inline(always)]
    pub(crate) fn refuses(&mut self, ticks: u64, asked: bool) -> Option<ClockReading> {
        let now = ClockReading {
            ticks,
            ns: self.clock.to_ns(ticks),
        };
        let now = now.max(self.start);
        let Some(slice_ns) = (self.renew)(now.ns, asked) else {
            return Some(now);
        };
        self.due_ns = now.ns.saturating_add(slice_ns);
        let ticks = self.slice.ticks_of(self.clock, slice_ns);
        self.attached.move_deadline(now.ticks.saturating_add(ticks));
        None
    }
}

/// Renews slices on the stack of the request that this thread runs.
///
/// # Safety
/// `renewal` lives until another function is set, and nobody uses it while a fiber of this thread runs.
#[inline(always)]
pub(crate) unsafe fn renewal_on<F>(attached: &Attached, renewal: *mut Renewal<'_, F>)
where
    F: FnMut(u64, bool) -> Option<u64>,
{
    // SAFETY: the function wants a renewal of this type; it takes as little stack as `renew` (see `Fibers::renewing_in_place`).
    unsafe { attached.set_renewal(Some(renew_in_place::<F>), renewal.cast()) };
}

/// # Safety
/// `renewal` is a `Renewal` of this `F` that nobody else uses now.
unsafe extern "C" fn renew_in_place<F>(renewal: *mut (), tsc: u64) -> bool
where
    F: FnMut(u64, bool) -> Option<u64>,
{
    // SAFETY: the caller's promise.
    let renewal = unsafe { &mut *renewal.cast::<Renewal<'_, F>>() };
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
        attached.set_deadline(now.ticks.saturating_add(ticks));
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
