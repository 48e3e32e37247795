//! A ratio of paired rounds, adjusted for a burden that the two sides of a round did not share.

use super::interval::{ConfidenceInterval, StatsError, mean_of};
use super::mean::{ratio_interval, t_quantile};

/// The fewest rounds that are adjusted: fewer leave too few degrees of freedom to estimate the burden's effect as well.
pub const ADJUSTED_ROUNDS_MIN: usize = 5;

/// A round of two sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BurdenedPair {
    /// The left side's value.
    pub left: f64,
    /// The right side's.
    pub right: f64,
    /// The left side's burden less the right side's, such as the fractions of the time that the machine took from each.
    pub extra_burden: f64,
}

/// The interval for the ratio left/right of paired rounds, had both sides of each round borne the same burden: the intercept of the
/// least-squares line through the logarithms of the rounds' ratios over the differences of burdens (analysis of covariance), with
/// Student's t on n − 2 degrees of freedom.
///
/// With fewer than [`ADJUSTED_ROUNDS_MIN`] rounds, or equal differences, it is [`ratio_interval`], which leaves the burden in the spread.
///
/// # Errors
///
/// As [`ratio_interval`], or a burden that is not finite.
pub fn adjusted_ratio_interval(
    pairs: &[BurdenedPair],
    confidence: f64,
) -> Result<ConfidenceInterval, StatsError> {
    let values: Vec<(f64, f64)> = pairs.iter().map(|pair| (pair.left, pair.right)).collect();
    let plain = ratio_interval(&values, confidence)?;
    if let Some(index) = pairs.iter().position(|pair| !pair.extra_burden.is_finite()) {
        return Err(StatsError::BadSample {
            what: "a ratio's burden",
            index,
            value: pairs[index].extra_burden,
            domain: "a finite number",
        });
    }
    let burdens: Vec<f64> = pairs.iter().map(|pair| pair.extra_burden).collect();
    let logs: Vec<f64> = values
        .iter()
        .map(|(left, right)| (left / right).ln())
        .collect();
    let (burden, log) = (mean_of(&burdens), mean_of(&logs));
    let spread: f64 = burdens.iter().map(|it| (it - burden).powi(2)).sum();
    // Equal burdens differ by what rounding leaves of them.
    let are_equal = spread <= 1e-18 * (1.0 + burden * burden);
    if pairs.len() < ADJUSTED_ROUNDS_MIN || are_equal {
        return Ok(plain);
    }
    let both = burdens.iter().zip(&logs);
    let slope = both.map(|(x, y)| (x - burden) * (y - log)).sum::<f64>() / spread;
    let residuals = burdens.iter().zip(&logs);
    let squares: f64 = residuals
        .map(|(x, y)| (y - log - slope * (x - burden)).powi(2))
        .sum();
    let rounds = pairs.len() as f64;
    let freedom = rounds - 2.0;
    let variance = squares / freedom * (1.0 / rounds + burden * burden / spread);
    let half_width = t_quantile(0.5 + confidence / 2.0, freedom) * variance.sqrt();
    let estimate = log - slope * burden;
    Ok(ConfidenceInterval {
        estimate: estimate.exp(),
        lo: (estimate - half_width).exp(),
        hi: (estimate + half_width).exp(),
        confidence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds whose ratio is 2 at equal burdens, and e³ times as much for each unit more on the left side.
    fn rounds(burdens: &[f64]) -> Vec<BurdenedPair> {
        let pair = |&extra_burden: &f64| BurdenedPair {
            left: 2.0 * (3.0 * extra_burden).exp(),
            right: 1.0,
            extra_burden,
        };
        burdens.iter().map(pair).collect()
    }

    #[test]
    fn a_burden_that_explains_the_spread_leaves_none() {
        let uneven = rounds(&[0.3, 0.1, -0.1, 0.4, 0.2]);
        let adjusted = adjusted_ratio_interval(&uneven, 0.95).unwrap();
        assert!((adjusted.estimate - 2.0).abs() < 1e-9, "{adjusted:?}");
        assert!(adjusted.hi - adjusted.lo < 1e-6, "{adjusted:?}");
        let plain: Vec<(f64, f64)> = uneven.iter().map(|it| (it.left, it.right)).collect();
        let plain = ratio_interval(&plain, 0.95).unwrap();
        assert!(
            plain.estimate > 3.0 && plain.hi - plain.lo > 1.0,
            "{plain:?}"
        );
    }

    #[test]
    fn few_rounds_and_equal_burdens_are_not_adjusted() {
        for burdens in [&[0.3, 0.1, -0.1, 0.4][..], &[0.2; 6]] {
            let pairs = rounds(burdens);
            let plain: Vec<(f64, f64)> = pairs.iter().map(|it| (it.left, it.right)).collect();
            let plain = ratio_interval(&plain, 0.95).unwrap();
            assert_eq!(adjusted_ratio_interval(&pairs, 0.95).unwrap(), plain);
        }
        let mut odd = rounds(&[0.1, 0.2]);
        odd[1].extra_burden = f64::NAN;
        assert!(adjusted_ratio_interval(&odd, 0.95).is_err());
    }
}
