//! What a run offers where the phases of its workload differ.

use crate::experiment::{Experiment, Length};
use headway_workload::{Arrivals, Offered};

/// Means over the time of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct MeanOffered {
    /// Requests per second.
    pub(crate) rate_rps: f64,
    /// Part of the cores' time that the requests need.
    pub(crate) load: f64,
}

impl Experiment {
    /// The means over the arrivals' time, which ended at `cut_off_ns` where the run was cut off.
    pub(crate) fn mean_offered(&self, cut_off_ns: Option<u64>) -> MeanOffered {
        let first = MeanOffered {
            rate_rps: self.rate_rps(),
            load: self.offered_load(),
        };
        let phases = &self.workload.phases;
        if phases.len() < 2 || matches!(self.workload.arrivals, Arrivals::Trace(_)) {
            return first;
        }
        let (mut elapsed_ns, mut requests, mut busy_ns) = (0.0, 0.0, 0.0);
        for (index, phase) in phases.iter().enumerate() {
            let MeanOffered { rate_rps, load } = self.offered_at(phase.mean_service_ns());
            let left_ns = match (cut_off_ns, self.length) {
                (Some(ns), _) | (None, Length::Duration(ns)) => ns as f64 - elapsed_ns,
                (None, Length::Requests(all)) => (all as f64 - requests) / rate_rps * 1e9,
            };
            let is_last = index + 1 == phases.len();
            let part_ns = if is_last {
                left_ns
            } else {
                left_ns.min(phase.duration_ns as f64)
            };
            if part_ns <= 0.0 {
                break;
            }
            elapsed_ns += part_ns;
            requests += rate_rps * part_ns / 1e9;
            busy_ns += load * part_ns;
        }
        if elapsed_ns == 0.0 {
            return first;
        }
        MeanOffered {
            rate_rps: requests / elapsed_ns * 1e9,
            load: busy_ns / elapsed_ns,
        }
    }

    /// What is offered while the mean service time is this.
    fn offered_at(&self, mean_ns: f64) -> MeanOffered {
        match self.offered {
            Offered::Rate(rate_rps) => MeanOffered {
                rate_rps,
                load: rate_rps * mean_ns / (self.load_cores() as f64 * 1e9),
            },
            Offered::Load { load, workers } => MeanOffered {
                rate_rps: load * workers as f64 * 1e9 / mean_ns,
                load: self.offered_load(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_workload::{Phase, Workload};

    /// 20 ms of requests of 1 µs, then of 10 µs, at 4 workers.
    fn phased() -> Experiment {
        let mut workload = Workload::named("fixed-1us").unwrap();
        workload.phases = ["fixed-1us", "exponential-10us"]
            .map(|name: &str| {
                let mut classes = Workload::named(name).unwrap().classes;
                classes[0].name = name.into();
                Phase {
                    duration_ns: 20_000_000,
                    classes,
                }
            })
            .into();
        workload.classes.clear();
        Experiment::new(workload, "c-fcfs".parse().unwrap()).workers(4)
    }

    #[track_caller]
    fn assert_close(given: f64, expected: f64) {
        assert!((given / expected - 1.0).abs() < 0.02, "{given}, {expected}");
    }

    #[test]
    fn a_run_reports_what_all_its_phases_offered() {
        let mut experiment = phased().load(0.5);
        experiment.length = Length::Duration(80_000_000);
        let meta = experiment.run().unwrap().run.meta;
        // A quarter of the time at 2 million a second, three at 200 thousand.
        assert_close(meta.offered_rps, 650_000.0);
        assert_close(meta.requests as f64 / 0.08, meta.offered_rps);
        assert_eq!(meta.load, 0.5);
        assert_close(meta.utilization, 0.5);
        let by_number = phased().load(0.5).requests(52_000).run().unwrap().run.meta;
        assert_close(by_number.offered_rps, 650_000.0);
    }

    #[test]
    fn the_load_at_a_given_rate_is_the_mean_of_the_phases() {
        let mut experiment = phased().offered(Offered::Rate(300_000.0));
        experiment.length = Length::Duration(80_000_000);
        let meta = experiment.run().unwrap().run.meta;
        assert_eq!(meta.offered_rps, 300_000.0);
        assert_close(meta.load, (0.075 + 3.0 * 0.75) / 4.0);
        assert_close(meta.utilization, meta.load);
        let cut_off = experiment.mean_offered(Some(20_000_000));
        assert_close(cut_off.load, 0.075);
    }
}
