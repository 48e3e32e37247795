//! From the kernel's receive stamps to the run's clock.

use headway_machine::Clock;
use nix::time::{ClockId, clock_gettime};

/// A pair of readings this far apart was interrupted and is taken again.
const WIDTH_MAX_NS: u64 = 2_000;

/// One instant on both clocks.
///
/// The kernel stamps in `CLOCK_REALTIME`, which is slewed and stepped; the run is timed by the
/// time-stamp counter. Taking the pair anew with each batch, right after it was read, uses the
/// kernel's clock only for the age of its datagrams, over which it cannot drift.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    clock_ns: u64,
    real_ns: u64,
}

impl Moment {
    #[inline]
    pub(crate) fn now(clock: Clock, stamps: Clock) -> Self {
        let mut pair = Self::read(clock, stamps);
        for _ in 0..3 {
            if pair.1 <= WIDTH_MAX_NS {
                break;
            }
            pair = Self::read(clock, stamps);
        }
        pair.0
    }

    fn read(clock: Clock, stamps: Clock) -> (Self, u64) {
        let before_ns = clock.now_ns();
        let real_ns = stamps.now_ns();
        let after_ns = clock.now_ns();
        let width_ns = after_ns - before_ns;
        let clock_ns = before_ns + width_ns / 2;
        (Self { clock_ns, real_ns }, width_ns)
    }

    /// This instant on the run's clock.
    #[inline]
    pub(crate) fn clock_ns(self) -> u64 {
        self.clock_ns
    }

    /// The kernel's stamp on the run's clock. `None` for a stamp of the future or from before
    /// `not_before_ns`: the kernel's clock was stepped in between.
    #[inline]
    pub(crate) fn of_stamp(self, stamp_ns: u64, not_before_ns: u64) -> Option<u64> {
        let age_ns = self.real_ns.checked_sub(stamp_ns)?;
        let time_ns = self.clock_ns.checked_sub(age_ns)?;
        (time_ns >= not_before_ns).then_some(time_ns)
    }
}

/// The kernel's clock of receive stamps.
pub(crate) fn realtime_ns() -> u64 {
    // CLOCK_REALTIME exists everywhere; 0 makes every stamp one of the future, so unused.
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |time| {
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Moment = Moment {
        clock_ns: 1_000,
        real_ns: 50_000,
    };

    #[test]
    fn a_stamp_is_as_old_on_both_clocks() {
        assert_eq!(MOMENT.of_stamp(49_900, 0), Some(900));
        assert_eq!(MOMENT.of_stamp(50_000, 0), Some(1_000));
    }

    #[test]
    fn stamps_of_a_stepped_clock_are_not_believed() {
        assert_eq!(MOMENT.of_stamp(50_001, 0), None, "of the future");
        assert_eq!(MOMENT.of_stamp(49_400, 500), None, "before the run");
        assert_eq!(MOMENT.of_stamp(1, 0), None, "before the clock's start");
    }

    #[test]
    fn a_moment_lies_between_the_readings_around_it() {
        let clock = Clock::global();
        let before_ns = clock.now_ns();
        let moment = Moment::now(clock, Clock::given(realtime_ns));
        assert!((before_ns..=clock.now_ns()).contains(&moment.clock_ns()));
    }
}
