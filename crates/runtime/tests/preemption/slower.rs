//! Runs that are repeated, each slower than the last, until one interrupts.

use std::time::Instant;

use headway_net::replay::{Replay, ReplayControl};

use super::common::{FOREVER, replay};
use super::{GAP_NS, LONG_NS, REQUESTS};

/// The slowest run: an arrival every 10 ms, where each thread of a busy machine has had a turn.
const STRETCH_MAX: u64 = 256;

/// Runs something until it interrupts, with longs and the gaps between arrivals so many times as long. Where the machine gives a dispatcher and its workers no
/// time together, all requests have arrived before the first long begins, unless arrivals are slower than the threads take turns.
pub(crate) fn until_interrupted(policy: &str, run: impl Fn(u64) -> u64) {
    let begun = Instant::now();
    let mut stretch = 1;
    while run(stretch) == 0 {
        assert!(begun.elapsed() < FOREVER, "{policy} interrupted nobody");
        stretch = STRETCH_MAX.min(2 * stretch);
    }
}

/// A replay with longs and gaps so many times as long.
pub(crate) fn slower_replay(stretch: u64) -> (Replay, ReplayControl) {
    replay(1, REQUESTS, GAP_NS * stretch, [500, LONG_NS * stretch])
}
