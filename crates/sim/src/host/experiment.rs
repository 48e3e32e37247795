//! The description of a host to simulate: its applications, and the allocator of its cores.

use super::HostCosts;
use crate::experiment::shape_of;
use headway_policy::Shape;
use headway_policy::host::{AppKind, AppShape, HostShape, HostTopology};
use headway_policy::server::systems::{self, ServerSpec};
use headway_policy::spec::Spec;
use headway_workload::Workload;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A step of the arrival rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateStep {
    /// Its length, ns. The last step always lasts until the end.
    pub lasts_ns: u64,
    /// Arrivals per second; 0 for none.
    pub rate_rps: f64,
}

/// The work of an application.
#[derive(Clone, Debug)]
pub enum AppWork {
    /// It serves requests.
    Server {
        /// The requests that arrive.
        workload: Box<Workload>,
        /// The arrival rate over time; at least one step.
        steps: Vec<RateStep>,
        /// Its own scheduler. Every request must be reachable by every kthread, since any kthread may lose its core.
        policy: ServerSpec,
    },
    /// It computes on every core that it gets.
    Batch,
}

/// One application.
#[derive(Clone, Debug)]
pub struct App {
    /// Its name, unique on the host.
    pub name: String,
    /// Its work.
    pub work: AppWork,
    /// Guaranteed cores: the allocator leaves them to the application while it uses them.
    pub guaranteed: usize,
    /// Most cores it may have; all cores of the host by default.
    pub most: Option<usize>,
    /// Whether its kthreads ignore the signal to leave; the allocator then has them moved away.
    pub refuses: bool,
}

impl App {
    /// A server under work stealing, as Shenango's runtime is, with nothing guaranteed.
    #[must_use]
    pub fn server(name: impl Into<String>, workload: Workload, rate_rps: f64) -> Self {
        let step = RateStep {
            lasts_ns: u64::MAX,
            rate_rps,
        };
        Self {
            name: name.into(),
            work: AppWork::Server {
                workload: Box::new(workload),
                steps: vec![step],
                policy: systems::WORK_STEALING.by_default(),
            },
            guaranteed: 0,
            most: None,
            refuses: false,
        }
    }

    /// A batch application with nothing guaranteed.
    #[must_use]
    pub fn batch(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            work: AppWork::Batch,
            guaranteed: 0,
            most: None,
            refuses: false,
        }
    }

    /// Sets the number of guaranteed cores.
    #[must_use]
    pub fn guaranteed(mut self, cores: usize) -> Self {
        self.guaranteed = cores;
        self
    }

    /// Sets the most cores.
    #[must_use]
    pub fn most(mut self, cores: usize) -> Self {
        self.most = Some(cores);
        self
    }

    /// Makes its kthreads ignore the signal to leave.
    #[must_use]
    pub fn refusing(mut self) -> Self {
        self.refuses = true;
        self
    }

    /// Sets the steps of its arrival rate. A batch application ignores them.
    #[must_use]
    pub fn steps(mut self, given: &[RateStep]) -> Self {
        if let AppWork::Server { steps, .. } = &mut self.work {
            *steps = given.to_vec();
        }
        self
    }

    /// Sets its own scheduler. A batch application ignores it.
    #[must_use]
    pub fn policy(mut self, spec: ServerSpec) -> Self {
        if let AppWork::Server { policy, .. } = &mut self.work {
            *policy = spec;
        }
        self
    }

    /// Its mean rate over `duration_ns`, requests per second; 0 for a batch application.
    #[must_use]
    pub fn mean_rate_rps(&self, duration_ns: u64) -> f64 {
        let AppWork::Server { steps, .. } = &self.work else {
            return 0.0;
        };
        let (mut left_ns, mut requests) = (duration_ns, 0.0);
        for (index, step) in steps.iter().enumerate() {
            let lasts_ns = if index + 1 == steps.len() {
                left_ns
            } else {
                step.lasts_ns.min(left_ns)
            };
            requests += step.rate_rps * lasts_ns as f64;
            left_ns -= lasts_ns;
        }
        requests / duration_ns.max(1) as f64
    }
}

/// Everything a run depends on.
#[derive(Clone, Debug)]
pub struct HostExperiment {
    /// The cores that the allocator distributes; the daemon has one of its own.
    pub topology: HostTopology,
    /// The allocator of the cores: one of [`NAMES`](headway_policy::host::systems::NAMES).
    pub policy: Spec,
    /// The applications.
    pub apps: Vec<App>,
    /// End of the arrivals, ns of virtual time; requests in flight are finished.
    pub duration_ns: u64,
    /// Part of the duration that is simulated but not measured.
    pub warm_up: f64,
    /// Seed of every random choice.
    pub seed: u64,
    /// Costs of moving cores.
    pub costs: HostCosts,
    /// Added to every latency, ns.
    pub network_ns: u64,
    /// Width of the windows of the tail over time, ns.
    pub window_ns: Option<u64>,
    /// Once it is true no further request arrives: the run ends when the servers have drained, and its [`Run`](headway_report::Run) says that it was cut off.
    pub cutoff: Option<Arc<AtomicBool>>,
}

impl HostExperiment {
    /// `cores` hyper-threads, paired, without applications yet, for 200 ms, a tenth of which warms up.
    #[must_use]
    pub fn new(cores: usize, policy: Spec) -> Self {
        Self {
            topology: HostTopology::paired(cores),
            policy,
            apps: Vec::new(),
            duration_ns: 200_000_000,
            warm_up: 0.1,
            seed: 1,
            costs: HostCosts::default(),
            network_ns: 0,
            window_ns: None,
            cutoff: None,
        }
    }

    /// Adds an application.
    #[must_use]
    pub fn app(mut self, app: App) -> Self {
        self.apps.push(app);
        self
    }

    /// Sets the duration, ms of virtual time.
    #[must_use]
    pub fn duration_ms(mut self, ms: u64) -> Self {
        self.duration_ns = ms * 1_000_000;
        self
    }

    /// Sets the seed.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the costs.
    #[must_use]
    pub fn costs(mut self, costs: HostCosts) -> Self {
        self.costs = costs;
        self
    }

    /// Whether the run is to end early.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        let cutoff = self.cutoff.as_ref();
        cutoff.is_some_and(|cutoff| cutoff.load(Ordering::Relaxed))
    }

    /// The shape that the allocator is built for.
    #[must_use]
    pub fn shape(&self) -> HostShape {
        let cores = self.topology.cores();
        HostShape {
            topology: self.topology.clone(),
            apps: self
                .apps
                .iter()
                .map(|app: &App| AppShape {
                    guaranteed: app.guaranteed,
                    most: app.most.unwrap_or(cores),
                    kind: match app.work {
                        AppWork::Server { .. } => AppKind::Latency,
                        AppWork::Batch => AppKind::Batch,
                    },
                })
                .collect(),
            seed: self.seed,
        }
    }

    /// The shape that an application's own policy is built for: one worker for each kthread.
    pub(super) fn server_shape(&self, app: &App, workload: &Workload) -> Shape {
        let workers = app.most.unwrap_or(self.topology.cores());
        let rate_rps = app.mean_rate_rps(self.duration_ns);
        let mut shape = shape_of(workload, rate_rps, workers);
        shape.seed = self.seed;
        shape
    }

    /// Start of the measured part, ns.
    #[must_use]
    pub fn warm_up_ns(&self) -> u64 {
        (self.duration_ns as f64 * self.warm_up) as u64
    }
}
