//! The fit of a class's service times.

use std::sync::Arc;

use super::distance::distance;
use crate::{Empirical, ServiceDistribution};

/// A distribution nearer than this is near enough, even where many samples would reject it.
const NEAR: f64 = 0.02;
/// Kolmogorov's 1 % critical value, times √n: smaller distances can be chance.
const CHANCE: f64 = 1.63;
/// Largest relative error of E[S]: the load depends on it.
const MEAN_ERROR_MAX: f64 = 0.02;
/// Largest relative error of E[S²]: waiting grows with it (Pollaczek–Khinchine).
const SECOND_MOMENT_ERROR_MAX: f64 = 0.1;
/// Ratio of the probabilities of exceeding two neighbouring points of an empirical distribution.
const TAIL_RATIO: f64 = 1.02;

/// A distribution that was compared with the samples.
#[derive(Debug, Clone, PartialEq)]
pub struct FitCandidate {
    /// Its name: one of [`ServiceDistribution::NAMES`], or `bimodal`, which a file writes as an empirical
    /// distribution of two points.
    pub name: &'static str,
    /// The distribution with its fitted parameters.
    pub service: ServiceDistribution,
    /// Kolmogorov–Smirnov distance from the samples, 0 to 1.
    pub ks: f64,
    /// Relative error of the mean.
    pub mean_error: f64,
    /// Relative error of the second moment.
    pub second_moment_error: f64,
}

/// The fit of a class.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassFit {
    /// The class.
    pub name: String,
    /// The class's requests in the trace.
    pub samples: usize,
    /// Their mean service time, ns.
    pub mean_ns: f64,
    /// Their squared coefficient of variation.
    pub scv: f64,
    /// All candidates, the empirical distribution last.
    pub candidates: Vec<FitCandidate>,
    chosen: usize,
}

impl ClassFit {
    /// The distribution that the workload uses.
    #[must_use]
    pub fn chosen(&self) -> &FitCandidate {
        &self.candidates[self.chosen]
    }
}

/// Fits the samples of a class, of which there is at least one.
pub(super) fn fit(name: &str, mut samples: Vec<u64>) -> ClassFit {
    samples.sort_unstable();
    let mean_ns = moment(&samples, 1);
    let second = moment(&samples, 2);
    let mut candidates: Vec<FitCandidate> = parametric(&samples)
        .into_iter()
        .map(
            |(name, service): (&'static str, ServiceDistribution)| FitCandidate {
                name,
                ks: distance(&samples, |ns| service.cdf(ns)),
                mean_error: service.mean_ns() / mean_ns - 1.0,
                second_moment_error: service.second_moment_ns2() / second - 1.0,
                service,
            },
        )
        .collect();
    candidates.push(recorded(&samples, mean_ns, second));
    let limit = NEAR.max(CHANCE / libm::sqrt(samples.len() as f64));
    let named = &candidates[..candidates.len() - 1];
    let fitting = (0..named.len()).filter(|&index| {
        let candidate = &named[index];
        candidate.ks <= limit
            && candidate.mean_error.abs() <= MEAN_ERROR_MAX
            && candidate.second_moment_error.abs() <= SECOND_MOMENT_ERROR_MAX
    });
    let nearest = fitting.min_by(|&a, &b| named[a].ks.total_cmp(&named[b].ks));
    ClassFit {
        name: name.into(),
        samples: samples.len(),
        mean_ns,
        scv: (second / (mean_ns * mean_ns) - 1.0).max(0.0),
        chosen: nearest.unwrap_or(named.len()),
        candidates,
    }
}

fn moment(samples: &[u64], power: i32) -> f64 {
    samples
        .iter()
        .map(|ns: &u64| libm::pow(*ns as f64, f64::from(power)))
        .sum::<f64>()
        / samples.len() as f64
}

