//! The measured length of a kernel tick, in which the program counts time, since the kernel does not report it.

use aya::programs::{ProgramError, TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfError, EbpfLoader};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Ticks a second with which kernels are built.
const RATES: [u32; 4] = [100, 250, 300, 1000];
/// How often the tick is read. Rates differ by at least a fifth, so that three readings tell them apart where nobody takes the core.
const BETWEEN: Duration = Duration::from_millis(25);
/// After so many readings the nearest rate is taken.
const READINGS_MAX: u32 = 200;

/// Why counting ticks failed.
pub(crate) enum TickError {
    Load(EbpfError),
    Missing(&'static str),
    Program(ProgramError),
}

/// Ticks a second, measured with the object's program `clock` once per process.
pub(crate) fn ticks_a_second(object: &[u8]) -> Result<u32, TickError> {
    static RATE: OnceLock<u32> = OnceLock::new();
    if let Some(&rate) = RATE.get() {
        return Ok(rate);
    }
    let mut loaded = EbpfLoader::new().load(object).map_err(TickError::Load)?;
    let clock = clock(&mut loaded).ok_or(TickError::Missing("program `clock`"))?;
    let rate = clock
        .load()
        .and_then(|()| measure(clock))
        .map_err(TickError::Program)?;
    Ok(*RATE.get_or_init(|| rate))
}

fn clock(loaded: &mut Ebpf) -> Option<&mut Xdp> {
    loaded.program_mut("clock")?.try_into().ok()
}

/// A reading of the tick, at some moment of a time.
#[derive(Clone, Copy)]
struct TickReading {
    tick: u32,
    from: Instant,
    to: Instant,
}

impl TickReading {
    /// Whether ticks come at this rate, by this reading and an earlier one. The thread may have lost its core within either.
    fn fits(self, first: TickReading, rate: u32) -> bool {
        let ticks = f64::from(self.tick.wrapping_sub(first.tick));
        let least = self.from.saturating_duration_since(first.to).as_secs_f64();
        let most = self.to.saturating_duration_since(first.from).as_secs_f64();
        // Either reading may stand just before a tick or just after one.
        f64::from(rate) * most > ticks - 1.0 && f64::from(rate) * least < ticks + 1.0
    }
}

/// Reads the tick until one rate alone fits what was read.
fn measure(clock: &mut Xdp) -> Result<u32, ProgramError> {
    let first = read(clock)?;
    let mut last = first;
    for _ in 0..READINGS_MAX {
        std::thread::sleep(BETWEEN);
        last = read(clock)?;
        let mut fitting = RATES.into_iter().filter(|&rate| last.fits(first, rate));
        if let (Some(rate), None) = (fitting.next(), fitting.next()) {
            return Ok(rate);
        }
    }
    Ok(nearest(
        last.tick.wrapping_sub(first.tick),
        last.to - first.from,
    ))
}

fn read(clock: &mut Xdp) -> Result<TickReading, ProgramError> {
    let from = Instant::now();
    let run = clock.test_run(TestRunOptions {
        data_in: Some(&[0; 64]),
        ..TestRunOptions::default()
    })?;
    Ok(TickReading {
        tick: run.return_value,
        from,
        to: Instant::now(),
    })
}

/// The standard rate that is nearest to so many ticks in this time.
fn nearest(ticks: u32, elapsed: Duration) -> u32 {
    let measured = f64::from(ticks) / elapsed.as_secs_f64();
    let off = |rate: &u32| (f64::from(*rate) / measured).ln().abs();
    let best = RATES.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)));
    best.unwrap_or(RATES[0])
}

/// A time in ticks, rounded up.
pub(crate) fn in_ticks(time: Duration, rate: u32) -> u32 {
    let ticks = (time.as_nanos() * u128::from(rate)).div_ceil(1_000_000_000);
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading at `at_ms` of a kernel with this rate, in which the thread had no core for `before_ms` before it looked, and `after_ms` afterwards.
    fn reading(rate: u32, zero: Instant, [at_ms, before_ms, after_ms]: [u64; 3]) -> TickReading {
        let at = |ms: u64| zero + Duration::from_millis(ms);
        TickReading {
            tick: (u64::from(rate) * (at_ms + before_ms) / 1_000) as u32,
            from: at(at_ms),
            to: at(at_ms + before_ms + after_ms),
        }
    }

    /// The rates that fit two readings which are so far apart.
    fn fitting(rate: u32, stops: [[u64; 2]; 2], apart_ms: u64) -> Vec<u32> {
        let zero = Instant::now();
        let [[before, after], [last_before, last_after]] = stops;
        let first = reading(rate, zero, [3, before, after]);
        let last_ms = 3 + before + after + apart_ms;
        let last = reading(rate, zero, [last_ms, last_before, last_after]);
        let fitting = RATES.into_iter().filter(|&rate| last.fits(first, rate));
        fitting.collect()
    }

    #[test]
    fn the_right_rate_always_fits_wherever_the_thread_lost_its_core() {
        for rate in RATES {
            for stop_ms in [0, 10, 40] {
                let stop = [0, stop_ms];
                for stops in [
                    [[0; 2]; 2],
                    [stop, [0; 2]],
                    [[0; 2], stop],
                    [[stop_ms, 0]; 2],
                ] {
                    for apart_ms in [25, 50, 75, 200] {
                        let fitting = fitting(rate, stops, apart_ms);
                        assert!(fitting.contains(&rate), "{rate}: {stops:?}, {apart_ms} ms");
                    }
                    // It took 300 for 250 where the first reading was late by ten milliseconds.
                    assert_eq!(fitting(rate, stops, 1_000), [rate], "{stops:?}");
                }
            }
        }
    }

    #[test]
    fn undisturbed_three_readings_are_enough() {
        for rate in RATES {
            assert_eq!(fitting(rate, [[0; 2]; 2], 75), [rate]);
        }
    }

    #[test]
    fn the_nearest_rate_is_a_kernels() {
        let elapsed = Duration::from_secs(1);
        let of = [90, 240, 310, 1_100].map(|ticks| nearest(ticks, elapsed));
        assert_eq!(of, RATES);
    }

    #[test]
    fn times_are_rounded_up_to_ticks() {
        assert_eq!(in_ticks(Duration::ZERO, 250), 0);
        assert_eq!(in_ticks(Duration::from_nanos(1), 250), 1);
        assert_eq!(in_ticks(Duration::from_secs(5), 250), 1250);
        assert_eq!(in_ticks(Duration::MAX, 1000), u32::MAX);
    }
}
