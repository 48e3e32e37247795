//! Service-time distributions and their moments in closed form.

use std::ops::RangeInclusive;
use std::sync::Arc;

use crate::empirical::Empirical;
use crate::error::Problem;

/// The distribution of the time that a request of one class occupies a worker. All parameters are
/// durations in nanoseconds; samples are rounded to whole nanoseconds and never below 1.
#[derive(Debug, Clone, PartialEq)]
pub enum ServiceDistribution {
    /// Constant.
    Constant {
        /// The service time.
        mean_ns: u64,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean_ns: u64,
    },
    /// Lognormal: the logarithm is normal with variance σ² = ln(1 + cv²).
    Lognormal {
        /// The mean of the service time itself, not of its logarithm.
        mean_ns: u64,
        /// Coefficient of variation: standard deviation ÷ mean, from 0.001 to 1000.
        cv: f64,
    },
    /// Uniform between two bounds.
    Uniform {
        /// The smallest value.
        min_ns: u64,
        /// The largest value.
        max_ns: u64,
    },
    /// Bounded Pareto: density ∝ x^(−alpha−1) between two bounds.
    Pareto {
        /// The smallest value.
        min_ns: u64,
        /// The largest value.
        max_ns: u64,
        /// The tail's exponent, from 0.001 to 100; the smaller, the heavier.
        alpha: f64,
    },
    /// Drawn from measured samples.
    Empirical(Arc<Empirical>),
}

/// Service times stay below 2⁵³ ns (104 days), where every whole nanosecond is an `f64`.
const LONGEST_NS: u64 = 1 << 53;

impl ServiceDistribution {
    /// The names of the distributions in workload files.
    pub const NAMES: [&'static str; 6] = [
        "constant",
        "exponential",
        "lognormal",
        "uniform",
        "pareto",
        "empirical",
    ];

    /// The name of the distribution in workload files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Constant { .. } => "constant",
            Self::Exponential { .. } => "exponential",
            Self::Lognormal { .. } => "lognormal",
            Self::Uniform { .. } => "uniform",
            Self::Pareto { .. } => "pareto",
            Self::Empirical(_) => "empirical",
        }
    }

    /// The mean in nanoseconds, in closed form.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        match self {
            Self::Constant { mean_ns }
            | Self::Exponential { mean_ns }
            | Self::Lognormal { mean_ns, .. } => *mean_ns as f64,
            Self::Uniform { min_ns, max_ns } => (*min_ns as f64 + *max_ns as f64) / 2.0,
            Self::Pareto {
                min_ns,
                max_ns,
                alpha,
            } => pareto_moment(*min_ns, *max_ns, *alpha, 1.0),
            Self::Empirical(empirical) => empirical.moment(1),
        }
    }

    /// The second moment E\[S²\] in ns², for queueing formulas such as Pollaczek–Khinchine's.
    #[must_use]
    pub fn second_moment_ns2(&self) -> f64 {
        let mean_ns = self.mean_ns();
        match self {
            Self::Constant { .. } => mean_ns * mean_ns,
            Self::Exponential { .. } => 2.0 * mean_ns * mean_ns,
            Self::Lognormal { cv, .. } => (1.0 + cv * cv) * mean_ns * mean_ns,
            Self::Uniform { min_ns, max_ns } => {
                let width = max_ns.saturating_sub(*min_ns) as f64;
                mean_ns * mean_ns + width * width / 12.0
            }
            Self::Pareto {
                min_ns,
                max_ns,
                alpha,
            } => pareto_moment(*min_ns, *max_ns, *alpha, 2.0),
            Self::Empirical(empirical) => empirical.moment(2),
        }
    }

    /// The squared coefficient of variation: variance ÷ mean².
    #[must_use]
    pub fn scv(&self) -> f64 {
        let mean_ns = self.mean_ns();
        (self.second_moment_ns2() / (mean_ns * mean_ns) - 1.0).max(0.0)
    }

    /// The coefficient of variation: standard deviation ÷ mean.
    #[must_use]
    pub fn cv(&self) -> f64 {
        libm::sqrt(self.scv())
    }

    /// Checks that the parameters are in range.
    ///
    /// # Errors
    /// The key of the first parameter out of range, and the problem.
    pub fn check(&self) -> Result<(), (&'static str, Problem)> {
        match self {
            Self::Constant { mean_ns } | Self::Exponential { mean_ns } => {
                check_ns("mean", *mean_ns)
            }
            Self::Lognormal { mean_ns, cv } => {
                check_ns("mean", *mean_ns)?;
                check_number("cv", *cv, 0.001..=1000.0, "from 0.001 to 1000")
            }
            Self::Uniform { min_ns, max_ns } => check_bounds(*min_ns, *max_ns),
            Self::Pareto {
                min_ns,
                max_ns,
                alpha,
            } => {
                check_bounds(*min_ns, *max_ns)?;
                check_number("alpha", *alpha, 0.001..=100.0, "from 0.001 to 100")
            }
            Self::Empirical(empirical) => check_points(empirical.points()),
        }
    }
}

/// E\[Xᵏ\] of the bounded Pareto on \[L, H\]: with r = L/H it is
/// Lᵏ · α ∫₁^{1/r} x^{k−α−1} dx ÷ (1 − r^α).
fn pareto_moment(min_ns: u64, max_ns: u64, alpha: f64, power: f64) -> f64 {
    let log_ratio = libm::log(min_ns as f64 / max_ns as f64);
    let integral = one_minus_power(alpha - power, log_ratio);
    libm::pow(min_ns as f64, power) * alpha * integral / (alpha * one_minus_power(alpha, log_ratio))
}

/// (1 − r^b) ÷ b for r = exp(log_ratio), continuous through b = 0 where it is −ln r.
fn one_minus_power(b: f64, log_ratio: f64) -> f64 {
    let exponent = b * log_ratio;
    if exponent == 0.0 {
        -log_ratio
    } else {
        libm::expm1(exponent) / exponent * -log_ratio
    }
}

fn check_ns(key: &'static str, ns: u64) -> Result<(), (&'static str, Problem)> {
    if (1..LONGEST_NS).contains(&ns) {
        return Ok(());
    }
    let given = crate::duration::format(ns);
    Err((
        key,
        Problem::Range {
            required: "at least 1ns and below 104 days",
            given,
        },
    ))
}

fn check_bounds(min_ns: u64, max_ns: u64) -> Result<(), (&'static str, Problem)> {
    check_ns("min", min_ns)?;
    check_ns("max", max_ns)?;
    if min_ns < max_ns {
        return Ok(());
    }
    let given = crate::duration::format(max_ns);
    Err((
        "max",
        Problem::Range {
            required: "above `min`",
            given,
        },
    ))
}

pub(crate) fn check_number(
    key: &'static str,
    value: f64,
    range: RangeInclusive<f64>,
    required: &'static str,
) -> Result<(), (&'static str, Problem)> {
    if range.contains(&value) {
        return Ok(());
    }
    Err((
        key,
        Problem::Range {
            required,
            given: value.to_string(),
        },
    ))
}

fn check_points(points: &[(u64, f64)]) -> Result<(), (&'static str, Problem)> {
    if points.is_empty() || points.len() > u32::MAX as usize {
        let required = "a list of 1 to 2³² − 1 service times";
        return Err((
            "samples",
            Problem::Range {
                required,
                given: points.len().to_string(),
            },
        ));
    }
    for (service_ns, weight) in points {
        check_ns("samples", *service_ns)?;
        check_number(
            "weights",
            *weight,
            f64::MIN_POSITIVE..=1e15,
            "above 0 and at most 1e15",
        )?;
    }
    Ok(())
}
