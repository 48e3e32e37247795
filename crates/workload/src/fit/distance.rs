//! The distance of a distribution from samples.

/// The Kolmogorov–Smirnov distance between a distribution function over whole numbers and the
/// samples, which are sorted: the largest difference of the two functions anywhere.
pub(super) fn distance(samples: &[u64], cdf: impl Fn(u64) -> f64) -> f64 {
    let count = samples.len() as f64;
    let mut below = 0;
    let mut largest = 0.0_f64;
    for equal in samples.chunk_by(|a, b| a == b) {
        let value = equal[0];
        // Between two samples the samples' function is flat: the other one is furthest from it
        // right before the next sample.
        if let Some(before) = value.checked_sub(1) {
            largest = largest.max((cdf(before) - below as f64 / count).abs());
        }
        below += equal.len();
        largest = largest.max((cdf(value) - below as f64 / count).abs());
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_the_largest_difference() {
        // Uniform on 1 to 10 against samples that miss its upper half.
        let uniform = |ns: u64| (ns as f64 / 10.0).min(1.0);
        assert!((distance(&[1, 2, 3, 4, 5], uniform) - 0.5).abs() < 1e-12);
        let even: Vec<u64> = (1..=10).collect();
        assert!(distance(&even, uniform) < 1e-12);
        // All of the mass lies before the only sample.
        assert!((distance(&[20], uniform) - 1.0).abs() < 1e-12);
    }
}