/// Every distribution with parameters that the samples can give, the simplest first; `samples` are sorted.
fn parametric(samples: &[u64]) -> Vec<(&'static str, ServiceDistribution)> {
    let mean_ns = (moment(samples, 1) + 0.5) as u64;
    let (min_ns, max_ns) = (samples[0], samples[samples.len() - 1]);
    let mut found = vec![
        ("constant", ServiceDistribution::Constant { mean_ns }),
        ("exponential", ServiceDistribution::Exponential { mean_ns }),
    ];
    if min_ns < max_ns {
        found.push(("uniform", ServiceDistribution::Uniform { min_ns, max_ns }));
        found.extend(lognormal(samples));
        found.extend(pareto(samples));
        found.push(("bimodal", bimodal(samples)));
    }
    found.retain(|(_, service)| service.check().is_ok());
    found
}

/// By maximum likelihood: the mean and variance of the logarithms.
fn lognormal(samples: &[u64]) -> Option<(&'static str, ServiceDistribution)> {
    let logs = || samples.iter().map(|ns| libm::log(*ns as f64));
    let count = samples.len() as f64;
    let mu = logs().sum::<f64>() / count;
    let variance = logs().map(|log| (log - mu) * (log - mu)).sum::<f64>() / count;
    let mean_ns = libm::exp(mu + variance / 2.0);
    let cv = libm::sqrt(libm::expm1(variance));
    let finite = mean_ns < (1_u64 << 53) as f64 && cv.is_finite();
    finite.then_some((
        "lognormal",
        ServiceDistribution::Lognormal {
            mean_ns: (mean_ns + 0.5) as u64,
            cv,
        },
    ))
}

