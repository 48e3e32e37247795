//! Whether an experiment can be run.

use crate::error::{SimError, in_range};
use crate::experiment::{Experiment, Length, MAX_SERVERS, own_slo};
use crate::rack;
use crate::span::check_span;
use headway_policy::{MAX_CLASSES, MAX_WORKERS, PolicySpec};
use headway_workload::{Offered, Workload};

impl Experiment {
    /// Checks the experiment without running it.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn check(&self) -> Result<(), SimError> {
        in_range(
            "the number of workers",
            self.workers as f64,
            1.0,
            MAX_WORKERS as f64,
        )?;
        let classes = self.workload.class_names().len();
        in_range(
            "the number of classes",
            classes as f64,
            1.0,
            MAX_CLASSES as f64,
        )?;
        check_slos(&self.workload)?;
        in_range("the warm-up", self.warm_up, 0.0, 0.99)?;
        in_range(
            "the share of unknown requests",
            self.unknown_share,
            0.0,
            1.0,
        )?;
        self.check_core_changes()?;
        let least = f64::MIN_POSITIVE;
        match self.offered {
            Offered::Rate(rate) => in_range("the rate", rate, least, 1e12)?,
            Offered::Load { load, .. } => in_range("the load", load, least, 1e6)?,
        }
        match self.length {
            Length::Requests(requests) => {
                in_range("the number of requests", requests as f64, 1.0, 1e15)?;
            }
            Length::Duration(ns) => in_range("the duration in ns", ns as f64, 1.0, 1e18)?,
        }
        let span_ns = self.time_of_ns(self.expected_requests());
        check_span(span_ns)?;
        if let Some(ns) = self.timeline_ns {
            in_range("the timeline's interval in ns", ns as f64, 1.0, 1e18)?;
            check_timeline(ns, span_ns, classes)?;
        }
        self.workload.check()?;
        self.check_flows()?;
        self.check_begun()?;
        in_range(
            "the number of servers",
            self.servers as f64,
            1.0,
            MAX_SERVERS as f64,
        )?;
        self.check_racks()?;
        self.check_policy()
    }

    /// Checks that the servers divide evenly into the racks.
    fn check_racks(&self) -> Result<(), SimError> {
        if self.racks > 0 && self.servers.is_multiple_of(self.racks) {
            return Ok(());
        }
        Err(SimError::OutOfRange {
            what: "the number of racks",
            expected: format!("a divisor of the number of servers, {}", self.servers),
            given: self.racks.to_string(),
        })
    }

    /// Checks the number of flows, and that the policy's own parameters state no other flows.
    fn check_flows(&self) -> Result<(), SimError> {
        let Some(flows) = self.flows else {
            return Ok(());
        };
        flows.check()?;
        match &self.policy {
            PolicySpec::Server(policy) if policy.gives("flows") => Err(SimError::FlowsTwice {
                policy: policy.to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// Checks that there is one server before which requests can wait.
    fn check_begun(&self) -> Result<(), SimError> {
        match (self.begun_at_most, &self.policy) {
            (None, _) | (Some(1..), PolicySpec::Server(_)) => Ok(()),
            (Some(0), _) => in_range("the limit of begun requests", 0.0, 1.0, 1e15),
            (Some(_), policy) => Err(SimError::NoAdmission {
                policy: policy.to_string(),
            }),
        }
    }

    /// Checks the policy against the number of servers, and its parameters against their shape.
    fn check_policy(&self) -> Result<(), SimError> {
        match &self.policy {
            PolicySpec::Rack { spec, inner, .. } => rack::check(self, spec, inner.as_ref()),
            PolicySpec::Host { spec, .. } => Err(SimError::of_host(spec)),
            PolicySpec::Server(_) | PolicySpec::Fluid if self.servers > 1 => {
                Err(SimError::NoSwitch {
                    policy: self.policy.to_string(),
                })
            }
            PolicySpec::Server(policy) => self.costs.check_policy(policy, &self.shape()),
            PolicySpec::Fluid => Ok(()),
        }
    }

    /// Checks the worker changes: they are in order of time, name existing workers, and each changes its worker's presence.
    fn check_core_changes(&self) -> Result<(), SimError> {
        let workers = self.total_workers();
        let mut present = vec![true; workers];
        let mut last_ns = 0;
        for change in &self.core_changes {
            let worker = change.worker.index();
            in_range(
                "a worker that comes or goes",
                worker as f64,
                0.0,
                workers as f64 - 1.0,
            )?;
            in_range(
                "the time of a core change in ns",
                change.at_ns as f64,
                last_ns as f64,
                1e18,
            )?;
            last_ns = change.at_ns;
            if present[worker] == change.present {
                let (doing, state) = if change.present {
                    ("comes", "there")
                } else {
                    ("goes", "away")
                };
                return Err(SimError::OutOfRange {
                    what: "a core change",
                    expected: "of a worker that is not in that state already".into(),
                    given: format!("worker {worker}, which {doing} although it is {state}"),
                });
            }
            present[worker] = change.present;
        }
        Ok(())
    }
}

/// Refuses more histograms than memory should hold, a quarter of a MB each. The refusal names the interval to ask for.
fn check_timeline(interval_ns: u64, span_ns: f64, classes: usize) -> Result<(), SimError> {
    const MOST_HISTOGRAMS: f64 = 8_000.0;
    let least_ns = span_ns * classes as f64 / MOST_HISTOGRAMS;
    if interval_ns as f64 >= least_ns {
        return Ok(());
    }
    let steps = (0..18).flat_map(|decade| [1, 2, 5].map(|step| step * 10_u64.pow(decade)));
    let enough = steps.into_iter().find(|ns| *ns as f64 >= least_ns);
    Err(SimError::OutOfRange {
        what: "the timeline's interval",
        expected: format!(
            "{} or longer, since each of a run of {} has a histogram a class",
            headway_workload::duration::format(enough.unwrap_or(u64::MAX)),
            headway_report::format::duration_us(span_ns / 1e3)
        ),
        given: headway_workload::duration::format(interval_ns),
    })
}

/// Checks that the classes' own SLOs parse.
///
/// # Errors
/// [`SimError::ClassSlo`] for the first class whose SLO does not parse.
pub fn check_slos(workload: &Workload) -> Result<(), SimError> {
    workload.union().try_for_each(|class| {
        let own = own_slo(class).transpose();
        own.map_err(|source| SimError::ClassSlo {
            class: class.name.clone(),
            source,
        })
        .map(drop)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class_hints;

    fn workload(slo: &str) -> Workload {
        let text = format!(
            "[[class]]\nname = \"a, odd.name\"\nshare = 1.0\nslo = \"{slo}\"\nservice = {{ dist = \"constant\", mean = \"2us\" }}"
        );
        Workload::from_toml_str(&text, "mix.toml").unwrap()
    }

    #[test]
    fn no_request_is_lost_where_virtual_time_ends() {
        let fixed = Workload::named("fixed-1us").unwrap();
        let slow = |rate, requests, policy: &str| {
            let experiment = Experiment::new(fixed.clone(), policy.parse().unwrap());
            let experiment = experiment.workers(2).requests(requests);
            experiment.offered(Offered::Rate(rate)).run()
        };
        // 347 days of arrivals; 10 days are all measured.
        for policy in ["c-fcfs", "ps", "racksched,inner=d-fcfs"] {
            let refused = slow(0.001, 30_000, policy).unwrap_err().to_string();
            assert!(
                refused.contains("347: ask for fewer"),
                "{policy}: {refused}"
            );
            let outcome = slow(0.035, 30_000, policy).unwrap();
            assert_eq!(outcome.recorder.overall().count(), 27_000, "{policy}");
        }
        // Few arrivals, and services that end beyond.
        let mut long = fixed.clone();
        long.classes[0].service = headway_workload::ServiceDistribution::Constant {
            mean_ns: (1 << 53) - 1,
        };
        for policy in ["c-fcfs", "racksched,inner=d-fcfs"] {
            let experiment = Experiment::new(long.clone(), policy.parse().unwrap());
            let run = experiment
                .workers(1)
                .requests(10)
                .offered(Offered::Rate(1.0))
                .run();
            let refused = run.unwrap_err().to_string();
            assert!(refused.contains("the virtual time"), "{policy}: {refused}");
        }
    }

    #[test]
    fn a_measured_cost_that_takes_a_whole_quantum_is_refused() {
        let with_cost = |policy: &str, notif_ns| {
            let mut experiment =
                Experiment::new(workload("slowdown.p99<=4"), policy.parse().unwrap());
            experiment.costs.notif_ns = Some(notif_ns);
            experiment.check()
        };
        for policy in [
            "tardis,q=1us,charge=request",
            "racksched,inner=tiny-quanta,q=1us,charge=request,cost=5ns",
        ] {
            assert!(with_cost(policy, 999).is_ok(), "{policy}");
            let why = with_cost(policy, 1_000).unwrap_err().to_string();
            assert!(why.contains("measured") && why.contains("1000ns"), "{why}");
        }
        assert!(with_cost("tardis,q=1us,charge=blocking", 1_000).is_ok());
        assert!(with_cost("c-fcfs", 1_000).is_ok());
    }

    #[test]
    fn a_class_slo_that_cannot_be_read_is_refused_with_its_class() {
        let checked = |slo| Experiment::new(workload(slo), "edf".parse().unwrap()).check();
        assert!(checked("slowdown.p99<=4").is_ok());
        let why = checked("slowdwn.p99<=4").unwrap_err().to_string();
        assert!(
            why.contains("'a, odd.name'") && why.contains("slowdwn"),
            "{why}"
        );
        let hints = class_hints(&workload("slowdown.p99<=4"));
        assert_eq!(hints[0].slo_ns, Some(8_000));
    }

    #[test]
    fn a_timeline_of_more_histograms_than_memory_holds_names_the_interval() {
        // A second in microseconds, of two classes.
        let refused = check_timeline(1_000, 1e9, 2).unwrap_err().to_string();
        assert!(refused.contains("500us or longer"), "{refused}");
        assert!(refused.ends_with("not 1us"), "{refused}");
        check_timeline(500_000, 1e9, 2).unwrap();
        check_timeline(250_000, 1e9, 2).unwrap();
        assert!(check_timeline(249_999, 1e9, 2).is_err());
    }
}
