//! The cost of a batch that one core's worker takes from another's run queue.
//!
//! The bound is two transfers of a cache line, measured in the same round, and 20 ns a request.
#![expect(unsafe_code, reason = "an instruction that waits for all before it")]

mod common;

use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};

use headway_machine::Clock;
use headway_sync::run_queue::{Stolen, run_queue};

use common::{bounce, median, on_two_cores};

const ROUNDS: usize = 31;
const BATCHES: [usize; 3] = [1, 8, 32];

/// Beside the cache lines, ns for each request of a batch.
const REQUEST_NS: f64 = 20.0;

fn main() {
    let clock = Clock::global();
    let mut lines = Vec::new();
    let mut series: [(Vec<f64>, Vec<f64>); BATCHES.len()] = Default::default();
    for _ in 0..ROUNDS {
        for (batch, (times, ratios)) in BATCHES.into_iter().zip(&mut series) {
            // The cores are near each other in one second and far in the next.
            let before_ns = bounce(&clock);
            let time_ns = steal(&clock, batch);
            let two_lines_ns = f64::midpoint(before_ns, bounce(&clock));
            lines.push(two_lines_ns);
            times.push(time_ns);
            ratios.push(time_ns / (two_lines_ns + batch as f64 * REQUEST_NS));
        }
    }
    println!(
        "run queue, medians of {ROUNDS} interleaved rounds; a cache line there and back {:.1} ns",
        median(&mut lines)
    );
    for (batch, (times, ratios)) in BATCHES.into_iter().zip(&mut series) {
        let (time_ns, ratio) = (median(times), median(ratios));
        println!("  a batch of {batch:<2} stolen {time_ns:7.1} ns  {ratio:5.2} × its bound");
    }
}

/// A word that one thread writes and another waits for, on lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Signal(AtomicU64);

impl Signal {
    fn wait_for(&self, value: u64) {
        while self.0.load(Ordering::Acquire) != value {
            std::hint::spin_loop();
        }
    }
}

/// From the look at another's queue, as a policy looks, to the batch in the own queue, ns: the middle of many. The owner has just written the words.
fn steal(clock: &Clock, batch: usize) -> f64 {
    const TRIPS: u64 = 2_000;
    let (mut owner, thief) = run_queue(256, true);
    let (ready, done) = (Signal::default(), Signal::default());
    let rob = || {
        let (mut own, _others) = run_queue(256, true);
        let mut times_ns = Vec::with_capacity(TRIPS as usize);
        for trip in 1..=TRIPS {
            ready.wait_for(trip);
            let start = ordered_ticks(clock);
            let waiting = thief.len();
            let stolen = thief.steal(waiting, &mut own);
            let end = ordered_ticks(clock);
            assert_eq!(stolen, Stolen::Batch(batch));
            times_ns.push(clock.ns_in(end - start) as f64);
            while own.pop().is_some() {}
            done.0.store(trip, Ordering::Release);
        }
        median(&mut times_ns)
    };
    let own = || {
        for trip in 1..=TRIPS {
            for word in 0..batch as u64 {
                owner.push(word).expect("there is room");
            }
            ready.0.store(trip, Ordering::Release);
            done.wait_for(trip);
            assert!(owner.is_empty());
        }
    };
    on_two_cores(rob, own)
}

/// A reading of the clock once everything before it is done: without the fence the processor reads it while cache lines are still on their way.
fn ordered_ticks(clock: &Clock) -> u64 {
    // SAFETY: a fence changes nothing.
    unsafe { asm!("lfence", options(nostack, preserves_flags)) };
    clock.ticks()
}
