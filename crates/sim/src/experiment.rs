//! The description of a simulation.

use crate::{Costs, Flows};
use headway_policy::{ClassHint, PolicySpec, Resume, Shape, WorkerId};
use headway_report::slo::{Measure, Slo, SloError};
use headway_workload::{Arrivals, Offered, Workload};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How long a run is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Length {
    /// This number of arrivals, the discarded ones included.
    Requests(u64),
    /// Arrivals during this much virtual time, ns.
    Duration(u64),
}

/// The classifier of the simulated server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Classification {
    /// The request's own class.
    #[default]
    Exact,
    /// Any class, at random (Perséphone § 5.6: a broken classifier).
    Random,
}

/// A change in the set of workers during a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreChange {
    /// When, in virtual time.
    pub at_ns: u64,
    /// The worker's index; in a rack counted over all servers: server × workers + worker.
    pub worker: WorkerId,
    /// Whether the worker is present from then on.
    pub present: bool,
}

/// The cores of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SystemCores {
    /// Of the workers.
    pub workers: usize,
    /// Of the dispatchers and of a timer beside them.
    pub beside: usize,
    /// Those of the dispatchers that run requests themselves.
    pub beside_serving: usize,
}

impl SystemCores {
    /// The cores of a server with this number of workers under a policy. Under a rack's the switch is no core of a server.
    #[must_use]
    pub fn of(policy: &PolicySpec, workers: usize) -> Self {
        let (beside, beside_serving) = match policy {
            PolicySpec::Server(server)
            | PolicySpec::Rack {
                inner: Some(server),
                ..
            } => {
                let facts = server.facts();
                let works = if facts.dispatchers_work {
                    facts.dispatchers
                } else {
                    0
                };
                (facts.cores_beside_workers(), works)
            }
            // A server that follows the control plane's layout has a dispatcher.
            PolicySpec::Rack { inner: None, .. } => (1, 0),
            PolicySpec::Fluid | PolicySpec::Host { .. } => (0, 0),
        };
        Self {
            workers,
            beside,
            beside_serving,
        }
    }

    /// All of them.
    #[must_use]
    pub fn all(self) -> usize {
        self.workers + self.beside
    }

    /// Those that run requests.
    #[must_use]
    pub fn serving(self) -> usize {
        self.workers + self.beside_serving
    }
}

/// Most servers of a rack.
pub const MAX_SERVERS: usize = 1024;

/// Everything a run depends on.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The requests that arrive.
    pub workload: Workload,
    /// The policy, of a server or of a rack.
    pub policy: PolicySpec,
    /// Number of servers under a rack's policy; otherwise 1.
    pub servers: usize,
    /// Number of equal racks that hold the servers, behind a core switch; 1 without a core switch.
    pub racks: usize,
    /// Workers of a server.
    pub workers: usize,
    /// Cores of a server over which the load counts, so that systems with cores beside their workers compare by the same rate; by default the
    /// workers.
    pub cores: Option<usize>,
    /// The offered load.
    pub offered: Offered,
    /// The length of the run.
    pub length: Length,
    /// Part of the arrivals, by index, that is simulated but not measured.
    pub warm_up: f64,
    /// Seed of every random choice.
    pub seed: u64,
    /// Costs of dispatching and preemption.
    pub costs: Costs,
    /// Added to every latency, ns.
    pub network_ns: u64,
    /// Most requests in one queue; unbounded by default.
    pub queue_limit: usize,
    /// Requests that may have begun and not ended, or wait where the policy knows of them, as in a [pool](headway_policy::server::admission_control); the others wait before it.
    /// At least twice the workers, whatever the limit says: each worker finds something to do. Unlimited by default; of one server's policy only.
    pub begun_at_most: Option<usize>,
    /// Where interrupted requests may resume.
    pub resume: Resume,
    /// The requests' flows, by which the network steers them; by default each request is a flow of its own.
    pub flows: Option<Flows>,
    /// The server's classifier.
    pub classifier: Classification,
    /// Fraction of the requests, 0 to 1, that the classifier does not recognise: the server sees them as UNKNOWN.
    pub unknown_share: f64,
    /// Changes in the set of workers, in order of time.
    pub core_changes: Vec<CoreChange>,
    /// Length of the intervals of [`Outcome::timeline`](crate::Outcome::timeline), ns; none by default. Each interval takes some
    /// 440 KiB a class at most.
    pub timeline_ns: Option<u64>,
    /// The window, ns, whose schedule [`Outcome::slices`](crate::Outcome::slices) records; none by default.
    pub trace_window: Option<Range<u64>>,
    /// Once it is true no further request arrives: the run ends when the server has drained, and its [`Run`](headway_report::Run) says that it was cut off.
    pub cutoff: Option<Arc<AtomicBool>>,
}

impl Experiment {
    /// One server of 14 workers at 80 % load for two million requests: the papers' testbed.
    #[must_use]
    pub fn new(workload: Workload, policy: PolicySpec) -> Self {
        const WORKERS: usize = 14;
        Self {
            workload,
            policy,
            servers: 1,
            racks: 1,
            workers: WORKERS,
            cores: None,
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
            begun_at_most: None,
            resume: Resume::Anywhere,
            flows: None,
            classifier: Classification::Exact,
            unknown_share: 0.0,
            core_changes: Vec::new(),
            timeline_ns: None,
            trace_window: None,
            cutoff: None,
        }
    }

