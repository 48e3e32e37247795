//! Distribution-free intervals for percentiles, from order statistics.

use statrs::distribution::{Binomial, DiscreteCDF};

use super::interval::{ConfidenceInterval, StatsError, check_probability, check_samples};
use crate::histogram::nearest_rank;

const WHAT: &str = "a percentile's interval";

/// The ranks (1-based, lower then upper) between whose order statistics the `quantile` lies with
/// probability of at least `confidence`, among `count` independent samples.
///
/// The number of samples below the true quantile is binomial(count, quantile); each rank leaves at
/// most (1 − confidence)/2 outside (Hahn and Meeker, section 5.2). Use it on a
/// [`Histogram`](crate::Histogram) through `value_at_rank`. Latencies of neighbouring requests are
/// correlated, which widens the true interval: for a verdict, use the percentile of each of several
/// replications and [`mean_interval`](super::mean_interval).
///
/// # Errors
///
/// [`StatsError::TooFewSamples`] when even the extreme samples do not enclose the quantile with
/// that probability, with the count that would do.
pub fn percentile_ranks(
    count: u64,
    quantile: f64,
    confidence: f64,
) -> Result<(u64, u64), StatsError> {
    check_probability("a quantile", quantile)?;
    check_probability("a confidence", confidence)?;
    let tail = (1.0 - confidence) / 2.0;
    let needed = count_needed(quantile, tail);
    if count < needed {
        let (needed, got) = (needed as usize, count as usize);
        return Err(StatsError::TooFewSamples {
            what: WHAT,
            needed,
            got,
        });
    }
    let below = Binomial::new(quantile, count)
        .unwrap_or_else(|error| unreachable!("the quantile was checked: {error}"));
    // Lower: the largest rank r with P(below ≤ r − 1) ≤ tail. Upper: the smallest rank s with
    // P(below ≤ s − 1) ≥ 1 − tail.
    let lower = first(count, |below_count| below.cdf(below_count) > tail);
    let upper = first(count, |below_count| below.cdf(below_count) >= 1.0 - tail) + 1;
    // `count_needed` made sure of both ends; rounding in the cdf must not undo it.
    Ok((lower.max(1), upper.min(count)))
}

/// The fewest samples of which the smallest lies below the quantile, and the largest above it, each
/// but for probability `tail`: (1 − q)ⁿ ≤ tail and qⁿ ≤ tail.
fn count_needed(quantile: f64, tail: f64) -> u64 {
    let rarer = quantile.max(1.0 - quantile);
    (tail.ln() / rarer.ln()).ceil() as u64
}

/// The smallest number in 0 ..= `last` for which `holds`, which stays true once it is.
fn first(last: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, last);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The nearest-rank `quantile` of independent `samples`, with its interval from order statistics.
///
/// # Errors
///
/// Too few samples (see [`percentile_ranks`]), one that is not finite, or a probability outside 0
/// to 1.
pub fn percentile_interval(
    samples: &[f64],
    quantile: f64,
    confidence: f64,
) -> Result<ConfidenceInterval, StatsError> {
    check_samples(WHAT, samples, 1)?;
    let count = samples.len() as u64;
    let (lower, upper) = percentile_ranks(count, quantile, confidence)?;
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |rank: u64| sorted[rank as usize - 1];
    let estimate = at(nearest_rank(count, quantile));
    Ok(ConfidenceInterval {
        estimate,
        lo: at(lower),
        hi: at(upper),
        confidence,
    })
}
