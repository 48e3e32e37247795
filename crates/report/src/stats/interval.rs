//! Confidence intervals, and the checks whether samples support one.

use serde::{Deserialize, Serialize};

/// An estimate with the interval that holds the true value with probability `confidence`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceInterval {
    /// The point estimate.
    pub estimate: f64,
    /// Lower end.
    pub lo: f64,
    /// Upper end.
    pub hi: f64,
    /// Coverage probability, in 0 to 1.
    pub confidence: f64,
}

impl ConfidenceInterval {
    /// Whether `value` lies within, ends included.
    pub fn contains(&self, value: f64) -> bool {
        (self.lo..=self.hi).contains(&value)
    }

    /// Whether the two intervals share a value.
    ///
    /// Estimates whose intervals do not overlap differ. Where the intervals overlap,
    /// [`difference_interval`](super::difference_interval) decides.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.lo <= other.hi && other.lo <= self.hi
    }

    /// Whether the interval excludes `reference`: 0 for a difference, 1 for a ratio.
    pub fn distinguishable_from(&self, reference: f64) -> bool {
        !self.contains(reference)
    }

    /// The interval of a quantity that cannot be below `least`: Student's t knows no bounds.
    #[must_use]
    pub fn at_least(self, least: f64) -> Self {
        Self {
            lo: self.lo.max(least),
            hi: self.hi.max(least),
            ..self
        }
    }

    /// Half the interval's width.
    pub fn half_width(&self) -> f64 {
        (self.hi - self.lo) / 2.0
    }
}

/// Why no interval can be given.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum StatsError {
    /// Too few samples.
    #[error("{what} needs at least {needed} samples, got {got}; run more of them")]
    TooFewSamples {
        /// The statistic asked for.
        what: &'static str,
        /// The fewest that support it.
        needed: usize,
        /// The number of samples given.
        got: usize,
    },
    /// A sample that is infinite, not a number, or outside the statistic's domain.
    #[error("{what}: sample {index} is {value}, which is not {domain}")]
    BadSample {
        /// The statistic asked for.
        what: &'static str,
        /// Index of the sample.
        index: usize,
        /// Its value.
        value: f64,
        /// The condition that it violates.
        domain: &'static str,
    },
    /// A probability outside 0 to 1.
    #[error("{what} of {value} is no probability; write it like 0.95")]
    BadProbability {
        /// Which parameter.
        what: &'static str,
        /// Its value.
        value: f64,
    },
}

headway_words::debug_is_display!(StatsError);

pub(super) fn check_probability(what: &'static str, value: f64) -> Result<(), StatsError> {
    let valid = value > 0.0 && value < 1.0;
    if valid {
        Ok(())
    } else {
        Err(StatsError::BadProbability { what, value })
    }
}

pub(super) fn check_samples(
    what: &'static str,
    samples: &[f64],
    needed: usize,
) -> Result<(), StatsError> {
    if samples.len() < needed {
        return Err(StatsError::TooFewSamples {
            what,
            needed,
            got: samples.len(),
        });
    }
    match samples.iter().position(|sample| !sample.is_finite()) {
        Some(index) => {
            let value = samples[index];
            Err(StatsError::BadSample {
                what,
                index,
                value,
                domain: "a finite number",
            })
        }
        None => Ok(()),
    }
}

/// Sample mean; samples must not be empty.
pub(super) fn mean_of(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

/// Unbiased sample variance; there must be at least two samples.
pub(super) fn variance_of(samples: &[f64]) -> f64 {
    let mean = mean_of(samples);
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    squares / (samples.len() - 1) as f64
}
