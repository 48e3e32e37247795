//! A crate that the test leaves without probes: the slow path itself.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

extern "C" {
    /// Asks this thread for a yield every 100 µs of its own time until stopped (watch.c).
    fn test_watch_start();
    /// How often it was asked, and how often a probe saw it.
    fn test_watch_stop(due: *mut u64, fired: *mut u64);
}

static SINK: AtomicU64 = AtomicU64::new(0);

/// Runs `work` for 25 ms; returns how often it was asked to yield, and how often it did.
pub fn watch(work: fn(u64) -> u64, units: u64) -> (u64, u64) {
    let (mut due, mut fired) = (0, 0);
    let start = Instant::now();
    unsafe { test_watch_start() };
    while start.elapsed() < Duration::from_millis(25) {
        SINK.fetch_add(work(units), Relaxed);
    }
    unsafe { test_watch_stop(&mut due, &mut fired) };
    (due, fired)
}
