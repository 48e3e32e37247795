//! What to simulate.

use crate::rack::{self, is_rack_policy};
use crate::run::Run;
use crate::{Costs, Outcome, fluid};
use headway_policy::fluid::ProcessorSharing;
use headway_policy::role::{Ingress, Local, Monitor};
use headway_policy::spec::{Spec, SpecError};
use headway_policy::systems::{System, Visit};
use headway_policy::{ClassHint, MAX_CLASSES, MAX_WORKERS, Resume, Shape, WorkerId};
use headway_report::slo::{Measure, Slo, SloError};
use headway_workload::{Offered, Workload};
use std::ops::Range;

/// How long a run is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Length {
    /// So many arrivals, the discarded ones included.
    Requests(u64),
    /// Arrivals during this much virtual time, ns.
    Duration(u64),
}

/// What the server takes a request for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Classifier {
    /// What it is.
    #[default]
    Exact,
    /// Any class, at random (Perséphone § 5.6: a broken classifier).
    Random,
}

/// A worker comes or goes while the run lasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreChange {
    /// When, in virtual time.
    pub at_ns: u64,
    /// Which; in a rack counted over all servers: server × workers + worker.
    pub worker: WorkerId,
    /// Whether it is there from then on.
    pub present: bool,
}

/// Most servers of a rack.
pub const MAX_SERVERS: usize = 1024;

/// Everything a run depends on.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// What arrives.
    pub workload: Workload,
    /// Who decides.
    pub policy: Spec,
    /// Servers, when the policy is a rack's; else 1.
    pub servers: usize,
    /// Workers of a server.
    pub workers: usize,
    /// How much arrives.
    pub offered: Offered,
    /// For how long.
    pub length: Length,
    /// Part of the arrivals, by index, that is simulated but not measured.
    pub warm_up: f64,
    /// Of everything random.
    pub seed: u64,
    /// Of the machinery.
    pub costs: Costs,
    /// Added to every latency, ns.
    pub network_ns: u64,
    /// Most requests in one queue; unbounded unless said.
    pub queue_limit: usize,
    /// Where interrupted requests may go on.
    pub resume: Resume,
    /// What the server takes requests for.
    pub classifier: Classifier,
    /// Part of the requests, 0 to 1, that the classifier does not recognise: they are UNKNOWN to the server, whatever they are.
    pub unknown_share: f64,
    /// Workers coming and going, in order of time.
    pub core_changes: Vec<CoreChange>,
    /// Length of the intervals of [`Outcome::timeline`], ns; none unless said. Each takes some
    /// 250 KiB a class.
    pub timeline_ns: Option<u64>,
    /// The window, ns, that [`Outcome::slices`] tells who ran where in; none unless said.
    pub trace_window: Option<Range<u64>>,
}

/// Why an experiment cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The policy's name or parameters.
    #[error(transparent)]
    Policy(#[from] SpecError),
    /// The applications' limits.
    #[error(transparent)]
    Host(#[from] headway_policy::host::ShapeError),
    /// The workload.
    #[error(transparent)]
    Workload(#[from] headway_workload::Error),
    /// Several servers and nobody who chooses among them.
    #[error(
        "'{policy}' is a server's policy: who gets which request of several servers? Say racksched,inner={policy}"
    )]
    NoSwitch {
        /// The policy.
        policy: String,
    },
    /// A class's own SLO cannot be read.
    #[error("the slo of class '{class}': {source}")]
    ClassSlo {
        /// The class.
        class: String,
        /// What is wrong with it.
        source: SloError,
    },
    /// Something out of range.
    #[error("{what} must be {expected}, not {given}")]
    OutOfRange {
        /// What.
        what: &'static str,
        /// What it may be.
        expected: String,
        /// What it was.
        given: String,
    },
}

