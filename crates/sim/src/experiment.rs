//! The description of a simulation.

use crate::{Costs, Flows};
use headway_policy::{ClassHint, PolicySpec, Resume, Shape, WorkerId};
use headway_report::slo::{Measure, Slo, SloError};
use headway_workload::{Arrivals, Offered, Workload};
use std::ops::Range;

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
    /// The requests that arrive.
    pub workload: Workload,
    /// The policy, of a server or of a rack.
    pub policy: PolicySpec,
    /// Servers, when the policy is a rack's; else 1.
    pub servers: usize,
    /// Racks that the servers stand in, as many in each, behind a core switch; 1 without one.
    pub racks: usize,
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
    /// The flows that requests belong to, by which the network steers them; each request is one of its own unless said.
    pub flows: Option<Flows>,
    /// The server's classifier.
    pub classifier: Classification,
    /// Part of the requests, 0 to 1, that the classifier does not recognise: they are UNKNOWN to the server, whatever they are.
    pub unknown_share: f64,
    /// Workers coming and going, in order of time.
    pub core_changes: Vec<CoreChange>,
    /// Length of the intervals of [`Outcome::timeline`](crate::Outcome::timeline), ns; none unless said. Each takes some
    /// 250 KiB a class.
    pub timeline_ns: Option<u64>,
    /// The window, ns, that [`Outcome::slices`](crate::Outcome::slices) tells who ran where in; none unless said.
    pub trace_window: Option<Range<u64>>,
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
            flows: None,
            classifier: Classification::Exact,
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

    /// With its servers in so many racks, as many in each.
    #[must_use]
    pub fn racks(mut self, racks: usize) -> Self {
        self.racks = racks;
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

    /// With requests of these flows.
    #[must_use]
    pub fn flows(mut self, flows: Flows) -> Self {
        self.flows = Some(flows);
        self
    }

    /// With these costs.
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

    /// How many arrivals are to be expected.
    #[must_use]
    pub fn expected_requests(&self) -> f64 {
        let recorded = match &self.workload.arrivals {
            Arrivals::Trace(trace) => trace.records().len() as f64,
            _ => f64::INFINITY,
        };
        let asked = match self.length {
            Length::Requests(requests) => requests as f64,
            Length::Duration(ns) => self.rate_rps() * ns as f64 / 1e9,
        };
        asked.min(recorded)
    }

    /// Whether its policy is a rack's.
    #[must_use]
    pub fn is_rack(&self) -> bool {
        matches!(self.policy, PolicySpec::Rack { .. })
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

/// The shape that a server's policy is built for, as far as the workload decides it.
pub(crate) fn shape_of(workload: &Workload, rate_rps: f64, workers: usize) -> Shape {
    const JOBS_AT_FIRST: usize = 1024;
    let mut shape = Shape::new(workers);
    shape.classes = class_hints(workload);
    shape.job_capacity = JOBS_AT_FIRST;
    shape.known_load = Some(workload.load_for_rate(rate_rps, workers));
    shape
}

/// The hints that a policy has of a workload's classes before the first request, in the order of [`Workload::union`]: their mean service times, shares in the
/// first phase, which are long, and how long their requests may stay. A live server that is told the same runs the policy that was simulated.
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

/// The class's own SLO: its grammar is that of `--slo` without a name, so any scope will do to read it.
pub(crate) fn own_slo(class: &headway_workload::Class) -> Option<Result<Slo, SloError>> {
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
