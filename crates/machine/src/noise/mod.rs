//! How much time the machine takes away from a thread that never sleeps.
//!
//! A tail latency measured on a noisy machine is the machine's, not the scheduler's. A spinning thread that
//! looks at the clock each turn sees every interruption (tick, steal, another task) as a gap between two
//! readings; `/proc/stat`'s steal shows only some of them.

mod gaps;
mod schedstat;
mod witness;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use gaps::GapLog;
pub use schedstat::SchedStat;
pub use witness::{Stop, Witness};

use crate::Clock;
use crate::thread::{PinError, pin_current};

/// The share of time lost beyond which tail latencies should not be believed. A pinned spin on an idle
/// virtual machine loses about 1 %, most of it to the tick.
pub const QUIET_LOST_FRACTION: f64 = 0.015;

/// How much was taken away from a spinning thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// Time lost in gaps, as a share of the time observed, 0 to 1.
    pub lost_fraction: f64,
    /// The time observed, in nanoseconds.
    pub observed_ns: u64,
    /// Gaps of more than 10 µs (including the longer ones).
    pub gaps_over_10us: u64,
    /// Gaps of more than 100 µs (including the longer ones).
    pub gaps_over_100us: u64,
    /// Gaps of more than 1 ms.
    pub gaps_over_1ms: u64,
    /// The longest gap, in nanoseconds.
    pub longest_gap_ns: u64,
    /// Time the thread was ready but another ran, in nanoseconds; none where the kernel does not account it.
    pub run_delay_ns: Option<u64>,
}

impl Noise {
    /// Whether tail latencies measured meanwhile may be believed: less than [`QUIET_LOST_FRACTION`] lost.
    pub fn quiet_enough(&self) -> bool {
        self.lost_fraction <= QUIET_LOST_FRACTION
    }

    /// Two observations as one: counts add up, the share is that of the whole, the longest gap the longer.
    pub fn merge(&self, other: &Noise) -> Noise {
        let observed_ns = self.observed_ns + other.observed_ns;
        let lost_ns = self.lost_ns() + other.lost_ns();
        Noise {
            lost_fraction: if observed_ns == 0 {
                0.0
            } else {
                lost_ns / observed_ns as f64
            },
            observed_ns,
            gaps_over_10us: self.gaps_over_10us + other.gaps_over_10us,
            gaps_over_100us: self.gaps_over_100us + other.gaps_over_100us,
            gaps_over_1ms: self.gaps_over_1ms + other.gaps_over_1ms,
            longest_gap_ns: self.longest_gap_ns.max(other.longest_gap_ns),
            run_delay_ns: self
                .run_delay_ns
                .zip(other.run_delay_ns)
                .map(|(a, b)| a + b),
        }
    }

    fn lost_ns(&self) -> f64 {
        self.lost_fraction * self.observed_ns as f64
    }
}

/// Spins for `duration` on a thread of its own, pinned to `core` if one is given, and reports what was taken
/// away from it.
///
/// # Errors
///
/// [`PinError`] when the thread cannot be pinned.
///
/// # Panics
///
/// If the system cannot start a thread.
pub fn measure(duration: Duration, core: Option<usize>) -> Result<Noise, PinError> {
    let spinner = std::thread::Builder::new()
        .name("headway-noise".to_owned())
        .spawn(move || {
            core.map_or(Ok(()), pin_current)?;
            Ok(spin(duration))
        })
        .expect("the system refuses another thread");
    spinner.join().expect("spinning does not panic")
}

fn spin(duration: Duration) -> Noise {
    let clock = Clock::global();
    let before = SchedStat::of_current_thread().ok();
    let mut gaps = GapLog::default();
    let end_ns = clock.now_ns().saturating_add(duration.as_nanos() as u64);
    loop {
        let now_ns = clock.now_ns();
        gaps.observe(now_ns);
        if now_ns >= end_ns {
            break;
        }
        std::hint::spin_loop();
    }
    let after = SchedStat::of_current_thread().ok();
    let run_delay_ns = before
        .zip(after)
        .map(|(a, b)| b.run_delay_ns.saturating_sub(a.run_delay_ns));
    Noise {
        run_delay_ns,
        ..gaps.noise()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measuring_observes_at_least_the_time_asked_for() {
        let noise = measure(Duration::from_millis(20), None).unwrap();
        assert!(noise.observed_ns >= 19_000_000, "{noise:?}");
        assert!((0.0..=1.0).contains(&noise.lost_fraction), "{noise:?}");
        assert!(noise.gaps_over_1ms <= noise.gaps_over_100us);
        assert!(noise.gaps_over_100us <= noise.gaps_over_10us);
    }

    #[test]
    fn measuring_on_an_absent_core_says_so() {
        let error = measure(Duration::from_millis(1), Some(1_000_000)).unwrap_err();
        assert_eq!(error, PinError::NoSuchCore { core: 1_000_000 });
    }

    #[test]
    fn merging_weighs_by_time() {
        let short = Noise {
            lost_fraction: 0.5,
            observed_ns: 100,
            longest_gap_ns: 7,
            ..Noise::default()
        };
        let long = Noise {
            lost_fraction: 0.1,
            observed_ns: 300,
            gaps_over_10us: 2,
            ..Noise::default()
        };
        let both = short.merge(&long);
        assert!((both.lost_fraction - 0.2).abs() < 1e-12);
        assert_eq!(
            (both.observed_ns, both.gaps_over_10us, both.longest_gap_ns),
            (400, 2, 7)
        );
        assert_eq!(both.run_delay_ns, None);
    }

    #[test]
    fn the_verdict_is_at_one_and_a_half_percent() {
        assert!(
            Noise {
                lost_fraction: 0.014,
                ..Noise::default()
            }
            .quiet_enough()
        );
        assert!(
            !Noise {
                lost_fraction: 0.016,
                ..Noise::default()
            }
            .quiet_enough()
        );
    }

    #[test]
    fn the_json_has_the_fields_of_the_reports() {
        let json = serde_json::to_value(Noise::default()).unwrap();
        assert_eq!(json["lost_fraction"], 0.0);
        assert_eq!(json["gaps_over_10us"], 0);
    }
}
