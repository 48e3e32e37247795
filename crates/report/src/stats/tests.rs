//! Published quantiles, and coverage measured on seeded samples.

use rand_core::Rng;
use rand_pcg::Pcg64Mcg;

use super::*;

fn close(found: f64, expected: f64, tolerance: f64) {
    assert!(
        (found - expected).abs() <= tolerance,
        "{found}, expected {expected} ± {tolerance}"
    );
}

/// Uniform in (0, 1].
fn uniform(rng: &mut Pcg64Mcg) -> f64 {
    ((rng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
}

fn exponential(rng: &mut Pcg64Mcg) -> f64 {
    -uniform(rng).ln()
}

fn normal(rng: &mut Pcg64Mcg) -> f64 {
    (2.0 * exponential(rng)).sqrt() * (std::f64::consts::TAU * uniform(rng)).cos()
}

/// How many of `trials` seeded trials hold.
fn count_of(trials: u64, mut trial: impl FnMut(&mut Pcg64Mcg) -> bool) -> u64 {
    (0..trials)
        .filter(|&seed| trial(&mut Pcg64Mcg::new(u128::from(seed) + 1)))
        .count() as u64
}

#[test]
fn t_quantiles_are_the_published_ones() {
    // NIST/SEMATECH e-Handbook, section 1.3.6.7.2.
    for (probability, freedom, expected) in [
        (0.975, 1.0, 12.706),
        (0.975, 4.0, 2.776),
        (0.95, 9.0, 1.833),
        (0.995, 10.0, 3.169),
        (0.975, 30.0, 2.042),
        (0.999, 5.0, 5.893),
        (0.999, 100.0, 3.174),
    ] {
        close(t_quantile(probability, freedom), expected, 5e-4);
    }
}

#[test]
fn a_mean_interval_by_hand() {
    // n = 4, mean 5, s² = 20/3, t(3, 97.5 %) = 3.18245.
    let interval = mean_interval(&[2.0, 4.0, 6.0, 8.0], 0.95).unwrap();
    close(interval.estimate, 5.0, 1e-12);
    close(
        interval.half_width(),
        3.182_446 * (20.0_f64 / 3.0 / 4.0).sqrt(),
        1e-4,
    );
}

#[test]
fn equal_samples_leave_no_width() {
    let interval = mean_interval(&[3.0; 5], 0.95).unwrap();
    assert_eq!((interval.lo, interval.hi), (3.0, 3.0));
    let difference = difference_interval(&[3.0; 5], &[2.0; 5], 0.95).unwrap();
    assert_eq!((difference.lo, difference.hi), (1.0, 1.0));
}

#[test]
fn the_95_percent_interval_of_a_mean_covers_it_95_times_in_100() {
    let covered = count_of(2000, |rng| {
        let samples: Vec<f64> = (0..6).map(|_| 10.0 + normal(rng)).collect();
        mean_interval(&samples, 0.95).unwrap().contains(10.0)
    });
    // 1 900 ± 3.3 standard deviations of the binomial, 9.75.
    assert!((1868..=1932).contains(&covered), "{covered} of 2000");
}

#[test]
fn a_paired_ratio_survives_a_noise_that_both_sides_share() {
    let rounds = |rng: &mut Pcg64Mcg| -> Vec<(f64, f64)> {
        (0..8)
            .map(|_| {
                let shared = (2.0 * normal(rng)).exp();
                (
                    1.3 * shared * (0.02 * normal(rng)).exp(),
                    shared * (0.02 * normal(rng)).exp(),
                )
            })
            .collect()
    };
    let covered = count_of(1000, |rng| {
        ratio_interval(&rounds(rng), 0.95).unwrap().contains(1.3)
    });
    assert!((927..=973).contains(&covered), "{covered} of 1000");
    let interval = ratio_interval(&rounds(&mut Pcg64Mcg::new(1)), 0.95).unwrap();
    assert!(interval.distinguishable_from(1.0), "{interval:?}");
}

#[test]
fn a_ratio_and_its_inverse_mirror_each_other() {
    let pairs = [(2.0, 1.0), (3.0, 1.0), (2.5, 1.1)];
    let swapped = pairs.map(|(left, right)| (right, left));
    let (ratio, inverse) = (
        ratio_interval(&pairs, 0.9).unwrap(),
        ratio_interval(&swapped, 0.9).unwrap(),
    );
    close(ratio.lo * inverse.hi, 1.0, 1e-12);
    close(ratio.estimate * inverse.estimate, 1.0, 1e-12);
}

#[test]
fn a_difference_is_told_apart_only_when_there_is_one() {
    let told_apart = |shift: f64| {
        count_of(1000, |rng| {
            let left: Vec<f64> = (0..8).map(|_| normal(rng) + shift).collect();
            let right: Vec<f64> = (0..12).map(|_| 3.0 * normal(rng)).collect();
            difference_interval(&left, &right, 0.95)
                .unwrap()
                .distinguishable_from(0.0)
        })
    };
    assert!(
        (27..=73).contains(&told_apart(0.0)),
        "{} of 1000",
        told_apart(0.0)
    );
    assert!(told_apart(6.0) > 990);
}

#[test]
fn overlap_is_symmetric_and_includes_the_ends() {
    let interval = |lo, hi| ConfidenceInterval {
        estimate: (lo + hi) / 2.0,
        lo,
        hi,
        confidence: 0.95,
    };
    assert!(interval(1.0, 2.0).overlaps(&interval(2.0, 3.0)));
    assert!(interval(2.0, 3.0).overlaps(&interval(1.0, 2.0)));
    assert!(!interval(1.0, 2.0).overlaps(&interval(2.1, 3.0)));
}

#[test]
fn lag1_autocorrelation_by_hand() {
    assert_eq!(lag1_autocorrelation(&[1.0, -1.0, 1.0, -1.0]), -0.75);
    assert_eq!(lag1_autocorrelation(&[5.0; 9]), 0.0);
}

/// x' = φx + noise: mean 0, lag-1 autocorrelation φ.
fn autoregressive(rng: &mut Pcg64Mcg, phi: f64, len: usize) -> Vec<f64> {
    let mut state = normal(rng) / (1.0 - phi * phi).sqrt();
    (0..len)
        .map(|_| {
            state = phi * state + normal(rng);
            state
        })
        .collect()
}

#[test]
fn batch_means_cover_the_mean_of_a_correlated_run() {
    let covers = |rng: &mut Pcg64Mcg| {
        let samples = autoregressive(rng, 0.95, 20_000);
        let naive = mean_interval(&samples, 0.95).unwrap().contains(0.0);
        (
            batch_means(&samples, 0.95).unwrap().interval.contains(0.0),
            naive,
        )
    };
    let covered = count_of(500, |rng| covers(rng).0);
    let naive = count_of(500, |rng| covers(rng).1);
    assert!((455..=490).contains(&covered), "{covered} of 500");
    assert!(
        naive < 250,
        "treating the values as independent covered {naive} of 500"
    );
}

#[test]
fn batch_means_say_when_the_run_is_too_short_for_its_correlation() {
    let ramp: Vec<f64> = (0..1003).map(f64::from).collect();
    let result = batch_means(&ramp, 0.95).unwrap();
    assert_eq!((result.batches, result.batch_len), (8, 125));
    assert!(!result.independent, "{result:?}");
    let independent: Vec<f64> = {
        let mut rng = Pcg64Mcg::new(3);
        (0..6400).map(|_| normal(&mut rng)).collect()
    };
    let result = batch_means(&independent, 0.95).unwrap();
    assert_eq!(
        (result.batches, result.batch_len, result.independent),
        (64, 100, true)
    );
}

#[test]
fn percentile_ranks_are_the_binomial_ones() {
    // Binomial(100, 0.5): P(X ≤ 39) = 0.0176, P(X ≤ 40) = 0.0284; and by symmetry above.
    assert_eq!(percentile_ranks(100, 0.5, 0.95).unwrap(), (40, 61));
    // 0.999ⁿ ≤ 0.025 from n = 3 688 on.
    let error = percentile_ranks(1000, 0.999, 0.95).unwrap_err();
    assert!(
        matches!(
            error,
            StatsError::TooFewSamples {
                needed: 3688,
                got: 1000,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(percentile_ranks(3688, 0.999, 0.95).unwrap().1, 3688);
}

#[test]
fn percentile_intervals_cover_the_true_percentile() {
    let truth = -(0.01_f64.ln());
    let covered = count_of(500, |rng| {
        let samples: Vec<f64> = (0..2000).map(|_| exponential(rng)).collect();
        percentile_interval(&samples, 0.99, 0.95)
            .unwrap()
            .contains(truth)
    });
    assert!((459..=495).contains(&covered), "{covered} of 500");
}

#[test]
fn percentile_ranks_hold_for_tens_of_millions() {
    // Normal approximation: np ± 1.96 √(np(1 − p)) = 19 980 000 ± 277.
    let (lower, upper) = percentile_ranks(20_000_000, 0.999, 0.95).unwrap();
    close(lower as f64, 19_979_723.0, 3.0);
    close(upper as f64, 19_980_278.0, 3.0);
}

#[test]
fn errors_tell_which_sample_and_how_many() {
    assert_eq!(
        mean_interval(&[1.0], 0.95).unwrap_err().to_string(),
        "a mean's interval needs at least 2 samples, got 1; run more of them"
    );
    assert_eq!(
        ratio_interval(&[(1.0, 2.0), (1.0, 0.0)], 0.95)
            .unwrap_err()
            .to_string(),
        "a ratio's interval: sample 1 is 0, which is not finite and positive"
    );
    assert_eq!(
        mean_interval(&[1.0, 2.0], 95.0).unwrap_err().to_string(),
        "a confidence of 95 is no probability; write it like 0.95"
    );
}

/// Mean backlog in each of 40 batches of an M/M/1 queue of this load, started empty.
fn single_server(rng: &mut Pcg64Mcg, load: f64, arrivals: u32) -> Vec<f64> {
    let horizon = f64::from(arrivals) / load;
    let mut area = [0.0; 40];
    let (mut now, mut backlog) = (0.0, 0_u32);
    while now < horizon {
        let rate = load + if backlog > 0 { 1.0 } else { 0.0 };
        let until = now + exponential(rng) / rate;
        let batch = ((now / horizon * 40.0) as usize).min(39);
        area[batch] += (until - now) * f64::from(backlog);
        now = until;
        let arrives = uniform(rng) * rate <= load;
        backlog = if arrives { backlog + 1 } else { backlog - 1 };
    }
    area.map(|area| area / (horizon / 40.0)).to_vec()
}

fn called_overloaded(load: f64, arrivals: u32) -> u64 {
    count_of(200, |rng| {
        backlog_growth(&single_server(rng, load, arrivals), 16.0)
            .unwrap()
            .is_growing()
    })
}

#[test]
fn stable_queues_are_not_called_overloaded() {
    for load in [0.5, 0.8, 0.9, 0.95] {
        let called = called_overloaded(load, 50_000);
        assert!(called <= 1, "load {load}: {called} of 200");
    }
}

#[test]
fn overloaded_queues_are_called_so() {
    for (load, at_least) in [(1.05, 195), (1.1, 200), (1.5, 200)] {
        let called = called_overloaded(load, 50_000);
        assert!(called >= at_least, "load {load}: {called} of 200");
    }
}

#[test]
fn growth_names_the_question_that_was_answered_no() {
    let wobble = |batch: u32| f64::from(batch * 7919 % 13);
    let reason = |backlog: &dyn Fn(u32) -> f64| {
        let series: Vec<f64> = (0..40).map(backlog).collect();
        backlog_growth(&series, 32.0).unwrap().reason
    };
    assert_eq!(reason(&|_| 0.0), GrowthReason::NoDrift);
    assert_eq!(
        reason(&|batch| 100.0 + wobble(batch)),
        GrowthReason::NoDrift
    );
    assert_eq!(
        reason(&|batch| 1e4 + 10.0 * f64::from(batch)),
        GrowthReason::SmallRise
    );
    assert_eq!(
        reason(&|batch| 0.1 * f64::from(batch)),
        GrowthReason::SmallBacklog
    );
    assert_eq!(
        reason(&|batch| 20.0 * f64::from(batch) + wobble(batch)),
        GrowthReason::Growing
    );
}

#[test]
fn an_interval_does_not_leave_what_is_possible() {
    // Two replications of a heavy tail, whose interval by Student's t begins at −1 153.
    let interval = mean_interval(&[3.7, 201.3], 0.95).unwrap();
    assert!(interval.lo < -1_000.0, "{interval:?}");
    let possible = interval.at_least(1.0);
    assert_eq!((possible.lo, possible.hi), (1.0, interval.hi));
    assert_eq!(possible.estimate, interval.estimate);
}
