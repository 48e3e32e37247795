//! Latencies over the course of a run: they show the effect of a change of the workload.

use headway_report::Histogram;

/// Requests that arrived within one interval of virtual time.
#[derive(Clone, Debug)]
pub struct TimelineInterval {
    /// Start of the interval; it ends where the next begins.
    pub from_ns: u64,
    /// Latencies in ns, a histogram for each class in the workload's order.
    pub classes: Vec<Histogram>,
}

/// Intervals of equal length, allocated as requests arrive in them. A request counts in the
/// interval of its arrival, as in Perséphone's Figure 7; the warm-up counts, too.
#[derive(Clone, Debug)]
pub(crate) struct Timeline {
    interval_ns: u64,
    classes: usize,
    intervals: Vec<TimelineInterval>,
}

impl Timeline {
    /// `interval_ns` is at least 1.
    pub(crate) fn new(interval_ns: u64, classes: usize) -> Self {
        Self {
            interval_ns,
            classes,
            intervals: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn record(&mut self, arrived_ns: u64, class: usize, latency_ns: u64) {
        let index = (arrived_ns / self.interval_ns) as usize;
        while self.intervals.len() <= index {
            self.intervals.push(TimelineInterval {
                from_ns: self.intervals.len() as u64 * self.interval_ns,
                classes: vec![Histogram::new(); self.classes],
            });
        }
        self.intervals[index].classes[class].record(latency_ns);
    }

    pub(crate) fn into_intervals(self) -> Vec<TimelineInterval> {
        self.intervals
    }
}

#[cfg(test)]
mod tests {
    use super::Timeline;

    #[test]
    fn a_request_counts_where_it_arrived() {
        let mut timeline = Timeline::new(100, 2);
        timeline.record(250, 1, 7);
        timeline.record(99, 0, 1_000);
        let intervals = timeline.into_intervals();
        let counts: Vec<(u64, [u64; 2])> = intervals
            .iter()
            .map(|interval| {
                (
                    interval.from_ns,
                    [0, 1].map(|class| interval.classes[class].count()),
                )
            })
            .collect();
        assert_eq!(counts, [(0, [1, 0]), (100, [0, 0]), (200, [0, 1])]);
    }
}