impl Experiment {
    /// One server of 14 workers at 80 % load for two million requests: the papers' testbed.
    #[must_use]
    pub fn new(workload: Workload, policy: Spec) -> Self {
        const WORKERS: usize = 14;
        Self {
            workload,
            policy,
            servers: 1,
            workers: WORKERS,
            offered: Offered::Load {
                load: 0.8,
                workers: WORKERS,
            },
            length: Length::Requests(2_000_000),
            warm_up: 0.1,
            seed: 1,
            costs: Costs::default(),
            network_ns: 0,
            queue_limit: usize::MAX,
            resume: Resume::Anywhere,
            classifier: Classifier::Exact,
            unknown_share: 0.0,
            core_changes: Vec::new(),
            timeline_ns: None,
            trace_window: None,
        }
    }

    /// With so many servers. Does not change what is offered.
    #[must_use]
    pub fn servers(mut self, servers: usize) -> Self {
        self.servers = servers;
        self
    }

    /// Workers of all servers.
    #[must_use]
    pub fn total_workers(&self) -> usize {
        self.servers * self.workers
    }

    /// With so many workers a server. Does not change what is offered.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// At this rate or load.
    #[must_use]
    pub fn offered(mut self, offered: Offered) -> Self {
        self.offered = offered;
        self
    }

    /// At this load of all its workers.
    #[must_use]
    pub fn load(self, load: f64) -> Self {
        let workers = self.total_workers();
        self.offered(Offered::Load { load, workers })
    }

    /// For so many arrivals.
    #[must_use]
    pub fn requests(mut self, requests: u64) -> Self {
        self.length = Length::Requests(requests);
        self
    }

    /// With this seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// With these costs.
    #[must_use]
    pub fn costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }

    /// Runs it.
    ///
    /// # Errors
    /// [`SimError`] when the policy, the workload or a figure is not valid.
    pub fn run(&self) -> Result<Outcome, SimError> {
        self.check()?;
        if is_rack_policy(&self.policy.name) {
            return rack::run(self);
        }
        if let Some((sharing, params)) = ProcessorSharing::asked_for(&self.policy)? {
            return Ok(fluid::run(self, sharing, &params));
        }
        Ok(headway_policy::systems::with(
            &self.policy,
            &self.shape(),
            Run(self),
        )?)
    }

    /// Runs a system of one's own making instead of the one its policy names: a new composition
    /// is simulated before it has a name.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_system<I, L, M>(
        &self,
        build: impl FnOnce(&Shape) -> System<I, L, M>,
    ) -> Result<Outcome, SimError>
    where
        I: Ingress + Send + 'static,
        L: Local + Send + 'static,
        M: Monitor + Send + 'static,
    {
        self.check()?;
        Ok(Run(self).visit(build(&self.shape())))
    }

    /// Whether it can be run.
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
        if let Some(ns) = self.timeline_ns {
            in_range("the timeline's interval in ns", ns as f64, 1.0, 1e18)?;
        }
        self.workload.check()?;
        in_range(
            "the number of servers",
            self.servers as f64,
            1.0,
            MAX_SERVERS as f64,
        )?;
        match is_rack_policy(&self.policy.name) {
            true => rack::check(self),
            false if self.servers > 1 => Err(SimError::NoSwitch {
                policy: self.policy.to_string(),
            }),
            false => {
                if ProcessorSharing::asked_for(&self.policy)?.is_none() {
                    headway_policy::systems::check(&self.policy, &self.shape())?;
                }
                Ok(())
            }
        }
    }

    /// In order of time, of workers that there are, and each a change.
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
                let (doing, state) = match change.present {
                    true => ("comes", "there"),
                    false => ("goes", "away"),
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

    /// Offered rate of the first phase, requests per second.
    #[must_use]
    pub fn rate_rps(&self) -> f64 {
        match (&self.workload.arrivals, self.offered) {
            (headway_workload::Arrivals::Trace(trace), _) => trace.rate_rps().unwrap_or(f64::NAN),
            (_, Offered::Rate(rate)) => rate,
            (_, Offered::Load { load, workers }) => self.workload.rate_for_load(load, workers),
        }
    }

    /// What the policy is told beforehand.
    pub(crate) fn shape(&self) -> Shape {
        let mut shape = shape_of(&self.workload, self.rate_rps(), self.workers);
        shape.queue_limit = self.queue_limit;
        shape.resume = self.resume;
        shape.known_load = Some(
            self.workload
                .load_for_rate(self.rate_rps(), self.total_workers()),
        );
        shape.seed = self.seed;
        shape
    }
}

