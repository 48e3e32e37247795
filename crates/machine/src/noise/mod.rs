//! How much time the machine takes away from a thread that never sleeps.
//!
//! A tail latency measured on a noisy machine is the machine's, not the scheduler's. A spinning thread that
//! looks at the clock each turn sees every interruption (tick, steal, another task) as a gap between two
//! readings; `/proc/stat`'s steal shows only some of them.

mod gaps;
mod schedstat;
mod summary;
mod witness;

use std::time::Duration;

pub use gaps::GapLog;
pub use schedstat::SchedStat;
pub use summary::{NoiseSummary, QUIET_LOST_FRACTION};
pub use witness::{Stop, Witness};

use crate::Clock;
use crate::thread::{PinError, pin_current};

/// Spins for `duration` on a thread of its own, pinned to `core` if one is given, and reports the time that the
/// machine took away from it.
///
/// # Errors
///
/// [`PinError`] when the thread cannot be pinned.
///
/// # Panics
///
/// If the system cannot start a thread.
pub fn measure(duration: Duration, core: Option<usize>) -> Result<NoiseSummary, PinError> {
    let spinner = std::thread::Builder::new()
        .name("headway-noise".to_owned())
        .spawn(move || {
            core.map_or(Ok(()), pin_current)?;
            Ok(spin(duration))
        })
        .expect("the system refuses another thread");
    spinner.join().expect("spinning does not panic")
}

fn spin(duration: Duration) -> NoiseSummary {
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
    NoiseSummary {
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
}
