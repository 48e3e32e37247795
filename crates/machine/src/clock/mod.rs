//! Nanoseconds from the time-stamp counter.
//!
//! A `clock_gettime` costs ~25 ns here and a TSC read ~11 ns, and a scheduler reads the time several
//! times per request. The TSC is trusted only when the CPU says that it is invariant (constant rate,
//! never stops) or the kernel finds it [fit to keep its own time by](crate::doctor::has_steady_tsc); otherwise every reading is a `clock_gettime`, with the same arithmetic and epoch.

mod counter;

use std::sync::OnceLock;

use counter::Counter;

/// Fractional bits of the nanoseconds-per-tick factor: an error of 2⁻⁴⁰ ns per tick, far below the
/// calibration's, and `ticks × factor` still fits 128 bits after centuries.
const SHIFT: u32 = 40;

/// How long the counter is compared with the kernel's clock. The kernel's reading is known to within
/// the tightest bracket (~30 ns), so 16 ms give a rate good to a few parts per million.
const CALIBRATION_NS: u64 = 16_000_000;

/// Bracketed readings at each end of the calibration; the tightest one is used.
const SAMPLES: usize = 64;

/// A calibrated clock: reads nanoseconds on the scale of `CLOCK_MONOTONIC_RAW`.
///
/// It is a plain value: copy it into each thread so that a reading touches no shared line.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    counter: Counter,
    base_ticks: u64,
    base_ns: u64,
    /// Nanoseconds per tick, scaled by 2^[`SHIFT`].
    ns_per_tick: u64,
    error_ppm: f64,
}

impl Clock {
    /// The process's clock, calibrated by the first caller (16 ms); all copies agree.
    pub fn global() -> Clock {
        static GLOBAL: OnceLock<Clock> = OnceLock::new();
        *GLOBAL.get_or_init(Clock::calibrate)
    }

    /// Measures the counter's rate anew. Takes 16 ms where the TSC is usable, else nothing.
    ///
    /// Two clocks calibrated apart disagree by up to their [`error_ppm`](Clock::error_ppm): compare
    /// only readings of one clock, which is what [`Clock::global`] is for.
    pub fn calibrate() -> Clock {
        match Counter::best() {
            Counter::Kernel => Clock::kernel(),
            tsc => Clock::calibrate_tsc(tsc),
        }
    }

    /// The clock that asks the kernel at each reading: the fallback, and a reference for checks.
    pub fn kernel() -> Clock {
        Clock::in_ns(Counter::Kernel)
    }

    /// A clock that reads nanoseconds from a function, such as virtual time. [`is_cheap`](Self::is_cheap) takes it for cheap.
    pub fn given(read_ns: fn() -> u64) -> Clock {
        Clock::in_ns(Counter::Given(read_ns))
    }

    /// One tick is one nanosecond.
    fn in_ns(counter: Counter) -> Clock {
        Clock {
            counter,
            base_ticks: 0,
            base_ns: 0,
            ns_per_tick: 1 << SHIFT,
            error_ppm: 0.0,
        }
    }

    fn calibrate_tsc(tsc: Counter) -> Clock {
        let first = tightest_bracket(tsc);
        while Counter::Kernel.ticks() < first.kernel_ns + CALIBRATION_NS {
            std::hint::spin_loop();
        }
        let last = tightest_bracket(tsc);
        let elapsed_ns = last.kernel_ns - first.kernel_ns;
        let elapsed_ticks = last.ticks - first.ticks;
        let ns_per_tick = (u128::from(elapsed_ns) << SHIFT) / u128::from(elapsed_ticks);
        // Each end is off by at most half its bracket.
        let uncertain_ticks = (first.width_ticks + last.width_ticks) as f64 / 2.0;
        Clock {
            counter: tsc,
            base_ticks: first.ticks,
            base_ns: first.kernel_ns,
            ns_per_tick: ns_per_tick as u64,
            error_ppm: 1e6 * uncertain_ticks / elapsed_ticks as f64,
        }
    }

