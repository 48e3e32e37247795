//! How late an interruption comes: a request runs to its next probe, not to the nanosecond.

use crate::Rng;
use alloc::vec::Vec;

/// A distribution of delays, by its quantiles.
#[derive(Clone, Debug, Default)]
pub struct Lateness {
    /// Equally likely delays, ascending, ns; none is precise.
    quantiles_ns: Vec<u64>,
}

impl Lateness {
    /// Never late.
    pub const PRECISE: Self = Self {
        quantiles_ns: Vec::new(),
    };

    /// |N(0, σ)|: Concord's model of cooperation (§ 3.1, Figure 5), never early.
    #[must_use]
    pub fn one_sided_normal(sigma_ns: u64) -> Self {
        const STRATA: u32 = 4096;
        if sigma_ns == 0 {
            return Self::PRECISE;
        }
        Self {
            quantiles_ns: (0..STRATA)
                .map(|stratum| {
                    let middle = (f64::from(stratum) + 0.5) / f64::from(STRATA);
                    (half_normal_quantile(middle) * sigma_ns as f64) as u64
                })
                .collect(),
        }
    }

    /// As measured: equally spaced quantiles from the least to the greatest delay, ns; between
    /// two of them delays are uniform.
    #[must_use]
    pub fn measured(quantiles_ns: &[u64]) -> Self {
        const STEPS: u64 = 256;
        Self {
            quantiles_ns: quantiles_ns
                .windows(2)
                .flat_map(|pair: &[u64]| {
                    let (from, width) = (pair[0], pair[1].saturating_sub(pair[0]));
                    (0..STEPS).map(move |step| from + width * (2 * step + 1) / (2 * STEPS))
                })
                .collect(),
        }
    }

    /// One delay, ns.
    #[inline]
    #[must_use]
    pub fn draw_ns(&self, rng: &mut Rng) -> u64 {
        match self.quantiles_ns.len() {
            0 => 0,
            count => self.quantiles_ns[rng.below(count)],
        }
    }
}

/// x with P(|Z| ≤ x) = `p` for a standard normal Z.
fn half_normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (0.0, 5.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if half_normal(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// P(|Z| ≤ x) = erf(x/√2) by its Taylor series, √(2/π) Σ (−1)ⁿ x²ⁿ⁺¹ / (2ⁿ n! (2n+1)): sums and
/// products only, hence the same bits everywhere. For x ≤ 5 within 10⁻⁹.
fn half_normal(x: f64) -> f64 {
    const SQRT_TWO_OVER_PI: f64 = 0.797_884_560_802_865_4;
    let (mut term, mut sum) = (x, x);
    for n in 1..100 {
        let n = f64::from(n);
        term *= -x * x / (2.0 * n);
        let next = sum + term / (2.0 * n + 1.0);
        if next == sum {
            break;
        }
        sum = next;
    }
    SQRT_TWO_OVER_PI * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_normal_is_that_of_the_tables() {
        for (x, p) in [
            (0.5, 0.382_924_92),
            (1.0, 0.682_689_49),
            (2.0, 0.954_499_74),
            (3.0, 0.997_300_2),
        ] {
            assert!((half_normal(x) - p).abs() < 1e-8, "{x}");
            assert!((half_normal_quantile(p) - x).abs() < 1e-6, "{p}");
        }
    }

    #[test]
    fn draws_have_the_moments_of_a_half_normal() {
        let (lateness, mut rng) = (Lateness::one_sided_normal(1_000), Rng::new(1));
        let draws = 200_000;
        let mean = (0..draws)
            .map(|_| lateness.draw_ns(&mut rng) as f64)
            .sum::<f64>()
            / f64::from(draws);
        // E|Z| = √(2/π); the standard error of the mean is σ·0.6/√n = 1.3 ns.
        assert!((mean - 797.9).abs() < 6.0, "{mean}");
    }

    #[test]
    fn a_measured_distribution_stays_between_its_ends() {
        let (lateness, mut rng) = (Lateness::measured(&[0, 100, 2_000]), Rng::new(1));
        let draws = 10_000;
        let below = (0..draws)
            .filter(|_| {
                let ns = lateness.draw_ns(&mut rng);
                assert!(ns <= 2_000);
                ns <= 100
            })
            .count();
        assert!((4_800..5_200).contains(&below), "{below} below the median");
    }

    #[test]
    fn precise_is_never_late() {
        assert_eq!(Lateness::PRECISE.draw_ns(&mut Rng::new(1)), 0);
        assert_eq!(Lateness::one_sided_normal(0).draw_ns(&mut Rng::new(1)), 0);
    }
}
