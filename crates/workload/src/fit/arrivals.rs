//! The fit of the arrival process.

use super::distance::distance;
use crate::cdf::gamma_cdf;
use crate::{Arrivals, Trace};

/// Fewest gaps for an estimate of their distribution.
const GAPS_MIN: usize = 30;
/// A gamma fit with less spread than this equals constant gaps.
const CV_MIN: f64 = 0.02;
/// The largest `cv` that a workload file accepts.
const CV_MAX: f64 = 100.0;
/// Fewest ticks of the clock in a mean gap, where requests share their times.
const TICKS_MIN: f64 = 10.0;
/// Parts of the trace whose rates are compared, and the fewest gaps for each.
const WINDOWS_MAX: usize = 20;
const WINDOWS_MIN: usize = 4;
const GAPS_PER_WINDOW: usize = 25;
/// A spread of the parts' rates up to this, relative to their mean, is no trend.
const SPREAD_MAX: f64 = 0.1;
/// Neighbouring gaps correlated more than this form bursts or waves that no renewal process has.
const LAG1_MAX: f64 = 0.1;
/// A process is clearly nearer than another if its distance is smaller by this.
const CLEARLY: f64 = 0.005;
/// A fit at a larger distance than this is reported as poor.
const POOR: f64 = 0.05;

/// Why the fitted process may mislead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doubt {
    /// Fewer than thirty gaps: Poisson was assumed.
    TooFew,
    /// The clock was too coarse, such as one of whole seconds: many requests share their recorded times, and Poisson
    /// was assumed.
    TooCoarse,
    /// Neighbouring gaps resemble each other: the trace is burstier than the process.
    Correlated,
    /// The rate rises, falls or comes in waves in the course of the trace.
    Trend,
    /// No process comes near the gaps.
    Poor,
}

