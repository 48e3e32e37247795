//! Whether a group gets more than it can take (Pallas § 4.5).

/// Arrivals of one group in windows of fixed length against what its cores can finish meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    window_ns: u64,
    /// `C_thres = Σ N_i`: requests that the group's cores finish in a window, and at least one, since a single request is no burst.
    threshold: u64,
    window: u64,
    arrivals: u64,
}

impl Burst {
    /// Windows of `window_ns`; no threshold yet.
    ///
    /// # Panics
    /// When `window_ns` is 0.
    #[must_use]
    pub fn new(window_ns: u64) -> Self {
        assert!(window_ns > 0, "a window has a length");
        Self {
            window_ns,
            threshold: u64::MAX,
            window: 0,
            arrivals: 0,
        }
    }

    /// So many cores serve the group, whose requests take so long on average.
    pub fn provision(&mut self, cores: usize, mean_ns: f64) {
        self.threshold = if mean_ns > 0.0 {
            ((cores as f64 * self.window_ns as f64 / mean_ns) as u64).max(1)
        } else {
            u64::MAX
        };
    }

    /// Requests that the group's cores finish in a window; `u64::MAX` before the first response.
    #[must_use]
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// A request arrived; whether it is in excess.
    #[inline]
    pub fn arrived(&mut self, now_ns: u64) -> bool {
        let window = now_ns / self.window_ns;
        if window != self.window {
            (self.window, self.arrivals) = (window, 0);
        }
        self.arrivals += 1;
        self.arrivals > self.threshold
    }

    /// Whether this group's degree of burst, arrivals ÷ threshold in the present window, is below the other's.
    #[inline]
    #[must_use]
    pub fn is_calmer_than(&self, other: &Self, now_ns: u64) -> bool {
        let (mine, theirs) = (self.present(now_ns), other.present(now_ns));
        u128::from(mine) * u128::from(other.threshold)
            < u128::from(theirs) * u128::from(self.threshold)
    }

    #[inline]
    fn present(&self, now_ns: u64) -> u64 {
        if now_ns / self.window_ns == self.window {
            self.arrivals
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excess_begins_beyond_what_the_cores_can_finish() {
        let mut burst = Burst::new(20_000);
        burst.provision(40, 10_000.0);
        let excess = (0..100).filter(|&k| burst.arrived(k)).count();
        assert_eq!(excess, 20);
        assert!(!burst.arrived(20_000), "a new window starts over");
    }

    /// Where a request takes longer than the cores have in a window, one at a time is no excess.
    #[test]
    fn one_request_is_no_burst() {
        let mut burst = Burst::new(20_000);
        burst.provision(4, 1_000_000.0);
        assert!(!burst.arrived(0));
        assert!(burst.arrived(1));
        assert!(!burst.arrived(20_000));
    }

    #[test]
    fn degrees_compare_arrivals_over_thresholds() {
        let (mut short, mut long) = (Burst::new(20_000), Burst::new(20_000));
        short.provision(40, 10_000.0);
        long.provision(40, 100_000.0);
        (0..8).for_each(|_| {
            short.arrived(5);
            long.arrived(5);
        });
        assert!(short.is_calmer_than(&long, 5));
        assert!(!long.is_calmer_than(&short, 5));
        assert!(
            !short.is_calmer_than(&long, 25_000),
            "both are calm by then"
        );
    }
}