    /// The time now, in nanoseconds since an arbitrary start, never going back within a thread.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.to_ns(self.ticks())
    }

    /// The raw counter, for code that only compares (a probe against its deadline).
    #[inline]
    pub fn ticks(&self) -> u64 {
        self.counter.ticks()
    }

    /// The function that reads the [raw counter](Self::ticks); `None` where it is the time-stamp counter, which an instruction reads.
    pub fn reader(&self) -> Option<fn() -> u64> {
        self.counter.reader()
    }

    /// The time at which the counter read `ticks`. Readings from before the calibration count as its
    /// start.
    #[inline]
    pub fn to_ns(&self, ticks: u64) -> u64 {
        let elapsed_ticks = ticks.saturating_sub(self.base_ticks);
        self.base_ns + ((u128::from(elapsed_ticks) * u128::from(self.ns_per_tick)) >> SHIFT) as u64
    }

    /// How many ticks pass in `duration_ns`, rounded down.
    pub fn ticks_in(&self, duration_ns: u64) -> u64 {
        ((u128::from(duration_ns) << SHIFT) / u128::from(self.ns_per_tick)) as u64
    }

    /// The duration of a number of ticks, ns, rounded down.
    #[inline]
    pub fn ns_in(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.ns_per_tick)) >> SHIFT) as u64
    }

    /// Whether a reading is cheap: it does not come from the kernel.
    pub fn is_cheap(&self) -> bool {
        !matches!(self.counter, Counter::Kernel)
    }

    /// The counter's rate in ticks per second.
    pub fn ticks_per_s(&self) -> f64 {
        1e9 * (1u64 << SHIFT) as f64 / self.ns_per_tick as f64
    }

    /// Bound on the rate's error, in parts per million (microseconds of drift per second).
    pub fn error_ppm(&self) -> f64 {
        self.error_ppm
    }
}

/// A kernel reading between two counter readings: it happened at `ticks` ± `width_ticks / 2`.
struct Bracket {
    ticks: u64,
    width_ticks: u64,
    kernel_ns: u64,
}

/// An interrupt can only widen a bracket, so the narrowest of several is the one to believe.
fn tightest_bracket(tsc: Counter) -> Bracket {
    (0..SAMPLES)
        .map(|_| bracket(tsc))
        .min_by_key(|bracket| bracket.width_ticks)
        .expect("SAMPLES is not zero")
}

fn bracket(tsc: Counter) -> Bracket {
    let before = tsc.ticks_ordered();
    let kernel_ns = Counter::Kernel.ticks();
    let width_ticks = tsc.ticks_ordered().saturating_sub(before);
    Bracket {
        ticks: before + width_ticks / 2,
        width_ticks,
        kernel_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_never_go_back_within_a_thread() {
        let clock = Clock::global();
        let mut last_ns = clock.now_ns();
        for _ in 0..200_000 {
            let now_ns = clock.now_ns();
            assert!(now_ns >= last_ns);
            last_ns = now_ns;
        }
    }

    #[test]
    fn a_reading_lies_between_two_of_the_kernels() {
        let (clock, kernel) = (Clock::calibrate(), Clock::kernel());
        let slack_ns = 1_000_000; // the calibration's error over the milliseconds of this test
        let before_ns = kernel.now_ns();
        let now_ns = clock.now_ns();
        let after_ns = kernel.now_ns();
        assert!(
            now_ns + slack_ns >= before_ns,
            "{now_ns} is long before {before_ns}"
        );
        assert!(
            now_ns <= after_ns + slack_ns,
            "{now_ns} is long after {after_ns}"
        );
    }

    #[test]
    fn ticks_and_nanoseconds_convert_both_ways() {
        for clock in [Clock::global(), Clock::kernel()] {
            let start = clock.ticks();
            for duration_ns in [1_000, 1_000_000, 3_600_000_000_000] {
                let elapsed_ns =
                    clock.to_ns(start + clock.ticks_in(duration_ns)) - clock.to_ns(start);
                assert!(
                    elapsed_ns.abs_diff(duration_ns) <= 2,
                    "{elapsed_ns} for {duration_ns}"
                );
            }
        }
    }

    #[test]
    fn a_reading_older_than_the_calibration_is_its_start() {
        let clock = Clock::global();
        assert_eq!(clock.to_ns(0), clock.base_ns);
    }

    #[test]
    fn the_calibration_knows_its_own_error() {
        let clock = Clock::calibrate();
        assert!(clock.error_ppm() >= 0.0 && clock.error_ppm().is_finite());
        assert!(clock.ticks_per_s() > 0.0);
    }
}
