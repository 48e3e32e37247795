//! Batch means: an interval for the mean of one long run, whose successive values are correlated.

use super::interval::{ConfidenceInterval, StatsError, check_probability, check_samples, mean_of};
use super::mean::mean_interval;

/// Fewer batches than these leave a t interval too wide to be of use.
const BATCHES_MIN: usize = 8;
/// More batches than these hardly narrow the interval, and shorten each batch.
const BATCHES_MAX: usize = 64;

/// The mean of a run by the method of batch means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchMeans {
    /// The mean and its interval.
    pub interval: ConfidenceInterval,
    /// Batches the run was cut into.
    pub batches: usize,
    /// Samples per batch; the remainder, shorter than a batch, is left out at the start.
    pub batch_len: usize,
    /// Lag-1 autocorrelation of the batch means.
    pub lag1: f64,
    /// Whether `lag1` is small enough to treat the batch means as independent. Otherwise the run is
    /// too short for its correlation, and the interval is too narrow.
    pub independent: bool,
}

/// Batch means over `samples`, successive values of one stationary run.
///
/// The run is cut into 64 batches, then 32, 16 and 8, until the batch means' lag-1 autocorrelation
/// is below its 95 % one-sided bound for independent values, 1.645/√batches (Law, section 9.5.3):
/// longer batches depend less on each other.
///
/// # Errors
///
/// Fewer than 8 samples, one that is not finite, or a confidence outside 0 to 1.
pub fn batch_means(samples: &[f64], confidence: f64) -> Result<BatchMeans, StatsError> {
    check_probability("a confidence", confidence)?;
    check_samples("batch means", samples, BATCHES_MIN)?;
    let mut batches = BATCHES_MAX;
    while batches > samples.len() {
        batches /= 2;
    }
    loop {
        let result = with_batches(samples, batches, confidence)?;
        if result.independent || batches == BATCHES_MIN {
            return Ok(result);
        }
        batches /= 2;
    }
}

fn with_batches(
    samples: &[f64],
    batches: usize,
    confidence: f64,
) -> Result<BatchMeans, StatsError> {
    let batch_len = samples.len() / batches;
    let kept = &samples[samples.len() - batches * batch_len..];
    let means: Vec<f64> = kept.chunks_exact(batch_len).map(mean_of).collect();
    let lag1 = lag1_autocorrelation(&means);
    Ok(BatchMeans {
        interval: mean_interval(&means, confidence)?,
        batches,
        batch_len,
        lag1,
        independent: lag1 < 1.645 / (batches as f64).sqrt(),
    })
}

/// The lag-1 sample autocorrelation, −1 to 1; 0 for fewer than two samples or equal ones.
pub fn lag1_autocorrelation(samples: &[f64]) -> f64 {
    if samples.len() < 2 {
        return 0.0;
    }
    let mean = mean_of(samples);
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    let products: f64 = samples
        .windows(2)
        .map(|pair| (pair[0] - mean) * (pair[1] - mean))
        .sum();
    if squares > 0.0 {
        products / squares
    } else {
        0.0
    }
}
