//! The retransmission timeout (RFC 6298).

use super::time::{MILLISECOND_NS, SECOND_NS};

/// Before the first measurement. RFC 6298 has 1 s for paths around the world; in a data centre a lost SYN would be the slowest of a million connections.
const FIRST_NS: u64 = 100 * MILLISECOND_NS;
/// RFC 6298 has 1 s. It must be above the peer's delay of acknowledgements, which is 1 ms in this stack and up to 40 ms in Linux: Linux acknowledges the first
/// segments of a connection and every second one at once, and a timeout that came too early costs one segment.
pub(crate) const LEAST_NS: u64 = 5 * MILLISECOND_NS;
const MOST_NS: u64 = 60 * SECOND_NS;

/// Round trip times, smoothed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RttEstimator {
    smoothed_ns: Option<u64>,
    variation_ns: u64,
    backoff: u32,
}

impl RttEstimator {
    /// Takes a measurement of a segment that was sent once (Karn's algorithm).
    pub(crate) fn measured(&mut self, rtt_ns: u64) {
        match self.smoothed_ns {
            None => {
                self.smoothed_ns = Some(rtt_ns);
                self.variation_ns = rtt_ns / 2;
            }
            Some(smoothed) => {
                self.variation_ns = (3 * self.variation_ns + smoothed.abs_diff(rtt_ns)) / 4;
                self.smoothed_ns = Some((7 * smoothed + rtt_ns) / 8);
            }
        }
    }

    /// The peer acknowledged something new.
    pub(crate) fn progressed(&mut self) {
        self.backoff = 0;
    }

    /// The timeout passed.
    pub(crate) fn expired(&mut self) {
        self.backoff = (self.backoff + 1).min(20);
    }

    /// The timeouts in succession.
    pub(crate) fn expirations(&self) -> u32 {
        self.backoff
    }

    /// The timeout.
    pub(crate) fn timeout_ns(&self) -> u64 {
        let base = self.smoothed_ns.map_or(FIRST_NS, |smoothed| {
            (smoothed + 4 * self.variation_ns).max(LEAST_NS)
        });
        (base << self.backoff).min(MOST_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_round_trips_between_its_bounds() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.timeout_ns(), FIRST_NS);
        rtt.measured(50_000);
        assert_eq!(rtt.timeout_ns(), LEAST_NS);
        rtt.measured(80 * MILLISECOND_NS);
        assert!(rtt.timeout_ns() > 80 * MILLISECOND_NS, "{rtt:?}");
        for _ in 0..100 {
            rtt.measured(80 * MILLISECOND_NS);
        }
        let steady = rtt.timeout_ns();
        assert!((80..90).contains(&(steady / MILLISECOND_NS)), "{rtt:?}");
        rtt.expired();
        assert_eq!(rtt.timeout_ns(), 2 * steady);
        (0..50).for_each(|_| rtt.expired());
        assert_eq!(rtt.timeout_ns(), MOST_NS);
        rtt.progressed();
        assert_eq!(rtt.timeout_ns(), steady);
    }
}
