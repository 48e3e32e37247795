//! The shared parts of the benches.
#![allow(dead_code, reason = "each bench uses its own part")]

pub(crate) mod backlog;

use std::sync::atomic::{AtomicU64, Ordering};

use headway_machine::Clock;
use headway_machine::Topology;
use headway_machine::thread::pin_current;

/// The middle one.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs `body` on its own thread on the first core in pinning order, beside `other` on the second. (Pinning the
/// caller would pin every thread it starts from then on.)
pub(crate) fn on_two_cores<T: Send>(
    body: impl FnOnce() -> T + Send,
    other: impl FnOnce() + Send,
) -> T {
    let cores = Topology::read("/sys").map_or_else(|_| Vec::new(), |cores| cores.pinning_order());
    let sit = |nth: usize| {
        if let Some(core) = cores.get(nth) {
            let _ = pin_current(*core);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            sit(1);
            other();
        });
        let first = scope.spawn(move || {
            sit(0);
            body()
        });
        first.join().expect("a bench does not panic")
    })
}

/// Sends one cache line to another core and back; the time for both, in ns.
pub(crate) fn bounce(clock: &Clock) -> f64 {
    const TRIPS: u64 = 20_000;
    #[repr(align(128))]
    struct Line(AtomicU64);
    let line = Line(AtomicU64::new(0));
    let wait_for = |value| {
        while line.0.load(Ordering::Acquire) != value {
            std::hint::spin_loop();
        }
    };
    let there = || {
        let start_ns = clock.now_ns();
        for trip in 0..TRIPS {
            line.0.store(2 * trip + 1, Ordering::Release);
            wait_for(2 * trip + 2);
        }
        (clock.now_ns() - start_ns) as f64 / TRIPS as f64
    };
    on_two_cores(there, || {
        for trip in 0..TRIPS {
            wait_for(2 * trip + 1);
            line.0.store(2 * trip + 2, Ordering::Release);
        }
    })
}
