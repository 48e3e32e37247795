//! The measured length of a kernel tick, in which the program counts time, since the kernel does not report it.

use aya::programs::{ProgramError, TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfError, EbpfLoader};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Ticks a second with which kernels are built.
const RATES: [u32; 4] = [100, 250, 300, 1000];
/// The time over which ticks are counted. It separates rates, which differ by at least a fifth.
const MEASURED: Duration = Duration::from_millis(60);

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

/// Measures from one change of the tick to another.
fn measure(clock: &mut Xdp) -> Result<u32, ProgramError> {
    let (first, begin) = next_tick(clock)?;
    std::thread::sleep(MEASURED);
    let (last, end) = next_tick(clock)?;
    Ok(nearest(last.wrapping_sub(first), end - begin))
}

/// Waits for the tick to change; returns the new one and the time of the change.
fn next_tick(clock: &mut Xdp) -> Result<(u32, Instant), ProgramError> {
    let packet = [0; 64];
    let read = || {
        let run = clock.test_run(TestRunOptions {
            data_in: Some(&packet),
            ..TestRunOptions::default()
        });
        run.map(|run| run.return_value)
    };
    let before = read()?;
    loop {
        let now = read()?;
        if now != before {
            return Ok((now, Instant::now()));
        }
    }
}

/// The standard rate that fits this many ticks in this time.
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

    #[test]
    fn a_rate_is_known_although_a_measurement_is_off() {
        for rate in RATES {
            let ticks = rate * 60 / 1000;
            for off_us in [-2000, 0, 2000] {
                let elapsed = Duration::from_secs_f64(f64::from(ticks) / f64::from(rate));
                let elapsed = elapsed.as_micros() as i64 + off_us;
                let elapsed = Duration::from_micros(elapsed as u64);
                assert_eq!(nearest(ticks, elapsed), rate, "{elapsed:?}");
            }
        }
    }

    #[test]
    fn times_are_rounded_up_to_ticks() {
        assert_eq!(in_ticks(Duration::ZERO, 250), 0);
        assert_eq!(in_ticks(Duration::from_nanos(1), 250), 1);
        assert_eq!(in_ticks(Duration::from_secs(5), 250), 1250);
        assert_eq!(in_ticks(Duration::MAX, 1000), u32::MAX);
    }
}