    /// Sets the number of servers. The offered load stays as set.
    #[must_use]
    pub fn servers(mut self, servers: usize) -> Self {
        self.servers = servers;
        self
    }

    /// Divides the servers evenly into this number of racks.
    #[must_use]
    pub fn racks(mut self, racks: usize) -> Self {
        self.racks = racks;
        self
    }

    /// Number of workers of all servers together.
    #[must_use]
    pub fn total_workers(&self) -> usize {
        self.servers * self.workers
    }

    /// Number of cores over which the load counts.
    #[must_use]
    pub fn load_cores(&self) -> usize {
        self.servers * self.cores.unwrap_or(self.workers)
    }

    /// The offered load of the first phase, as it was given where it was.
    #[must_use]
    pub fn offered_load(&self) -> f64 {
        let cores = self.load_cores();
        match (&self.workload.arrivals, self.offered) {
            (Arrivals::Trace(_), _) | (_, Offered::Rate(_)) => {
                self.workload.load_for_rate(self.rate_rps(), cores)
            }
            (_, Offered::Load { load, workers }) if workers == cores => load,
            (_, Offered::Load { load, workers }) => load * workers as f64 / cores as f64,
        }
    }

    /// The cores of a server.
    #[must_use]
    pub fn server_cores(&self) -> SystemCores {
        SystemCores::of(&self.policy, self.workers)
    }

    /// Sets the number of workers per server. The offered load stays as set.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Sets the offered rate or load.
    #[must_use]
    pub fn offered(mut self, offered: Offered) -> Self {
        self.offered = offered;
        self
    }

    /// Sets the offered load of all its workers.
    #[must_use]
    pub fn load(self, load: f64) -> Self {
        let workers = self.total_workers();
        self.offered(Offered::Load { load, workers })
    }

    /// Sets the number of arrivals.
    #[must_use]
    pub fn requests(mut self, requests: u64) -> Self {
        self.length = Length::Requests(requests);
        self
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the requests' flows.
    #[must_use]
    pub fn flows(mut self, flows: Flows) -> Self {
        self.flows = Some(flows);
        self
    }

    /// Sets the costs.
    #[must_use]
    pub fn costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }

    /// Offered rate of the first phase, requests per second.
    #[must_use]
    pub fn rate_rps(&self) -> f64 {
        match (&self.workload.arrivals, self.offered) {
            (Arrivals::Trace(trace), _) => trace.rate_rps().unwrap_or(f64::NAN),
            (_, Offered::Rate(rate)) => rate,
            (_, Offered::Load { load, workers }) => self.workload.rate_for_load(load, workers),
        }
    }

    /// The expected number of arrivals.
    #[must_use]
    pub fn expected_requests(&self) -> f64 {
        let recorded = match &self.workload.arrivals {
            Arrivals::Trace(trace) => trace.records().len() as f64,
            _ => f64::INFINITY,
        };
        let asked = match self.length {
            Length::Requests(requests) => requests as f64,
            Length::Duration(ns) => self.requests_within(ns),
        };
        asked.min(recorded)
    }

    /// Whether its policy is a rack's.
    #[must_use]
    pub fn is_rack(&self) -> bool {
        matches!(self.policy, PolicySpec::Rack { .. })
    }

    /// Whether the run is to end early.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        let cutoff = self.cutoff.as_ref();
        cutoff.is_some_and(|cutoff| cutoff.load(Ordering::Relaxed))
    }

    /// The shape that the policy is built for.
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

/// The part of a server's shape that the workload determines.
pub(crate) fn shape_of(workload: &Workload, rate_rps: f64, workers: usize) -> Shape {
    const JOBS_AT_FIRST: usize = 1024;
    let mut shape = Shape::new(workers);
    shape.classes = class_hints(workload);
    shape.job_capacity = JOBS_AT_FIRST;
    shape.known_load = Some(workload.load_for_rate(rate_rps, workers));
    shape
}

/// The hints about a workload's classes that a policy has before the first request, in the order of [`Workload::union`]: mean service times, shares in the
/// first phase, the long classes, and the longest permitted sojourn times. A live server with the same hints runs the simulated policy.
#[must_use]
pub fn class_hints(workload: &Workload) -> Vec<ClassHint> {
    let mix = workload.initial_mix();
    let share = |name: &str| mix.iter().find(|c| c.name == name).map_or(0.0, |c| c.share);
    workload
        .union()
        .map(|class: &headway_workload::Class| ClassHint {
            long: class.long,
            slo_ns: slo_ns(class),
            ..ClassHint::new(class.mean_ns().trunc(), share(&class.name))
        })
        .collect()
}

/// The class's own SLO. Its grammar is that of `--slo` without the scope, so the parser gets an arbitrary scope.
pub(crate) fn own_slo(class: &headway_workload::Class) -> Option<Result<Slo, SloError>> {
    let slo = class.slo.as_ref()?;
    Some(format!("overall.{slo}").parse())
}

/// The longest permitted sojourn time of the class's requests, from the first bound of its own SLO.
fn slo_ns(class: &headway_workload::Class) -> Option<u64> {
    let slo = own_slo(class)?.ok()?;
    let bound = slo.bounds().first()?;
    let ns = match bound.measure {
        Measure::Latency => bound.at_most * 1e3,
        Measure::Slowdown => bound.at_most * class.mean_ns(),
    };
    Some(ns as u64)
}