/// How the arrivals were fitted.
#[derive(Debug, Clone, PartialEq)]
pub struct ArrivalFit {
    /// The process that the workload uses.
    pub process: Arrivals,
    /// Mean rate of the trace, requests per second; `None` when all arrive at once.
    pub rate_rps: Option<f64>,
    /// Coefficient of variation of the gaps: 1 for Poisson.
    pub cv: f64,
    /// Correlation of neighbouring gaps, −1 to 1: 0 for every process that can be fitted.
    pub lag1: f64,
    /// Kolmogorov–Smirnov distance of each process compared, by its name.
    pub distances: Vec<(&'static str, f64)>,
    /// Warnings against the fit.
    pub doubt: Option<Doubt>,
}

pub(super) fn fit(trace: &Trace) -> ArrivalFit {
    let pairs = trace.records().windows(2);
    let gaps: Vec<u64> = pairs.map(|pair| pair[1].at_ns - pair[0].at_ns).collect();
    let mut fit = ArrivalFit {
        process: Arrivals::Poisson,
        rate_rps: trace.rate_rps(),
        cv: cv(&gaps),
        lag1: lag1(&gaps),
        distances: Vec::new(),
        doubt: None,
    };
    if gaps.len() < GAPS_MIN {
        fit.doubt = Some(Doubt::TooFew);
    } else if is_coarse(&gaps) {
        fit.doubt = Some(Doubt::TooCoarse);
    } else {
        let trend = has_trend(trace, gaps.len(), fit.cv);
        choose(&mut fit, gaps);
        if trend && fit.doubt != Some(Doubt::Correlated) {
            fit.doubt = Some(Doubt::Trend);
        }
    }
    fit
}

/// Whether the clock hides the gaps: most are zero, or some are and the mean is a few ticks only.
fn is_coarse(gaps: &[u64]) -> bool {
    let at_once = gaps.iter().filter(|gap| **gap == 0).count();
    let tick_ns = gaps.iter().fold(0, |tick, gap| common_divisor(tick, *gap));
    2 * at_once > gaps.len() || at_once > 0 && mean(gaps) < TICKS_MIN * tick_ns as f64
}

fn common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

/// Whether the numbers of requests in equal parts of the trace differ by more than independent gaps of this `cv` explain.
///
/// Over long intervals the counts of a renewal process have a variance of cv² times their mean (Cox, *Renewal Theory*, § 4.2).
fn has_trend(trace: &Trace, gaps: usize, cv: f64) -> bool {
    let windows = (gaps / GAPS_PER_WINDOW).min(WINDOWS_MAX);
    let first_ns = trace.records()[0].at_ns;
    let span_ns = trace.duration_ns() - first_ns;
    if windows < WINDOWS_MIN || span_ns == 0 {
        return false;
    }
    let mut counts = vec![0_u64; windows];
    for record in trace.records() {
        let window = u128::from(record.at_ns - first_ns) * windows as u128 / u128::from(span_ns);
        counts[(window as usize).min(windows - 1)] += 1;
    }
    let (mean, spread) = (mean(&counts), self::cv(&counts));
    let freedom = (windows - 1) as f64;
    let variance = square(spread * mean) * windows as f64 / freedom;
    // Four and a half standard deviations of χ² ÷ its degrees of freedom.
    let chance = 1.0 + 4.5 * libm::sqrt(2.0 / freedom);
    spread > SPREAD_MAX && variance > mean * (cv * cv + 0.1) * chance
}

fn choose(fit: &mut ArrivalFit, mut gaps: Vec<u64>) {
    gaps.sort_unstable();
    let mean = mean(&gaps);
    let mut compared = vec![
        (
            Arrivals::Poisson,
            distance(&gaps, |gap| -libm::expm1(-(gap as f64 + 0.5) / mean)),
        ),
        (
            Arrivals::Deterministic,
            distance(
                &gaps,
                |gap| if gap as f64 + 0.5 >= mean { 1.0 } else { 0.0 },
            ),
        ),
    ];
    if (CV_MIN..=CV_MAX).contains(&fit.cv) {
        let shape = 1.0 / (fit.cv * fit.cv);
        compared.push((
            Arrivals::Gamma { cv: fit.cv },
            distance(&gaps, |gap: u64| {
                gamma_cdf(shape, (gap as f64 + 0.5) / mean * shape)
            }),
        ));
    }
    // The simplest process, unless another is clearly nearer.
    let (process, ks) = compared.iter().skip(1).fold(
        compared[0].clone(),
        |best: (Arrivals, f64), other: &(Arrivals, f64)| {
            if other.1 < best.1 - CLEARLY {
                other.clone()
            } else {
                best
            }
        },
    );
    fit.distances = compared
        .iter()
        .map(|(process, ks)| (process.name(), *ks))
        .collect();
    fit.process = process;
    fit.doubt = if fit.lag1 > LAG1_MAX {
        Some(Doubt::Correlated)
    } else if ks > POOR {
        Some(Doubt::Poor)
    } else {
        None
    };
}

fn mean(gaps: &[u64]) -> f64 {
    gaps.iter().map(|gap| *gap as f64).sum::<f64>() / gaps.len().max(1) as f64
}

fn cv(gaps: &[u64]) -> f64 {
    let mean = mean(gaps);
    let squares: f64 = gaps.iter().map(|gap| square(*gap as f64 - mean)).sum();
    if mean > 0.0 {
        libm::sqrt(squares / gaps.len() as f64) / mean
    } else {
        0.0
    }
}

fn lag1(gaps: &[u64]) -> f64 {
    let mean = mean(gaps);
    let from_mean = |gap: u64| gap as f64 - mean;
    let squares: f64 = gaps.iter().map(|gap| square(from_mean(*gap))).sum();
    let pairs = gaps.windows(2);
    let products: f64 = pairs
        .map(|pair| from_mean(pair[0]) * from_mean(pair[1]))
        .sum();
    if squares > 0.0 {
        products / squares
    } else {
        0.0
    }
}

fn square(x: f64) -> f64 {
    x * x
}

impl std::fmt::Display for Doubt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooFew => "too few requests to tell how they arrive: Poisson is assumed",
            Self::TooCoarse => {
                "the clock is too coarse, so that requests share their times: Poisson is assumed"
            }
            Self::Correlated => {
                "neighbouring gaps are alike: the trace is burstier than the process"
            }
            Self::Trend => {
                "the rate changes in the course of the trace: the process keeps to its mean"
            }
            Self::Poor => "no process comes near the recorded gaps",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Class, Generator, Offered, ServiceDistribution, Workload};

    fn fitted(arrivals: Arrivals) -> ArrivalFit {
        let class = Class::new("c", 1.0, ServiceDistribution::Constant { mean_ns: 1 });
        let workload = Workload {
            arrivals,
            ..Workload::new("w", vec![class])
        };
        let drawn = Generator::new(&workload, Offered::Rate(1e5), 3).take(20_000);
        let rows: String = drawn
            .map(|arrival: crate::Arrival| format!("{}ns,c,1ns\n", arrival.at_ns))
            .collect();
        trace(&rows).fit("w").arrivals
    }

    fn trace(rows: &str) -> Trace {
        Trace::from_csv_str(&format!("time,class,service\n{rows}"), "t.csv").unwrap()
    }

    #[test]
    fn the_process_that_made_the_gaps_is_found() {
        let poisson = fitted(Arrivals::Poisson);
        assert_eq!(poisson.process, Arrivals::Poisson, "{poisson:?}");
        assert!(
            (poisson.cv - 1.0).abs() < 0.05 && poisson.doubt.is_none(),
            "{poisson:?}"
        );
        assert!((poisson.rate_rps.unwrap() / 1e5 - 1.0).abs() < 0.03);
        assert_eq!(
            fitted(Arrivals::Deterministic).process,
            Arrivals::Deterministic
        );
        let bursty = fitted(Arrivals::Gamma { cv: 3.0 });
        assert!(
            matches!(bursty.process, Arrivals::Gamma { cv } if (cv - 3.0).abs() < 0.3),
            "{bursty:?}"
        );
    }

    #[test]
    fn what_cannot_be_known_is_said() {
        assert_eq!(
            trace("0,c,1\n5,c,1\n").fit("w").arrivals.doubt,
            Some(Doubt::TooFew)
        );
        let coarse: String = (0..100).map(|n| format!("{}s,c,1\n", n / 10)).collect();
        assert_eq!(
            trace(&coarse).fit("w").arrivals.doubt,
            Some(Doubt::TooCoarse)
        );
        // Whole seconds, of which one in three is shared: 0, 1, 1, 4, 5, 5, 8 …
        let shared: String = (0..400_u64)
            .map(|n| format!("{}s,c,1\n", n * n % 3 + n / 3 * 4))
            .collect();
        assert_eq!(
            trace(&shared).fit("w").arrivals.doubt,
            Some(Doubt::TooCoarse)
        );
        // Fast for a while, then slow for a while.
        let (mut at, mut waves) = (0, String::new());
        for n in 0..4_000 {
            at += if n / 100 % 2 == 0 { 100 } else { 10_000 } + n % 7;
            waves += &format!("{at}ns,c,1\n");
        }
        assert_eq!(
            trace(&waves).fit("w").arrivals.doubt,
            Some(Doubt::Correlated)
        );
    }

    #[test]
    fn a_rate_that_rises_is_no_steady_process() {
        let drawn = |end: f64| -> String {
            let class = Class::new("c", 1.0, ServiceDistribution::Constant { mean_ns: 1 });
            let workload = Workload::new("w", vec![class]);
            let steady = Generator::new(&workload, Offered::Rate(1e5), 7).take(4_000);
            // The same gaps, ever shorter: from 1 to 1 ÷ `end` of their length.
            let (mut last, mut at) = (0, 0.0);
            let rows = steady.enumerate().map(|(n, arrival)| {
                at += (arrival.at_ns - last) as f64 / (1.0 + (end - 1.0) * n as f64 / 4_000.0);
                last = arrival.at_ns;
                format!("{at:.0}ns,c,1ns\n")
            });
            rows.collect()
        };
        let doubt = |end| trace(&drawn(end)).fit("w").arrivals.doubt;
        assert_eq!((doubt(1.0), doubt(1.05)), (None, None));
        assert_eq!(doubt(2.0), Some(Doubt::Trend));
    }
}
