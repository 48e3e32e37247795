//! The number of requests of each class in flight, over the run: this series separates an
//! overloaded server from a busy one.

use headway_report::stats::backlog_growth;

/// Batches the run is cut into.
const BATCHES: usize = 64;

/// Requests per worker that a server holds in passing; below that a trend means nothing.
const PASSING_PER_WORKER: f64 = 4.0;

/// Mean number of requests under way in each batch of the time in which requests were sent.
pub(crate) struct BacklogSeries {
    start_ns: u64,
    batch_ns: u64,
    /// By class, then batch: nanoseconds × requests.
    classes: Vec<[f64; BATCHES]>,
}

impl BacklogSeries {
    pub(crate) fn new(classes: usize, start_ns: u64, end_ns: u64) -> Self {
        Self {
            start_ns,
            batch_ns: (end_ns.saturating_sub(start_ns) / BATCHES as u64).max(1),
            classes: vec![[0.0; BATCHES]; classes],
        }
    }

    /// Adds a request that was under way from `from_ns` to `to_ns`.
    pub(crate) fn add(&mut self, class: usize, from_ns: u64, to_ns: u64) {
        let (from_ns, to_ns) = (
            from_ns.saturating_sub(self.start_ns),
            to_ns.saturating_sub(self.start_ns),
        );
        let first = (from_ns / self.batch_ns) as usize;
        let last = (to_ns / self.batch_ns) as usize;
        for batch in first..=last.min(BATCHES - 1) {
            let begin_ns = batch as u64 * self.batch_ns;
            let within_ns = to_ns.min(begin_ns + self.batch_ns) - from_ns.max(begin_ns);
            self.classes[class][batch] += within_ns as f64;
        }
    }

    /// Classes whose backlog grew without bound.
    pub(crate) fn starved(&self, workers: usize) -> Vec<usize> {
        let floor = PASSING_PER_WORKER * workers as f64;
        let grows = |series: &[f64; BATCHES]| {
            let means: Vec<f64> = series
                .iter()
                .map(|sum| sum / self.batch_ns as f64)
                .collect();
            backlog_growth(&means, floor).is_ok_and(|growth| growth.is_growing())
        };
        let classes = self.classes.iter().enumerate();
        classes
            .filter_map(|(class, series)| grows(series).then_some(class))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_counts_in_each_batch_for_as_long_as_it_was_there() {
        let mut backlog = BacklogSeries::new(1, 1_000, 1_000 + 64 * 100);
        backlog.add(0, 1_050, 1_225);
        assert_eq!(backlog.classes[0][..4], [50.0, 100.0, 25.0, 0.0]);
        backlog.add(0, 1_000 + 63 * 100, 1_000_000);
        assert_eq!(backlog.classes[0][63], 100.0, "the rest is after the end");
    }

    #[test]
    fn a_class_whose_requests_take_ever_longer_is_starved() {
        let mut backlog = BacklogSeries::new(2, 0, 64_000);
        for at_ns in (0..64_000).step_by(10) {
            backlog.add(0, at_ns, at_ns + 100);
            backlog.add(1, at_ns, at_ns + 100 + at_ns / 2);
        }
        assert_eq!(backlog.starved(1), [1]);
    }
}
