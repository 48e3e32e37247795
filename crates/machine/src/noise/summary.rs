//! The time taken away from one thread, in figures.

/// The share of time lost beyond which tail latencies should not be believed. A pinned spin on an idle
/// virtual machine loses about 1 %, most of it to the tick.
pub const QUIET_LOST_FRACTION: f64 = 0.015;

/// How much was taken away from a spinning thread.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NoiseSummary {
    /// Time lost in gaps, as a share of the time observed, 0 to 1.
    pub lost_fraction: f64,
    /// The time observed, in nanoseconds.
    pub observed_ns: u64,
    /// Gaps of more than 10 µs (including the longer ones).
    pub gaps_over_10us: u64,
    /// Gaps of more than 100 µs (including the longer ones).
    pub gaps_over_100us: u64,
    /// Gaps of more than 1 ms.
    pub gaps_over_1ms: u64,
    /// The longest gap, in nanoseconds.
    pub longest_gap_ns: u64,
    /// Time the thread was ready but another ran, in nanoseconds; none where the kernel does not account it.
    pub run_delay_ns: Option<u64>,
}

impl NoiseSummary {
    /// Whether tail latencies measured meanwhile may be believed: less than [`QUIET_LOST_FRACTION`] lost.
    pub fn quiet_enough(&self) -> bool {
        self.lost_fraction <= QUIET_LOST_FRACTION
    }

    /// Two observations as one: counts add up, the share is that of the whole, the longest gap the longer.
    pub fn merge(&self, other: &NoiseSummary) -> NoiseSummary {
        let observed_ns = self.observed_ns + other.observed_ns;
        let lost_ns = self.lost_ns() + other.lost_ns();
        NoiseSummary {
            lost_fraction: if observed_ns == 0 {
                0.0
            } else {
                lost_ns / observed_ns as f64
            },
            observed_ns,
            gaps_over_10us: self.gaps_over_10us + other.gaps_over_10us,
            gaps_over_100us: self.gaps_over_100us + other.gaps_over_100us,
            gaps_over_1ms: self.gaps_over_1ms + other.gaps_over_1ms,
            longest_gap_ns: self.longest_gap_ns.max(other.longest_gap_ns),
            run_delay_ns: self
                .run_delay_ns
                .zip(other.run_delay_ns)
                .map(|(a, b)| a + b),
        }
    }

    fn lost_ns(&self) -> f64 {
        self.lost_fraction * self.observed_ns as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_weighs_by_time() {
        let short = NoiseSummary {
            lost_fraction: 0.5,
            observed_ns: 100,
            longest_gap_ns: 7,
            ..NoiseSummary::default()
        };
        let long = NoiseSummary {
            lost_fraction: 0.1,
            observed_ns: 300,
            gaps_over_10us: 2,
            ..NoiseSummary::default()
        };
        let both = short.merge(&long);
        assert!((both.lost_fraction - 0.2).abs() < 1e-12);
        assert_eq!(
            (both.observed_ns, both.gaps_over_10us, both.longest_gap_ns),
            (400, 2, 7)
        );
        assert_eq!(both.run_delay_ns, None);
    }

    #[test]
    fn the_verdict_is_at_one_and_a_half_percent() {
        assert!(
            NoiseSummary {
                lost_fraction: 0.014,
                ..NoiseSummary::default()
            }
            .quiet_enough()
        );
        assert!(
            !NoiseSummary {
                lost_fraction: 0.016,
                ..NoiseSummary::default()
            }
            .quiet_enough()
        );
    }

    #[cfg(feature = "serde")]
    #[test]
    fn the_json_has_the_fields_of_the_reports() {
        let json = serde_json::to_value(NoiseSummary::default()).unwrap();
        assert_eq!(json["lost_fraction"], 0.0);
        assert_eq!(json["gaps_over_10us"], 0);
    }
}
