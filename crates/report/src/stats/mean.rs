//! Student-t intervals: for a mean, a difference of means, and a ratio of paired rounds.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::interval::{
    ConfidenceInterval, StatsError, check_probability, check_samples, mean_of, variance_of,
};

/// The `probability` quantile of Student's t with `freedom` degrees of freedom.
///
/// # Panics
///
/// If `freedom` is not positive or `probability` lies outside 0 to 1.
pub fn t_quantile(probability: f64, freedom: f64) -> f64 {
    let distribution = StudentsT::new(0.0, 1.0, freedom)
        .unwrap_or_else(|error| panic!("{freedom} degrees of freedom: {error}"));
    distribution.inverse_cdf(probability)
}

/// Half the width of a two-sided t interval around an estimate with this standard error.
fn t_half_width(standard_error: f64, freedom: f64, confidence: f64) -> f64 {
    // Equal samples have no spread to multiply, and no degrees of freedom by Welch's formula.
    if standard_error == 0.0 {
        return 0.0;
    }
    standard_error * t_quantile(0.5 + confidence / 2.0, freedom)
}

fn around(estimate: f64, half_width: f64, confidence: f64) -> ConfidenceInterval {
    ConfidenceInterval {
        estimate,
        lo: estimate - half_width,
        hi: estimate + half_width,
        confidence,
    }
}

/// The Student-t interval for the mean of independent replications.
///
/// mean ± t(n − 1) · s/√n (Law, eq. 4.12). The samples must be independent: for successive values of
/// one run use [`batch_means`](super::batch_means).
///
/// # Errors
///
/// Fewer than two samples, one that is not finite, or a confidence outside 0 to 1.
///
/// # Examples
///
/// ```
/// use headway_report::stats::mean_interval;
///
/// let rps = [5.02e6, 5.08e6, 5.05e6, 5.11e6];
/// let interval = mean_interval(&rps, 0.95).unwrap();
/// assert!(interval.contains(5.065e6) && !interval.contains(5.2e6));
/// ```
pub fn mean_interval(samples: &[f64], confidence: f64) -> Result<ConfidenceInterval, StatsError> {
    check_probability("a confidence", confidence)?;
    check_samples("a mean's interval", samples, 2)?;
    let standard_error = (variance_of(samples) / samples.len() as f64).sqrt();
    let half_width = t_half_width(standard_error, (samples.len() - 1) as f64, confidence);
    Ok(around(mean_of(samples), half_width, confidence))
}

/// The interval for mean(`left`) − mean(`right`) of independent samples whose variances may differ
/// (Welch's t with Satterthwaite's degrees of freedom; Law, eq. 10.2).
///
/// The two are told apart when the interval excludes 0
/// ([`ConfidenceInterval::distinguishable_from`]).
///
/// # Errors
///
/// As [`mean_interval`], for either side.
pub fn difference_interval(
    left: &[f64],
    right: &[f64],
    confidence: f64,
) -> Result<ConfidenceInterval, StatsError> {
    check_probability("a confidence", confidence)?;
    check_samples("a difference's interval", left, 2)?;
    check_samples("a difference's interval", right, 2)?;
    let part = |samples: &[f64]| variance_of(samples) / samples.len() as f64;
    let (a, b) = (part(left), part(right));
    let weight = |part: f64, samples: &[f64]| part * part / (samples.len() - 1) as f64;
    let freedom = (a + b).powi(2) / (weight(a, left) + weight(b, right));
    let half_width = t_half_width((a + b).sqrt(), freedom, confidence);
    Ok(around(
        mean_of(left) - mean_of(right),
        half_width,
        confidence,
    ))
}

/// The interval for the ratio left/right of paired rounds: the geometric mean of the rounds'
/// ratios, with Student's t on their logarithms.
///
/// Pairing cancels what the two sides of a round share, such as a noisy neighbour; logarithms make
/// "twice" and "half" equally far from 1. They differ when the interval excludes 1.
///
/// # Errors
///
/// Fewer than two pairs, a value that is not finite and positive, or a confidence outside 0 to 1.
pub fn ratio_interval(
    pairs: &[(f64, f64)],
    confidence: f64,
) -> Result<ConfidenceInterval, StatsError> {
    for (index, &(left, right)) in pairs.iter().enumerate() {
        if let Some(value) = [left, right]
            .into_iter()
            .find(|value: &f64| !(value.is_finite() && *value > 0.0))
        {
            let (what, domain) = ("a ratio's interval", "finite and positive");
            return Err(StatsError::BadSample {
                what,
                index,
                value,
                domain,
            });
        }
    }
    let logs: Vec<f64> = pairs
        .iter()
        .map(|(left, right)| (left / right).ln())
        .collect();
    let ConfidenceInterval {
        estimate,
        lo,
        hi,
        confidence,
    } = mean_interval(&logs, confidence)?;
    Ok(ConfidenceInterval {
        estimate: estimate.exp(),
        lo: lo.exp(),
        hi: hi.exp(),
        confidence,
    })
}