/// What the policy of a server is told of its workload beforehand.
pub(crate) fn shape_of(workload: &Workload, rate_rps: f64, workers: usize) -> Shape {
    const JOBS_AT_FIRST: usize = 1024;
    let mut shape = Shape::new(workers);
    shape.classes = class_hints(workload);
    shape.job_capacity = JOBS_AT_FIRST;
    shape.known_load = Some(workload.load_for_rate(rate_rps, workers));
    shape
}

/// What a policy is told of a workload's classes before the first request, in the order of [`Workload::union`]: their mean service times, shares in the
/// first phase, which are long, and how long their requests may stay. A live server that is told the same runs the policy that was simulated.
#[must_use]
pub fn class_hints(workload: &Workload) -> Vec<ClassHint> {
    let mix = workload.initial_mix();
    let share = |name: &str| mix.iter().find(|c| c.name == name).map_or(0.0, |c| c.share);
    let hint = |class: &headway_workload::Class| ClassHint {
        long: class.long,
        slo_ns: slo_ns(class),
        ..ClassHint::new(class.mean_ns().trunc(), share(&class.name))
    };
    workload.union().map(hint).collect()
}

/// Whether the classes' own SLOs can be read.
///
/// # Errors
/// [`SimError::ClassSlo`], which names the first class whose cannot.
pub fn check_slos(workload: &Workload) -> Result<(), SimError> {
    let refused = |class: &headway_workload::Class, source| SimError::ClassSlo {
        class: class.name.clone(),
        source,
    };
    workload.union().try_for_each(|class| {
        let own = own_slo(class).transpose();
        own.map_err(|source| refused(class, source)).map(drop)
    })
}

/// The class's own SLO: its grammar is that of `--slo` without a name, so any scope will do to read it.
fn own_slo(class: &headway_workload::Class) -> Option<Result<Slo, SloError>> {
    let slo = class.slo.as_ref()?;
    Some(format!("overall.{slo}").parse())
}

/// How long a request of the class may stay, by the first bound of its own SLO.
fn slo_ns(class: &headway_workload::Class) -> Option<u64> {
    let slo = own_slo(class)?.ok()?;
    let bound = slo.bounds().first()?;
    let ns = match bound.measure {
        Measure::Latency => bound.at_most * 1e3,
        Measure::Slowdown => bound.at_most * class.mean_ns(),
    };
    Some(ns as u64)
}

pub(crate) fn in_range(
    what: &'static str,
    given: f64,
    least: f64,
    most: f64,
) -> Result<(), SimError> {
    if given >= least && given <= most {
        return Ok(());
    }
    let expected = match least == f64::MIN_POSITIVE {
        true => format!("above 0 and at most {most}"),
        false => format!("{least} to {most}"),
    };
    Err(SimError::OutOfRange {
        what,
        expected,
        given: given.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(slo: &str) -> Workload {
        let text = format!(
            "[[class]]\nname = \"a, odd.name\"\nshare = 1.0\nslo = \"{slo}\"\nservice = {{ dist = \"constant\", mean = \"2us\" }}"
        );
        Workload::from_toml_str(&text, "mix.toml").unwrap()
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
        assert_eq!(
            class_hints(&workload("slowdown.p99<=4"))[0].slo_ns,
            Some(8_000)
        );
    }
}
