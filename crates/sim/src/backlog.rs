//! The number of requests of each class in the system, over the run: this series separates an
//! overloaded class from a busy one.

use headway_report::stats::backlog_growth;

/// Batches the run is cut into.
const BATCHES: usize = 64;
/// Samples of the backlog in a batch.
const LOOKS: u64 = 64;
/// Requests per worker that a system holds in passing; below that a trend means nothing.
const PASSING_PER_WORKER: f64 = 4.0;

/// Samples the backlog at arrivals, equally spaced by index. Poisson arrivals see time averages.
pub(crate) struct BacklogSamples {
    in_system: Vec<u32>,
    interval: u64,
    until_look: u64,
    looks: u64,
    sums: Vec<u64>,
    batches: Vec<Vec<f64>>,
}

impl BacklogSamples {
    pub(crate) fn new(classes: usize, expected_arrivals: u64) -> Self {
        let interval = (expected_arrivals / (BATCHES as u64 * LOOKS)).max(1);
        Self {
            in_system: vec![0; classes],
            interval,
            until_look: interval,
            looks: 0,
            sums: vec![0; classes],
            batches: vec![Vec::with_capacity(BATCHES + 1); classes],
        }
    }

    #[inline]
    pub(crate) fn entered(&mut self, class: usize) {
        self.in_system[class] += 1;
        self.until_look -= 1;
        if self.until_look == 0 {
            self.look();
        }
    }

    #[inline]
    pub(crate) fn left(&mut self, class: usize) {
        self.in_system[class] -= 1;
    }

    /// Classes whose backlog grows without bound.
    pub(crate) fn starved(&self, workers: usize) -> Vec<usize> {
        let floor = PASSING_PER_WORKER * workers as f64;
        (0..self.batches.len())
            .filter(|&class| {
                let growth = backlog_growth(&self.batches[class], floor);
                growth.is_ok_and(|growth| growth.is_growing())
            })
            .collect()
    }

    fn look(&mut self) {
        self.until_look = self.interval;
        for (sum, &count) in self.sums.iter_mut().zip(&self.in_system) {
            *sum += u64::from(count);
        }
        self.looks += 1;
        if self.looks == LOOKS {
            for (batches, sum) in self.batches.iter_mut().zip(&mut self.sums) {
                batches.push(*sum as f64 / LOOKS as f64);
                *sum = 0;
            }
            self.looks = 0;
        }
    }
}
