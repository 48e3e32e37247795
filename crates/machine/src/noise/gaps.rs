//! Gaps between the clock readings of a thread that never sleeps.

use super::summary::NoiseSummary;

/// Counts the gaps a spinning thread sees between its looks at the clock.
///
/// Constant size, no allocation: a dispatcher may feed it on every turn of its loop.
#[derive(Debug, Clone)]
pub struct GapLog {
    floor_ns: u64,
    first_ns: Option<u64>,
    last_ns: u64,
    lost_ns: u64,
    longest_ns: u64,
    over_10us: u64,
    over_100us: u64,
    over_1ms: u64,
}

impl Default for GapLog {
    /// For a loop whose turns take well under a microsecond.
    fn default() -> GapLog {
        GapLog::new(1_000)
    }
}

impl GapLog {
    /// A log for a loop whose longest undisturbed turn takes `floor_ns`: longer gaps count as lost.
    pub fn new(floor_ns: u64) -> GapLog {
        GapLog {
            floor_ns,
            first_ns: None,
            last_ns: 0,
            lost_ns: 0,
            longest_ns: 0,
            over_10us: 0,
            over_100us: 0,
            over_1ms: 0,
        }
    }

    /// Notes that the thread was running at `now_ns`; call it every turn.
    #[inline]
    pub fn observe(&mut self, now_ns: u64) {
        let gap_ns = now_ns.saturating_sub(self.last_ns);
        self.last_ns = now_ns;
        if gap_ns > self.floor_ns {
            self.note(gap_ns, now_ns);
        }
    }

    /// Forgets the time since the last observation, which the thread slept or worked through on purpose.
    #[inline]
    pub fn resume(&mut self, now_ns: u64) {
        if let Some(first_ns) = &mut self.first_ns {
            *first_ns += now_ns.saturating_sub(self.last_ns);
            self.last_ns = now_ns;
        }
    }

    #[cold]
    fn note(&mut self, gap_ns: u64, now_ns: u64) {
        if self.first_ns.is_none() {
            self.first_ns = Some(now_ns);
            return;
        }
        self.lost_ns += gap_ns;
        self.longest_ns = self.longest_ns.max(gap_ns);
        self.over_10us += u64::from(gap_ns > 10_000);
        self.over_100us += u64::from(gap_ns > 100_000);
        self.over_1ms += u64::from(gap_ns > 1_000_000);
    }

    /// The noise observed so far, without the run delay, which only the kernel knows.
    pub fn noise(&self) -> NoiseSummary {
        let observed_ns = self.first_ns.map_or(0, |first_ns| self.last_ns - first_ns);
        let lost_fraction = if observed_ns == 0 {
            0.0
        } else {
            self.lost_ns as f64 / observed_ns as f64
        };
        NoiseSummary {
            lost_fraction,
            observed_ns,
            gaps_over_10us: self.over_10us,
            gaps_over_100us: self.over_100us,
            gaps_over_1ms: self.over_1ms,
            longest_gap_ns: self.longest_ns,
            run_delay_ns: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_NS: u64 = 5_000_000_000;

    /// A log fed with turns of 100 ns in which the given gaps occur.
    fn log_with(gaps_ns: &[u64]) -> GapLog {
        let mut log = GapLog::default();
        let mut now_ns = START_NS;
        log.observe(now_ns);
        for gap_ns in gaps_ns {
            for step_ns in [100, 100, *gap_ns] {
                now_ns += step_ns;
                log.observe(now_ns);
            }
        }
        log
    }

    #[test]
    fn an_undisturbed_spin_loses_nothing() {
        let noise = log_with(&[100; 50]).noise();
        assert_eq!(
            noise,
            NoiseSummary {
                observed_ns: 50 * 300,
                ..NoiseSummary::default()
            }
        );
    }

    #[test]
    fn gaps_fall_into_every_class_they_exceed() {
        let noise = log_with(&[500, 5_000, 20_000, 200_000, 2_000_000]).noise();
        let counts = (
            noise.gaps_over_10us,
            noise.gaps_over_100us,
            noise.gaps_over_1ms,
        );
        assert_eq!(counts, (3, 2, 1));
        assert_eq!(noise.longest_gap_ns, 2_000_000);
        let (lost_ns, observed_ns) = (2_225_000.0, 2_226_500.0);
        assert!((noise.lost_fraction - lost_ns / observed_ns).abs() < 1e-12);
    }

    #[test]
    fn the_time_before_the_first_look_is_no_gap() {
        let mut log = GapLog::default();
        log.observe(START_NS);
        assert_eq!(log.noise(), NoiseSummary::default());
    }

    #[test]
    fn time_slept_on_purpose_is_not_observed() {
        let mut log = log_with(&[100]);
        log.resume(START_NS + 1_000_000);
        log.observe(START_NS + 1_000_200);
        assert_eq!(
            log.noise(),
            NoiseSummary {
                observed_ns: 500,
                ..NoiseSummary::default()
            }
        );
    }
}
