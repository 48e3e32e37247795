//! Distribution functions, of service times and of gaps.

use crate::ServiceDistribution;

/// Most terms of a series or fraction: several times the number that the widest parameters in use
/// need.
const TERMS_MAX: usize = 20_000;
const PRECISION: f64 = 1e-14;

impl ServiceDistribution {
    /// P(S ≤ `ns`), as sampled: continuous distributions are rounded to whole nanoseconds.
    #[must_use]
    pub fn cdf(&self, ns: u64) -> f64 {
        let step = |reached: bool| if reached { 1.0 } else { 0.0 };
        let x = ns as f64 + 0.5;
        match self {
            Self::Constant { mean_ns } => step(ns >= *mean_ns),
            Self::Exponential { mean_ns } => -libm::expm1(-x / *mean_ns as f64),
            Self::Lognormal { mean_ns, cv } => {
                let variance = libm::log1p(cv * cv);
                let mu = libm::log(*mean_ns as f64) - variance / 2.0;
                normal_cdf((libm::log(x) - mu) / libm::sqrt(variance))
            }
            Self::Uniform { min_ns, max_ns } => {
                let (min, max) = (*min_ns as f64, *max_ns as f64);
                ((x - min) / (max - min)).clamp(0.0, 1.0)
            }
            Self::Pareto { max_ns, .. } if ns >= *max_ns => 1.0,
            Self::Pareto { min_ns, .. } if ns < *min_ns => 0.0,
            Self::Pareto {
                min_ns,
                max_ns,
                alpha,
            } => {
                // (1 − (L/x)^α) ÷ (1 − (L/H)^α).
                let below = |to: f64| -libm::expm1(alpha * libm::log(*min_ns as f64 / to));
                (below(x) / below(*max_ns as f64)).min(1.0)
            }
            Self::Empirical(empirical) => {
                let weight = |reached: &dyn Fn(u64) -> bool| -> f64 {
                    let points = empirical.points().iter();
                    points.filter(|(at, _)| reached(*at)).map(|(_, w)| w).sum()
                };
                weight(&|at| at <= ns) / weight(&|_| true)
            }
        }
    }
}

fn normal_cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// The regularised lower incomplete gamma function P(a, x): the distribution function at `x` of a
/// gamma variate of shape `a` and scale 1.
///
/// By its series below a + 1 and by Legendre's continued fraction above, evaluated by Lentz's
/// method (Abramowitz & Stegun, 6.5.29 and 6.5.31; Thompson & Barnett 1986).
pub(crate) fn gamma_cdf(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let front = libm::exp(a * libm::log(x) - x - libm::lgamma(a));
    if x < a + 1.0 {
        front * series(a, x)
    } else {
        1.0 - front * fraction(a, x)
    }
}

/// Σ xⁿ ÷ (a (a+1) … (a+n)).
fn series(a: f64, x: f64) -> f64 {
    let mut term = 1.0 / a;
    let mut sum = term;
    for n in 1..TERMS_MAX {
        term *= x / (a + n as f64);
        sum += term;
        if term < sum * PRECISION {
            break;
        }
    }
    sum
}

/// 1 ÷ (x + 1 − a − 1·(1 − a) ÷ (x + 3 − a − 2·(2 − a) ÷ …)).
fn fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / away(b);
    let mut value = d;
    for n in 1..TERMS_MAX {
        let n = n as f64;
        let numerator = -n * (n - a);
        b += 2.0;
        d = 1.0 / away(numerator * d + b);
        c = away(b + numerator / c);
        value *= c * d;
        if (c * d - 1.0).abs() < PRECISION {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seeder;
    use crate::sampler::Sampler;
    use crate::{Empirical, ServiceDistribution};
    use std::sync::Arc;

    #[test]
    fn the_incomplete_gamma_function_is_that_of_the_tables() {
        // P(1, x) = 1 − e^−x; P(½, x) = erf √x; Abramowitz & Stegun, table 26.7: χ² = 2 with 4
        // degrees of freedom leaves 0.73576.
        for x in [0.01, 0.5, 1.0, 3.0, 20.0] {
            assert!((gamma_cdf(1.0, x) + libm::expm1(-x)).abs() < 1e-12, "{x}");
            let erf = libm::erf(libm::sqrt(x));
            assert!((gamma_cdf(0.5, x) - erf).abs() < 1e-12, "{x}");
        }
        assert!((1.0 - gamma_cdf(2.0, 1.0) - 0.73576).abs() < 1e-5);
        assert!((gamma_cdf(2_500.0, 2_500.0) - 0.5).abs() < 0.003);
        assert_eq!(gamma_cdf(3.0, 0.0), 0.0);
    }

    #[test]
    fn distribution_functions_are_those_of_the_samples() {
        const DRAWS: usize = 40_000;
        let services = [
            ServiceDistribution::Constant { mean_ns: 700 },
            ServiceDistribution::Exponential { mean_ns: 900 },
            ServiceDistribution::Lognormal {
                mean_ns: 5_000,
                cv: 1.7,
            },
            ServiceDistribution::Uniform {
                min_ns: 30,
                max_ns: 4_000,
            },
            ServiceDistribution::Pareto {
                min_ns: 100,
                max_ns: 1_000_000,
                alpha: 1.1,
            },
            ServiceDistribution::Empirical(Arc::new(Empirical::new(vec![(5, 1.0), (900, 3.0)]))),
        ];
        for service in services {
            let sampler = Sampler::new(&service);
            let mut stream = Seeder::new(5).stream();
            let mut draws: Vec<u64> = (0..DRAWS).map(|_| sampler.sample(&mut stream)).collect();
            draws.sort_unstable();
            for ns in [4, 5, 29, 99, 150, 699, 700, 1_500, 9_000, 1_000_000] {
                let seen = draws.partition_point(|draw| *draw <= ns) as f64 / DRAWS as f64;
                let said = service.cdf(ns);
                assert!(
                    (seen - said).abs() < 0.01,
                    "{service:?} at {ns}: {seen}, {said}"
                );
            }
        }
    }
}
