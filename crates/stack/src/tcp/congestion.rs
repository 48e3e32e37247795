//! Congestion control (RFC 5681, with the larger first window of RFC 6928).
//!
//! Not CUBIC (RFC 9438): its growth over time pays on paths whose round trips are long. In a data centre they take 10 to 100 µs, so that a window which grows by
//! a segment each round trip is back within milliseconds; RFC 9438 itself follows Reno there.

/// The window of a sender, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CongestionWindow {
    mss: u64,
    window: u64,
    /// Below it the window doubles each round trip.
    threshold: u64,
    /// Acknowledged bytes since the window last grew.
    acknowledged: u64,
}

impl CongestionWindow {
    pub(crate) fn new(mss: usize) -> Self {
        let mss = mss as u64;
        Self {
            mss,
            window: (10 * mss).min(14_600.max(2 * mss)),
            threshold: u64::MAX,
            acknowledged: 0,
        }
    }

    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// New data was acknowledged while `in_flight` bytes were under way. A window that was not used does not grow.
    pub(crate) fn acknowledged(&mut self, bytes: u64, in_flight: u64) {
        if 2 * in_flight < self.window {
            return;
        }
        if self.window < self.threshold {
            // At most two segments, whatever an acknowledgement covers (RFC 3465).
            self.window += bytes.min(2 * self.mss);
            return;
        }
        self.acknowledged += bytes;
        if self.acknowledged >= self.window {
            self.acknowledged -= self.window;
            self.window += self.mss;
        }
    }

    /// A segment was lost.
    pub(crate) fn lost(&mut self, in_flight: u64) {
        self.threshold = (in_flight / 2).max(2 * self.mss);
        self.window = self.threshold;
        self.acknowledged = 0;
    }

    /// A segment was not acknowledged in time; `is_first` unless its retransmission was not either.
    pub(crate) fn timed_out(&mut self, in_flight: u64, is_first: bool) {
        if is_first {
            self.threshold = (in_flight / 2).max(2 * self.mss);
        }
        self.window = self.mss;
        self.acknowledged = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_then_adds_a_segment_each_round_trip_and_halves_at_a_loss() {
        let mut control = CongestionWindow::new(1000);
        let round = |control: &mut CongestionWindow| {
            let window = control.window();
            for _ in 0..window / 1000 {
                control.acknowledged(1000, window);
            }
        };
        assert_eq!(control.window(), 10_000);
        round(&mut control);
        assert_eq!(control.window(), 20_000);
        control.lost(20_000);
        assert_eq!(control.window(), 10_000);
        round(&mut control);
        assert_eq!(control.window(), 11_000);
        control.acknowledged(1000, 1000);
        assert_eq!(control.window(), 11_000, "it was not used");
        control.timed_out(11_000, true);
        assert_eq!(control.window(), 1000);
        (0..3).for_each(|_| round(&mut control));
        assert_eq!(control.window(), 6000, "half of it, then slowly");
    }
}
