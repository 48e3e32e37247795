//! What the benches have in common.

use std::sync::atomic::{AtomicU64, Ordering};

use headway_machine::Clock;
use headway_machine::Topology;
use headway_machine::thread::pin_current;

/// Rounds of each measurement.
pub(crate) const ROUNDS: usize = 7;

/// The middle one.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Pins the calling thread to the `nth` core in pinning order, if there is one.
pub(crate) fn pinned(nth: usize) {
    let cores = Topology::read("/sys").map(|topology| topology.pinning_order());
    if let Some(core) = cores.ok().and_then(|cores| cores.get(nth).copied()) {
        let _ = pin_current(core);
    }
}

/// Sends one cache line to another core and back; the time for both, in ns.
pub(crate) fn bounce(clock: &Clock) -> f64 {
    const TRIPS: u64 = 100_000;
    #[repr(align(128))]
    struct Line(AtomicU64);
    let line = Line(AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pinned(1);
            for trip in 0..TRIPS {
                while line.0.load(Ordering::Acquire) != 2 * trip + 1 {
                    std::hint::spin_loop();
                }
                line.0.store(2 * trip + 2, Ordering::Release);
            }
        });
        pinned(0);
        let start_ns = clock.now_ns();
        for trip in 0..TRIPS {
            line.0.store(2 * trip + 1, Ordering::Release);
            while line.0.load(Ordering::Acquire) != 2 * trip + 2 {
                std::hint::spin_loop();
            }
        }
        (clock.now_ns() - start_ns) as f64 / TRIPS as f64
    })
}
