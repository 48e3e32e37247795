//! What handing over a request cannot do without.

use std::sync::atomic::{AtomicU64, Ordering};

use headway_machine::Clock;

use crate::common::on_two_cores;

/// Two readings of the clock, in ns: what measuring a service time costs.
pub(crate) fn two_readings(clock: &Clock) -> f64 {
    const READINGS: u64 = 200_000;
    let start_ns = clock.now_ns();
    for _ in 0..READINGS {
        std::hint::black_box(clock.now_ns());
    }
    2.0 * (clock.now_ns() - start_ns) as f64 / READINGS as f64
}

/// The least that handing a request over by reference can take, in ns: a word to another core, there the line that it names is read and
/// written between two readings of the clock, and a word back. No policy, no loop that looks for anything else.
pub(crate) fn by_reference(clock: &Clock) -> f64 {
    const TRIPS: u64 = 100_000;
    const BUFFERS: u64 = 64;
    #[repr(align(128))]
    struct Line([AtomicU64; 2]);
    let line = || Line([AtomicU64::new(0), AtomicU64::new(0)]);
    let (there, back) = (line(), line());
    let buffers: Vec<Line> = (0..BUFFERS).map(|_| line()).collect();
    let wait_for = |line: &Line, value| {
        while line.0[0].load(Ordering::Acquire) != value {
            std::hint::spin_loop();
        }
    };
    let buffer = |trip: u64| &buffers[(trip % BUFFERS) as usize].0;
    let ask = || {
        buffer(1)[0].store(1, Ordering::Relaxed);
        let start_ns = clock.now_ns();
        for trip in 1..=TRIPS {
            there.0[0].store(trip, Ordering::Release);
            // The next request is written while this one is away.
            buffer(trip + 1)[0].store(trip + 1, Ordering::Relaxed);
            wait_for(&back, trip);
        }
        (clock.now_ns() - start_ns) as f64 / TRIPS as f64
    };
    let answer = || {
        for trip in 1..=TRIPS {
            wait_for(&there, trip);
            let start_ns = clock.now_ns();
            let request = buffer(trip)[0].load(Ordering::Relaxed);
            assert_eq!(request, trip);
            buffer(trip)[1].store(clock.now_ns() - start_ns, Ordering::Relaxed);
            back.0[0].store(trip, Ordering::Release);
        }
    };
    on_two_cores(ask, answer)
}