/// By maximum likelihood between the extremes (Aban, Meerschaert & Panorska 2006, theorem 2): with
/// R = ln(H/L) and m the mean of ln(x/L), 1/α − R ÷ (e^{αR} − 1) = m. The left side falls from R/2
/// at 0, so a larger mean has no solution.
fn pareto(samples: &[u64]) -> Option<(&'static str, ServiceDistribution)> {
    const ALPHA_MAX: f64 = 100.0;
    let (min_ns, max_ns) = (samples[0], samples[samples.len() - 1]);
    let log = |ns: &u64| libm::log(*ns as f64 / min_ns as f64);
    let range = log(&max_ns);
    let mean = samples.iter().map(log).sum::<f64>() / samples.len() as f64;
    let excess = |alpha: f64| 1.0 / alpha - range / libm::expm1(alpha * range) - mean;
    let (mut low, mut high) = (1e-6, ALPHA_MAX);
    if excess(low) <= 0.0 || excess(high) >= 0.0 {
        return None;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if excess(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some((
        "pareto",
        ServiceDistribution::Pareto {
            min_ns,
            max_ns,
            alpha: f64::midpoint(low, high),
        },
    ))
}

/// Two points: the samples cut where the logarithms of both sides vary least about their means.
fn bimodal(samples: &[u64]) -> ServiceDistribution {
    let logs: Vec<f64> = samples.iter().map(|ns| libm::log(*ns as f64)).collect();
    let total: f64 = logs.iter().sum();
    let mut below = 0.0;
    let mut best = (f64::NEG_INFINITY, 1);
    for cut in 1..samples.len() {
        below += logs[cut - 1];
        let above = total - below;
        // The variance between the sides, to be as large as possible.
        let between = below * below / cut as f64 + above * above / (samples.len() - cut) as f64;
        if between > best.0 && samples[cut - 1] < samples[cut] {
            best = (between, cut);
        }
    }
    let side = |samples: &[u64]| ((moment(samples, 1) + 0.5) as u64, samples.len() as f64);
    let (low, high) = samples.split_at(best.1);
    ServiceDistribution::Empirical(Arc::new(Empirical::new(vec![side(low), side(high)])))
}

/// The samples themselves. Where there are many, neighbours are joined to their mean: as many as
/// 2 % of those that take longer, so that the tail keeps every one of its last fifty.
fn recorded(samples: &[u64], mean_ns: f64, second: f64) -> FitCandidate {
    let mut points: Vec<(u64, f64)> = Vec::new();
    let mut rest = samples;
    while let [first, ..] = rest {
        let equal = rest.partition_point(|ns| ns == first);
        let share = rest.len() as f64 * (TAIL_RATIO - 1.0);
        let (joined, longer) = rest.split_at(equal.max(share as usize).max(1));
        points.push(((moment(joined, 1) + 0.5) as u64, joined.len() as f64));
        rest = longer;
    }
    let ks = distance(samples, |ns: u64| {
        let reached = points.partition_point(|(at, _)| *at <= ns);
        let weight: f64 = points[..reached].iter().map(|(_, weight)| weight).sum();
        weight / samples.len() as f64
    });
    let service = ServiceDistribution::Empirical(Arc::new(Empirical::new(points.clone())));
    FitCandidate {
        name: "empirical",
        ks,
        mean_error: service.mean_ns() / mean_ns - 1.0,
        second_moment_error: service.second_moment_ns2() / second - 1.0,
        service,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seeder;
    use crate::sampler::Sampler;
    use proptest::prelude::*;

    fn draws(service: &ServiceDistribution, count: usize) -> Vec<u64> {
        let sampler = Sampler::new(service);
        let mut stream = Seeder::new(7).stream();
        (0..count).map(|_| sampler.sample(&mut stream)).collect()
    }

    #[track_caller]
    fn comes_back(service: &ServiceDistribution, name: &str, error: f64) {
        let fit = fit("c", draws(service, 50_000));
        let chosen = fit.chosen();
        assert_eq!(chosen.name, name, "{:?}", fit.candidates);
        assert!(chosen.ks < 0.02, "{chosen:?}");
        let relative = chosen.service.second_moment_ns2() / service.second_moment_ns2() - 1.0;
        assert!(relative.abs() < error, "{chosen:?}");
    }

    #[test]
    fn what_was_drawn_from_a_distribution_is_fitted_by_it() {
        comes_back(
            &ServiceDistribution::Constant { mean_ns: 700 },
            "constant",
            1e-9,
        );
        comes_back(
            &ServiceDistribution::Exponential { mean_ns: 10_000 },
            "exponential",
            0.03,
        );
        let lognormal = ServiceDistribution::Lognormal {
            mean_ns: 20_000,
            cv: 1.2,
        };
        comes_back(&lognormal, "lognormal", 0.1);
        let uniform = ServiceDistribution::Uniform {
            min_ns: 100,
            max_ns: 9_000,
        };
        comes_back(&uniform, "uniform", 0.02);
        let pareto = ServiceDistribution::Pareto {
            min_ns: 500,
            max_ns: 200_000,
            alpha: 1.4,
        };
        comes_back(&pareto, "pareto", 0.1);
        let two = Empirical::new(vec![(1_000, 0.9), (100_000, 0.1)]);
        comes_back(
            &ServiceDistribution::Empirical(Arc::new(two)),
            "bimodal",
            0.05,
        );
    }

    #[test]
    fn what_is_like_nothing_is_drawn_from_what_was_recorded() {
        // A lump, a gap, and a tail.
        let mut samples = draws(
            &ServiceDistribution::Uniform {
                min_ns: 900,
                max_ns: 1_100,
            },
            20_000,
        );
        samples.extend(draws(
            &ServiceDistribution::Exponential { mean_ns: 90_000 },
            9_000,
        ));
        samples.extend([5_000_000, 6_000_000]);
        let fit = fit("c", samples.clone());
        assert_eq!(fit.chosen().name, "empirical", "{:?}", fit.candidates);
        let ServiceDistribution::Empirical(points) = &fit.chosen().service else {
            panic!("{:?}", fit.chosen());
        };
        assert!(points.points().len() < 700, "{}", points.points().len());
        assert_eq!(points.points().last(), Some(&(6_000_000, 1.0)));
        assert!(fit.chosen().ks < 0.02 && fit.chosen().second_moment_error.abs() < 0.02);
    }

    proptest! {
        #[test]
        fn any_samples_give_a_valid_distribution_with_their_mean(
            samples in prop::collection::vec(1_u64..1 << 50, 1..200),
        ) {
            let mean = moment(&samples, 1);
            let fit = fit("c", samples);
            prop_assert!(fit.chosen().service.check().is_ok());
            let error = fit.chosen().service.mean_ns() / mean - 1.0;
            // Whole nanoseconds.
            prop_assert!(error.abs() <= MEAN_ERROR_MAX + 1.0 / mean, "{:?}", fit.chosen());
            prop_assert!((0.0..=1.0).contains(&fit.chosen().ks));
        }
    }
}
