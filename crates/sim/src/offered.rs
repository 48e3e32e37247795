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

/// Where arrivals end.
#[derive(Clone, Copy)]
enum ArrivalsEnd {
    /// At this time from the start, ns.
    At(f64),
    /// After this number of requests.
    After(f64),
}

/// Sums over the arrivals' time.
#[derive(Clone, Copy, Default)]
struct OfferedSums {
    elapsed_ns: f64,
    requests: f64,
    /// Load × time.
    busy_ns: f64,
}

impl Experiment {
    /// The means over the arrivals' time, which ended at `cut_off_ns` where the run was cut off.
    pub(crate) fn mean_offered(&self, cut_off_ns: Option<u64>) -> MeanOffered {
        let first = MeanOffered {
            rate_rps: self.rate_rps(),
            load: self.offered_load(),
        };
        if !self.changes() {
            return first;
        }
        let sums = self.offered_until(match (cut_off_ns, self.length) {
            (Some(ns), _) | (None, Length::Duration(ns)) => ArrivalsEnd::At(ns as f64),
            (None, Length::Requests(all)) => ArrivalsEnd::After(all as f64),
        });
        if sums.elapsed_ns == 0.0 {
            return first;
        }
        MeanOffered {
            rate_rps: sums.requests / sums.elapsed_ns * 1e9,
            load: sums.busy_ns / sums.elapsed_ns,
        }
    }

    /// The expected number of arrivals within this time.
    pub(crate) fn requests_within(&self, ns: u64) -> f64 {
        let at_first_rate = self.rate_rps() * ns as f64 / 1e9;
        if !self.changes() {
            return at_first_rate;
        }
        let requests = self.offered_until(ArrivalsEnd::At(ns as f64)).requests;
        unless_rounded(at_first_rate, requests)
    }

    /// The expected time of this many arrivals, ns.
    #[must_use]
    pub fn time_of_ns(&self, requests: f64) -> f64 {
        let at_first_rate = requests / self.rate_rps() * 1e9;
        if !self.changes() {
            return at_first_rate;
        }
        let elapsed_ns = self.offered_until(ArrivalsEnd::After(requests)).elapsed_ns;
        unless_rounded(at_first_rate, elapsed_ns)
    }

    /// Whether its workload has phases that follow each other.
    fn changes(&self) -> bool {
        self.workload.phases.len() > 1 && !matches!(self.workload.arrivals, Arrivals::Trace(_))
    }

    fn offered_until(&self, end: ArrivalsEnd) -> OfferedSums {
        let phases = &self.workload.phases;
        let mut sums = OfferedSums::default();
        for (index, phase) in phases.iter().enumerate() {
            let MeanOffered { rate_rps, load } = self.offered_at(phase.mean_service_ns());
            let left_ns = match end {
                ArrivalsEnd::At(ns) => ns - sums.elapsed_ns,
                ArrivalsEnd::After(all) => (all - sums.requests) / rate_rps * 1e9,
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
            sums.elapsed_ns += part_ns;
            sums.requests += rate_rps * part_ns / 1e9;
            sums.busy_ns += load * part_ns;
        }
        sums
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

/// The sum over phases, or what the first phase's rate gives where only rounding tells them apart: a warm-up then ends at the same request.
fn unless_rounded(at_first_rate: f64, over_phases: f64) -> f64 {
    if (over_phases / at_first_rate - 1.0).abs() < 1e-9 {
        at_first_rate
    } else {
        over_phases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_workload::{Phase, ServiceDistribution, Workload};

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

    /// By the first phase's rate alone, the warm-up was longer than the run.
    #[test]
    fn the_warm_up_is_a_tenth_of_what_all_phases_offer() {
        let mut experiment = phased().load(0.5);
        let slow = &mut experiment.workload.phases[1];
        slow.classes = Workload::named("fixed-1us").unwrap().classes;
        slow.classes[0].name = "slow".into();
        slow.classes[0].service = ServiceDistribution::Constant { mean_ns: 1_000_000 };
        experiment.length = Length::Duration(1_000_000_000);
        // 2 million a second for 20 ms, then two thousand.
        assert_close(experiment.expected_requests(), 41_960.0);
        let run = experiment.run().unwrap().run;
        let measured: u64 = run.classes.iter().map(|class| class.count).sum();
        assert_close(measured as f64, 0.9 * 41_960.0);
        assert_close(experiment.time_of_ns(41_960.0), 1e9);
        assert_close(experiment.time_of_ns(4_000.0), 2e6);
    }

    #[test]
    fn phases_of_one_mean_end_the_warm_up_at_the_request_at_which_none_do() {
        let mut alike = phased().load(0.3);
        alike.workload.phases[1].classes = alike.workload.phases[0].classes.clone();
        let mut plain = alike.clone();
        plain.workload.phases.truncate(1);
        for ns in [7, 33_333_333, 80_000_000] {
            assert_eq!(alike.requests_within(ns), plain.requests_within(ns), "{ns}");
        }
    }
}
