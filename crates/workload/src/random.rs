//! Independent random streams from one seed, and the variates that need no table.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

/// 2⁻⁵³, the spacing of the uniform variates.
const UNIT: f64 = 1.0 / (1_u64 << 53) as f64;

/// One random stream: PCG XSL 128/64 (MCG), O'Neill, "PCG: A Family of Simple Fast
/// Space-Efficient Statistically Good Algorithms", 2014.
#[derive(Debug, Clone)]
pub(crate) struct Stream(Pcg64Mcg);

impl Stream {
    /// Uniform over all 64-bit words.
    #[inline]
    pub(crate) fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform on (0, 1]: safe under a logarithm.
    #[inline]
    pub(crate) fn uniform(&mut self) -> f64 {
        unit_interval(self.word())
    }

    /// Standard normal, by Marsaglia's polar method. The second variate of each pair is dropped:
    /// keeping it would make one class's draw depend on another's.
    pub(crate) fn normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * self.uniform() - 1.0;
            let y = 2.0 * self.uniform() - 1.0;
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * libm::sqrt(-2.0 * libm::log(square) / square);
            }
        }
    }

    /// Gamma with the given shape and scale 1: Marsaglia & Tsang, "A Simple Method for Generating
    /// Gamma Variables", ACM TOMS 26(3), 2000; section 6 for shapes below 1.
    pub(crate) fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let boost = power(self.uniform(), 1.0 / shape);
            return boost * self.gamma(shape + 1.0);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / libm::sqrt(9.0 * d);
        loop {
            let x = self.normal();
            let v = 1.0 + c * x;
            let v = v * v * v;
            if v > 0.0 && libm::log(self.uniform()) < 0.5 * x * x + d - d * v + d * libm::log(v) {
                return d * v;
            }
        }
    }
}

/// `base` to the power of `exponent`, `base` from 0 to 1: several times faster than `pow`, whose
/// last bits no random variate needs.
#[inline]
pub(crate) fn power(base: f64, exponent: f64) -> f64 {
    libm::exp(exponent * libm::log(base))
}

/// The top 53 bits of `word` as a number in (0, 1].
#[inline]
pub(crate) fn unit_interval(word: u64) -> f64 {
    ((word >> 11) + 1) as f64 * UNIT
}

/// A seed expands into as many independent streams as are asked for: each gets its own 128-bit
/// state from SplitMix64 (Steele, Lea & Flood, OOPSLA 2014), whose outputs never repeat.
#[derive(Debug)]
pub(crate) struct Seeder(u64);

impl Seeder {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn stream(&mut self) -> Stream {
        let high = u128::from(self.split_mix());
        let low = u128::from(self.split_mix());
        Stream(Pcg64Mcg::new(high << 64 | low))
    }

    fn split_mix(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_matches_its_reference() {
        // The first outputs of Vigna's splitmix64.c for the seed 1234567.
        let mut seeder = Seeder::new(1_234_567);
        let outputs = [(); 3].map(|()| seeder.split_mix());
        assert_eq!(
            outputs,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn uniform_excludes_zero_and_includes_one() {
        assert_eq!(unit_interval(0), UNIT);
        assert_eq!(unit_interval(u64::MAX), 1.0);
    }
}
