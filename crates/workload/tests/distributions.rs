//! Samples against their closed forms. Seeds are fixed: a test that passes once passes always; the
//! bounds are those that a correct sampler misses with a probability below 1e-6.

use std::sync::Arc;

use headway_workload::{
    Arrival, Arrivals, Class, Empirical, Generator, Offered, ServiceDistribution, Workload,
};
use proptest::prelude::*;

const SAMPLES: usize = 400_000;
/// A standard normal exceeds ±5 with probability 5.7e-7.
const SIGMAS: f64 = 5.0;

fn one(service: ServiceDistribution) -> Workload {
    Workload::new("one", vec![Class::new("request", 1.0, service)])
}

fn arrivals(workload: &Workload, seed: u64) -> impl Iterator<Item = Arrival> + use<> {
    Generator::new(workload, Offered::Rate(1e6), seed).take(SAMPLES)
}

/// Mean, variance and the standard error of each, from the samples themselves.
struct Moments {
    mean: f64,
    mean_error: f64,
    variance: f64,
    variance_error: f64,
}

impl Moments {
    fn of(samples: &[f64]) -> Self {
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let central = |power| samples.iter().map(|x| (x - mean).powi(power)).sum::<f64>() / count;
        let (variance, fourth) = (central(2), central(4));
        Self {
            mean,
            mean_error: (variance / count).sqrt(),
            variance,
            variance_error: ((fourth - variance * variance) / count).sqrt(),
        }
    }

    /// Rounding to whole nanoseconds moves the mean by less than half of one.
    fn assert_match(&self, what: &str, mean: f64, variance: f64) {
        let off = (self.mean - mean).abs();
        assert!(
            off <= SIGMAS * self.mean_error + 0.5,
            "{what}: mean {} for {mean}",
            self.mean
        );
        let off = (self.variance - variance).abs();
        let bound = SIGMAS * self.variance_error + 1.0;
        assert!(
            off <= bound,
            "{what}: variance {} for {variance}",
            self.variance
        );
    }
}

fn assert_moments(service: &ServiceDistribution, seed: u64) {
    service.check().expect("parameters in range");
    let workload = one(service.clone());
    let samples: Vec<f64> = arrivals(&workload, seed)
        .map(|a| a.service_ns as f64)
        .collect();
    let mean = service.mean_ns();
    let variance = service.second_moment_ns2() - mean * mean;
    Moments::of(&samples).assert_match(&format!("{service:?}"), mean, variance);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 12,
        failure_persistence: None,
        rng_seed: prop::test_runner::RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn exponential(mean_ns in 1_000_u64..10_000_000, seed: u64) {
        assert_moments(&ServiceDistribution::Exponential { mean_ns }, seed);
    }

    /// Above a cv of about 1 the sample variance of a lognormal converges too slowly to test.
    #[test]
    fn lognormal(mean_ns in 1_000_u64..10_000_000, cv in 0.05..1.0, seed: u64) {
        assert_moments(&ServiceDistribution::Lognormal { mean_ns, cv }, seed);
    }

    #[test]
    fn uniform(min_ns in 1_u64..100_000, width_ns in 1_000_u64..10_000_000, seed: u64) {
        assert_moments(&ServiceDistribution::Uniform { min_ns, max_ns: min_ns + width_ns }, seed);
    }

    #[test]
    fn pareto(min_ns in 1_000_u64..100_000, ratio in 2_u64..200, alpha in 0.3..4.0, seed: u64) {
        assert_moments(&ServiceDistribution::Pareto { min_ns, max_ns: min_ns * ratio, alpha }, seed);
    }

    #[test]
    fn empirical(points in prop::collection::vec((1_u64..1_000_000, 0.01..10.0), 2..40), seed: u64) {
        assert_moments(&ServiceDistribution::Empirical(Arc::new(Empirical::new(points))), seed);
    }

    #[test]
    fn gamma_gaps(cv in 0.2..3.0, seed: u64) {
        assert_gaps(Arrivals::Gamma { cv }, cv * cv, seed);
    }

    #[test]
    fn poisson_gaps(seed: u64) {
        assert_gaps(Arrivals::Poisson, 1.0, seed);
    }
}

