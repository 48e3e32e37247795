//! A batch that one core's worker takes from another's run queue.

use std::sync::atomic::{AtomicU64, Ordering};

use headway_machine::Clock;
use headway_runtime::run_queue::{Stolen, run_queue};

use crate::common::{median, on_two_cores};

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
pub(crate) fn steal(clock: &Clock, batch: usize) -> f64 {
    const TRIPS: u64 = 2_000;
    let (mut owner, thief) = run_queue(256, true);
    let (ready, done) = (Signal::default(), Signal::default());
    let rob = || {
        let (mut own, _others) = run_queue(256, true);
        let mut times_ns = Vec::with_capacity(TRIPS as usize);
        for trip in 1..=TRIPS {
            ready.wait_for(trip);
            let start = clock.ticks();
            let waiting = thief.len();
            let stolen = thief.steal(waiting, &mut own);
            let end = clock.ticks();
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
