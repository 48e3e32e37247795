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
    if pairs.len() < ADJUSTED_ROUNDS_MIN || spread == 0.0 {
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