/// Gaps at one request per millisecond, where rounding to nanoseconds is negligible.
fn gaps_ns(arrivals: Arrivals, seed: u64) -> Vec<f64> {
    let workload = Workload {
        arrivals,
        ..one(ServiceDistribution::Constant { mean_ns: 1 })
    };
    let times = Generator::new(&workload, Offered::Rate(1e3), seed).take(SAMPLES);
    let mut last_ns = 0;
    times
        .map(|a| (a.at_ns - std::mem::replace(&mut last_ns, a.at_ns)) as f64)
        .collect()
}

fn assert_gaps(arrivals: Arrivals, scv: f64, seed: u64) {
    let what = format!("{arrivals:?}");
    Moments::of(&gaps_ns(arrivals, seed)).assert_match(&what, 1e6, scv * 1e12);
}

/// Kolmogorov–Smirnov: sup |Fₙ − F| of n samples exceeds 2.7/√n with probability 2·exp(−2·2.7²),
/// below 1e-6.
fn assert_distribution(mut samples: Vec<f64>, cumulative: impl Fn(f64) -> f64) {
    samples.sort_by(f64::total_cmp);
    let count = samples.len() as f64;
    let distance = samples.iter().enumerate().map(|(rank, sample)| {
        let expected = cumulative(*sample);
        (expected - rank as f64 / count)
            .abs()
            .max((expected - (rank + 1) as f64 / count).abs())
    });
    let distance = distance.fold(0.0, f64::max);
    assert!(distance < 2.7 / count.sqrt(), "distance {distance}");
}

#[test]
fn poisson_gaps_are_exponential() {
    let gaps = gaps_ns(Arrivals::Poisson, 3);
    assert_distribution(gaps.clone(), |x| 1.0 - (-x / 1e6).exp());
    // The ziggurat's tail starts at 7.697 means; conditional on being there, it is exponential too.
    let tail: Vec<f64> = gaps
        .iter()
        .map(|gap| gap / 1e6 - 7.7)
        .filter(|x| *x > 0.0)
        .collect();
    assert!(tail.len() > 100, "{} gaps in the tail", tail.len());
    assert_distribution(tail, |x| 1.0 - (-x).exp());
}

#[test]
fn poisson_gaps_are_independent() {
    let gaps = gaps_ns(Arrivals::Poisson, 4);
    let products = gaps
        .windows(2)
        .map(|pair| (pair[0] / 1e6 - 1.0) * (pair[1] / 1e6 - 1.0));
    let correlation = products.sum::<f64>() / (gaps.len() - 1) as f64;
    assert!(
        correlation.abs() < SIGMAS / (gaps.len() as f64).sqrt(),
        "{correlation}"
    );
}

#[test]
fn lognormal_has_a_normal_logarithm() {
    let workload = one(ServiceDistribution::Lognormal {
        mean_ns: 1_000_000,
        cv: 3.0,
    });
    let sigma = (1.0_f64 + 9.0).ln().sqrt();
    let mu = 1e6_f64.ln() - sigma * sigma / 2.0;
    let samples = arrivals(&workload, 5).map(|a| ((a.service_ns as f64).ln() - mu) / sigma);
    assert_distribution(samples.collect(), |x| libm::erfc(-x / 2.0_f64.sqrt()) / 2.0);
}

#[test]
fn pareto_follows_its_distribution_function() {
    let (min_ns, max_ns, alpha) = (1_000_000, 1_000_000_000, 1.1);
    let samples = arrivals(
        &one(ServiceDistribution::Pareto {
            min_ns,
            max_ns,
            alpha,
        }),
        6,
    );
    let power = |ratio: f64| 1.0 - ratio.powf(alpha);
    let range = power(min_ns as f64 / max_ns as f64);
    let samples: Vec<f64> = samples.map(|a| a.service_ns as f64).collect();
    assert!(
        samples
            .iter()
            .all(|x| (min_ns as f64..=max_ns as f64).contains(x))
    );
    assert_distribution(samples, |x| power(min_ns as f64 / x) / range);
}

