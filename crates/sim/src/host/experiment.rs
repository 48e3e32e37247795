//! The description of a host to simulate: its applications, and the allocator of its cores.

use super::HostCosts;
use crate::experiment::shape_of;
use headway_policy::Shape;
use headway_policy::host::{AppKind, AppShape, HostShape, HostTopology};
use headway_policy::spec::Spec;
use headway_policy::systems::{self, ServerSpec};
use headway_workload::Workload;

/// A rate that holds for a while.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RateStep {
    /// How long, ns. The last step lasts until the end whatever it says.
    pub lasts_ns: u64,
    /// SteppedArrivals per second; 0 for none.
    pub rate_rps: f64,
}

/// The work of an application.
#[derive(Clone, Debug)]
pub enum AppWork {
    /// It serves requests.
    Server {
        /// The requests that arrive.
        workload: Box<Workload>,
        /// How much of it, over time; one step at least.
        steps: Vec<RateStep>,
        /// Its own scheduler: one that leaves no request where only an absent kthread would find it.
        policy: ServerSpec,
    },
    /// It computes, on as many cores as it gets.
    Batch,
}

/// One application.
#[derive(Clone, Debug)]
pub struct App {
    /// Its name, unique on the host.
    pub name: String,
    /// Its work.
    pub work: AppWork,
    /// Cores nobody takes from it while it uses them.
    pub guaranteed: usize,
    /// Most cores it may have; those of the host unless said.
    pub most: Option<usize>,
    /// Whether its kthreads heed no signal to leave: they are moved away once the allocator has enough of it.
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

    /// With so many guaranteed cores.
    #[must_use]
    pub fn guaranteed(mut self, cores: usize) -> Self {
        self.guaranteed = cores;
        self
    }

    /// With at most so many cores.
    #[must_use]
    pub fn most(mut self, cores: usize) -> Self {
        self.most = Some(cores);
        self
    }

    /// With kthreads that heed no signal to leave.
    #[must_use]
    pub fn refusing(mut self) -> Self {
        self.refuses = true;
        self
    }

    /// At these rates, one after the other. Nothing changes for a batch application.
    #[must_use]
    pub fn steps(mut self, given: &[RateStep]) -> Self {
        if let AppWork::Server { steps, .. } = &mut self.work {
            *steps = given.to_vec();
        }
        self
    }

    /// With this scheduler of its own. Nothing changes for a batch application.
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
    /// The cores that are dealt out; the daemon has its own.
    pub topology: HostTopology,
    /// The allocator of the cores: one of [`NAMES`](headway_policy::host::systems::NAMES).
    pub policy: Spec,
    /// The applications.
    pub apps: Vec<App>,
    /// SteppedArrivals end then, ns of virtual time; what is under way is finished.
    pub duration_ns: u64,
    /// Part of the duration that is simulated but not measured.
    pub warm_up: f64,
    /// Of everything random.
    pub seed: u64,
    /// Of the machinery.
    pub costs: HostCosts,
    /// Added to every latency, ns.
    pub network_ns: u64,
    /// Width of the windows over which the tail is followed, ns.
    pub window_ns: Option<u64>,
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
        }
    }

    /// With one more application.
    #[must_use]
    pub fn app(mut self, app: App) -> Self {
        self.apps.push(app);
        self
    }

    /// For so many ms of virtual time.
    #[must_use]
    pub fn duration_ms(mut self, ms: u64) -> Self {
        self.duration_ns = ms * 1_000_000;
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
    pub fn costs(mut self, costs: HostCosts) -> Self {
        self.costs = costs;
        self
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

    /// When measuring begins, ns.
    #[must_use]
    pub fn warm_up_ns(&self) -> u64 {
        (self.duration_ns as f64 * self.warm_up) as u64
    }
}
