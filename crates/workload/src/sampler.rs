//! Service distributions, prepared for drawing.

use std::sync::Arc;

use crate::alias::Alias;
use crate::random::{Stream, power};
use crate::ziggurat::Exponential;
use crate::{Empirical, ServiceDistribution};

/// A [`ServiceDistribution`] with its constants computed once, before the draws.
#[derive(Debug, Clone)]
pub(crate) enum Sampler {
    Constant {
        service_ns: u64,
    },
    Exponential {
        mean_ns: f64,
        unit: Exponential,
    },
    /// exp(`mu` + `sigma`·N(0, 1)).
    Lognormal {
        mu: f64,
        sigma: f64,
    },
    Uniform {
        max_ns: f64,
        width_ns: f64,
    },
    /// The inverse distribution function min·(1 − U·`span`)^`exponent`, where `span` is
    /// 1 − (min/max)^α and `exponent` −1/α.
    Pareto {
        min_ns: f64,
        max_ns: f64,
        span: f64,
        exponent: f64,
    },
    Empirical {
        points: Arc<Empirical>,
        choice: Arc<Alias>,
    },
}

impl Sampler {
    /// Prepares a service distribution that has passed [`ServiceDistribution::check`].
    pub(crate) fn new(service: &ServiceDistribution) -> Self {
        match service {
            ServiceDistribution::Constant { mean_ns } => Self::Constant {
                service_ns: *mean_ns,
            },
            ServiceDistribution::Exponential { mean_ns } => Self::Exponential {
                mean_ns: *mean_ns as f64,
                unit: Exponential::new(),
            },
            ServiceDistribution::Lognormal { mean_ns, cv } => {
                let variance = libm::log1p(cv * cv);
                let mu = libm::log(*mean_ns as f64) - variance / 2.0;
                Self::Lognormal {
                    mu,
                    sigma: libm::sqrt(variance),
                }
            }
            ServiceDistribution::Uniform { min_ns, max_ns } => Self::Uniform {
                max_ns: *max_ns as f64,
                width_ns: (*max_ns - *min_ns) as f64,
            },
            ServiceDistribution::Pareto {
                min_ns,
                max_ns,
                alpha,
            } => {
                let log_ratio = libm::log(*min_ns as f64 / *max_ns as f64);
                let span = -libm::expm1(alpha * log_ratio);
                let (min_ns, max_ns) = (*min_ns as f64, *max_ns as f64);
                Self::Pareto {
                    min_ns,
                    max_ns,
                    span,
                    exponent: -1.0 / alpha,
                }
            }
            ServiceDistribution::Empirical(points) => {
                let weights: Vec<f64> = points.points().iter().map(|(_, weight)| *weight).collect();
                Self::Empirical {
                    points: points.clone(),
                    choice: Arc::new(Alias::new(&weights)),
                }
            }
        }
    }

    /// One service time in nanoseconds, at least 1.
    #[inline]
    pub(crate) fn sample(&self, stream: &mut Stream) -> u64 {
        match self {
            Self::Constant { service_ns } => *service_ns,
            Self::Exponential { mean_ns, unit } => whole_ns(mean_ns * unit.sample(stream)),
            Self::Lognormal { mu, sigma } => whole_ns(libm::exp(mu + sigma * stream.normal())),
            Self::Uniform { max_ns, width_ns } => whole_ns(max_ns - width_ns * stream.uniform()),
            Self::Pareto {
                min_ns,
                max_ns,
                span,
                exponent,
            } => {
                let ratio = power(1.0 - span * stream.uniform(), *exponent);
                // A span that rounds to 1 makes the largest ratio infinite.
                whole_ns((min_ns * ratio).min(*max_ns))
            }
            Self::Empirical { points, choice } => points.points()[choice.sample(stream)].0,
        }
    }
}

/// Rounds to the nearest nanosecond, but a request takes at least one.
#[inline]
fn whole_ns(ns: f64) -> u64 {
    ((ns + 0.5) as u64).max(1)
}