#[test]
fn pareto_means_agree_with_textbook_forms() {
    let mean = |alpha| {
        ServiceDistribution::Pareto {
            min_ns: 1_000,
            max_ns: 1_000_000,
            alpha,
        }
        .mean_ns()
    };
    // α = 1: L·ln(H/L) ÷ (1 − L/H).
    assert!((mean(1.0) / (1e3 * 1000_f64.ln() / (1.0 - 1e-3)) - 1.0).abs() < 1e-14);
    // α = 2: 2·L·(1 − L/H) ÷ (1 − (L/H)²).
    assert!((mean(2.0) / (2e3 * (1.0 - 1e-3) / (1.0 - 1e-6)) - 1.0).abs() < 1e-14);
    assert!((mean(1.0 + 1e-12) / mean(1.0) - 1.0).abs() < 1e-10);
}

#[test]
fn a_steep_pareto_stays_in_bounds() {
    let service = ServiceDistribution::Pareto {
        min_ns: 1,
        max_ns: 1 << 40,
        alpha: 100.0,
    };
    assert!(arrivals(&one(service), 7).all(|a| (1..=1 << 40).contains(&a.service_ns)));
}

/// χ² of the class counts against the shares. The 1 − 1e-6 quantiles for 1 to 4 degrees of freedom
/// are 23.9, 27.6, 30.7 and 33.4.
#[test]
fn classes_come_by_their_shares() {
    let quantiles = [23.9, 27.6, 30.7, 33.4];
    for name in [
        "high-bimodal",
        "extreme-bimodal",
        "pallas-trimodal",
        "leveldb-zippydb",
        "tpcc",
    ] {
        let workload = Workload::named(name).unwrap();
        let mut counts = vec![0_u32; workload.classes.len()];
        arrivals(&workload, 8).for_each(|a| counts[usize::from(a.class)] += 1);
        let chi_squared: f64 = workload
            .classes
            .iter()
            .zip(counts)
            .map(|(class, count): (&Class, u32)| {
                let expected = class.share * SAMPLES as f64;
                (f64::from(count) - expected).powi(2) / expected
            })
            .sum();
        let quantile = quantiles[workload.classes.len() - 2];
        assert!(chi_squared < quantile, "{name}: χ² = {chi_squared}");
    }
}

#[test]
fn flows_are_uniform() {
    let workload = Workload::named("fixed-1us").unwrap();
    let mut counts = [0_u32; 16];
    arrivals(&workload, 9).for_each(|a| counts[(a.flow >> 28) as usize] += 1);
    let expected = SAMPLES as f64 / 16.0;
    let chi_squared: f64 = counts
        .iter()
        .map(|count| (f64::from(*count) - expected).powi(2) / expected)
        .sum();
    // The 1 − 1e-6 quantile for 15 degrees of freedom is 56.5.
    assert!(chi_squared < 56.5, "χ² = {chi_squared}");
}

#[test]
fn a_share_of_zero_never_comes() {
    let constant = |ns| ServiceDistribution::Constant { mean_ns: ns };
    let classes = vec![
        Class::new("a", 0.3, constant(1)),
        Class::new("none", 0.0, constant(2)),
        Class::new("b", 0.7, constant(3)),
    ];
    assert!(arrivals(&Workload::new("w", classes), 10).all(|a| a.class != 1));
}

#[test]
fn moments_of_a_mix() {
    let workload = Workload::named("high-bimodal").unwrap();
    assert_eq!(workload.mean_service_ns(), 50_500.0);
    assert_eq!(workload.second_moment_ns2(), (1e6 + 1e10) / 2.0);
    assert!((workload.scv() - (5.0005e9 / 50_500.0_f64.powi(2) - 1.0)).abs() < 1e-12);
    assert!((Workload::named("exponential-10us").unwrap().scv() - 1.0).abs() < 1e-12);
    assert!((workload.rate_for_load(0.5, 16) - 0.5 * 16.0 / 50.5e-6).abs() < 1e-6);
    assert!((workload.load_for_rate(workload.rate_for_load(0.7, 14), 14) - 0.7).abs() < 1e-12);
}
