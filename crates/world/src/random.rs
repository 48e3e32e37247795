//! Numbers drawn from a seed.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Draws the same numbers for the same seed, on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Random(Pcg64Mcg);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }

    /// A generator of its own, whose draws leave those of this one as they are.
    pub(crate) fn fork(&self) -> Self {
        Self::new(self.clone().0.next_u64())
    }

    /// A number below `bound`; 0 where that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Whether something happens that does so once in `times`; never where that is 0.
    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        times > 0 && self.below(times) == 0
    }

    /// One of these.
    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Exponentially distributed, with this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> u64 {
        let unit = (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        (-mean * libm::log(1.0 - unit)) as u64
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end as u64 + 1) as usize);
        }
    }
}
