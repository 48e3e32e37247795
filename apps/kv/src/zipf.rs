//! Zipf-distributed ranks from one uniform number each.

/// Ranks 0 to `n − 1`, rank `r` with probability proportional to 1 / (r + 1)^θ, by the approximate
/// inversion of Gray et al. ("Quickly generating billion-record synthetic databases", SIGMOD '94, §3.2),
/// which YCSB uses: exact for the first two ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Zipf {
    n: f64,
    alpha: f64,
    zeta_n: f64,
    eta: f64,
    /// Cumulative, not normalised, of the first two ranks.
    second: f64,
}

impl Zipf {
    /// Takes time proportional to `n`.
    ///
    /// # Panics
    /// Unless `n` > 0 and 0 < `theta` < 1.
    pub(crate) fn new(n: u64, theta: f64) -> Self {
        assert!(n > 0, "there must be keys to choose from");
        assert!(
            theta > 0.0 && theta < 1.0,
            "a Zipf exponent must be above 0 and below 1, is {theta}"
        );
        let zeta = |n: u64| (1..=n).map(|i| libm::pow(i as f64, -theta)).sum::<f64>();
        let (zeta_n, second) = (zeta(n), zeta(2));
        let numerator = 1.0 - libm::pow(2.0 / n as f64, 1.0 - theta);
        Self {
            n: n as f64,
            alpha: 1.0 / (1.0 - theta),
            zeta_n,
            eta: numerator / (1.0 - second / zeta_n),
            second,
        }
    }

    /// The rank for `uniform`, which is at least 0 and below 1.
    #[inline]
    pub(crate) fn rank(&self, uniform: f64) -> u64 {
        let scaled = uniform * self.zeta_n;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < self.second {
            return 1;
        }
        let rank = self.n * libm::pow(self.eta * (uniform - 1.0) + 1.0, self.alpha);
        (rank as u64).min(self.n as u64 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_the_power_law() {
        const N: u64 = 1_000;
        const DRAWS: u64 = 1_000_000;
        let theta = 0.99;
        let zipf = Zipf::new(N, theta);
        let mut counts = vec![0_u64; N as usize];
        for i in 0..DRAWS {
            counts[zipf.rank((i as f64 + 0.5) / DRAWS as f64) as usize] += 1;
        }
        let zeta: f64 = (1..=N).map(|i| libm::pow(i as f64, -theta)).sum();
        let expected =
            |upto: u64| (1..=upto).map(|i| libm::pow(i as f64, -theta)).sum::<f64>() / zeta;
        for upto in [1, 2, 10, 100, 500, N] {
            let share = counts[..upto as usize].iter().sum::<u64>() as f64 / DRAWS as f64;
            // The first two are exact, the others as good as the approximation.
            let tolerance = if upto <= 2 { 1e-5 } else { 0.03 };
            assert!(
                (share - expected(upto)).abs() < tolerance,
                "{upto}: {share} for {}",
                expected(upto)
            );
        }
    }

    #[test]
    fn one_and_two_keys_work() {
        for n in [1, 2] {
            let zipf = Zipf::new(n, 0.5);
            for i in 0..1_000 {
                assert!(zipf.rank(f64::from(i) / 1_000.0) < n);
            }
        }
    }
}
