//! Work of a certain length that a preemption does not shorten, as a loop that waits for a clock would be.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;

/// Turns of a loop.
#[derive(Clone, Copy)]
pub(crate) struct Compute(u64);

impl Compute {
    /// As many turns as take so long where nobody interrupts.
    pub(crate) fn for_ns(ns: u64) -> Self {
        Self((ns as f64 / turn_ns()) as u64)
    }

    #[inline]
    pub(crate) fn run(self) {
        let mut value = 1_u64;
        for turn in 0..self.0 {
            value = black_box(
                value
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(turn),
            );
        }
        black_box(value);
    }
}

/// How long a turn takes, ns: the least of many tries, most of which nobody interrupts.
fn turn_ns() -> f64 {
    const TRIES: usize = 1_000;
    const TURNS: u64 = 10_000;
    static TURN_NS: OnceLock<f64> = OnceLock::new();
    *TURN_NS.get_or_init(|| {
        let tries = (0..TRIES).map(|_| {
            let from = Instant::now();
            Compute(TURNS).run();
            from.elapsed().as_nanos() as f64
        });
        tries.fold(f64::INFINITY, f64::min) / TURNS as f64
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_time_is_twice_the_turns() {
        let (once, twice) = (Compute::for_ns(100_000).0, Compute::for_ns(200_000).0);
        assert!(once > 0 && twice.abs_diff(2 * once) <= 1);
    }
}
