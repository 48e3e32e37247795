//! The loads that a calibration offers to a live server of one worker, and to the simulator.

use crate::{Trial, TrialError};
use headway_report::Run;
use headway_runtime::Layout;
use headway_sim::{Experiment, Offered};
use headway_workload::{Arrivals, Class, ServiceDistribution, Workload};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Requests of a saturated run: they must fit into the live queue.
pub(super) const BURST: u64 = 15_000;
pub(super) const SERVICE_NS: u64 = 2_000;
/// Runs of each load, of which the median counts.
const REPEATS: usize = 7;
/// Two requests of this length take turns, or one runs alone, ns.
pub(super) const LONG_NS: u64 = 20_000_000;
/// The slices of requests that are interrupted, ns: the `q` of the policies below.
pub(super) const QUANTUM_NS: u64 = 5_000;
/// Requests that are interrupted once each.
pub(super) const ONCE_EACH: u64 = 1_000;
/// Their length: more than one quantum, and less than two, so that none is renewed.
pub(super) const ONCE_NS: u64 = 8_000;

/// Requests of one service time at a steady rate, for one worker.
#[derive(Clone, Copy)]
pub(super) struct SteadyLoad {
    pub(super) policy: &'static str,
    pub(super) service_ns: u64,
    pub(super) requests: u64,
    pub(super) rate_rps: f64,
    /// Whether policies are told that the requests are long.
    pub(super) long: bool,
}

/// No request waits for another.
pub(super) const CALM: SteadyLoad = SteadyLoad {
    policy: "c-fcfs",
    service_ns: SERVICE_NS,
    requests: 4_000,
    rate_rps: 25_000.0,
    long: false,
};

/// All requests wait from the start; the worker gets each after the last.
pub(super) const ONE_EACH: SteadyLoad = SteadyLoad {
    requests: BURST,
    rate_rps: 1e9,
    ..CALM
};

/// All requests wait from the start, most of them in the worker's own queue.
pub(super) const QUEUED: SteadyLoad = SteadyLoad {
    policy: "jbsq,k=32",
    ..ONE_EACH
};

/// Like [`QUEUED`], with requests of no work.
pub(super) const EMPTY: SteadyLoad = SteadyLoad {
    service_ns: 1,
    ..QUEUED
};

/// Like [`QUEUED`], with a single request in the worker's own queue while another runs.
pub(super) const ONE_AHEAD: SteadyLoad = SteadyLoad {
    policy: "jbsq,k=2",
    ..ONE_EACH
};

/// Two long requests take turns, a quantum each.
pub(super) const IN_TURNS: SteadyLoad = SteadyLoad {
    policy: "shinjuku-sq,q=5us",
    service_ns: LONG_NS,
    requests: 2,
    long: true,
    ..ONE_EACH
};

/// A long request runs alone, and goes on after each slice.
pub(super) const ALONE: SteadyLoad = SteadyLoad {
    policy: "tiny-quanta,q=5us",
    requests: 1,
    ..IN_TURNS
};

impl SteadyLoad {
    /// The same load under another policy.
    pub(super) fn under(self, policy: &'static str) -> Self {
        Self { policy, ..self }
    }

    pub(super) fn trial(&self, layout: Layout) -> Trial {
        let service = ServiceDistribution::Constant {
            mean_ns: self.service_ns,
        };
        let mut class = Class::new("request", 1.0, service);
        class.long = Some(self.long);
        let mut workload = Workload::new("calibration", vec![class]);
        workload.arrivals = Arrivals::Deterministic;
        let policy = self.policy.parse().expect("a policy of ours");
        let mut experiment = Experiment::new(workload, policy)
            .workers(1)
            .requests(self.requests)
            .offered(Offered::Rate(self.rate_rps));
        experiment.warm_up = 0.0;
        Trial {
            layout,
            ..Trial::new(experiment)
        }
    }
}

/// What a run shows.
#[derive(Clone, Copy)]
pub(super) struct LoadFigures {
    p50_us: f64,
    max_us: f64,
    preemptions: u64,
    /// Slices after which a request went on.
    renewals: u64,
}

impl LoadFigures {
    pub(super) fn by(run: &Run, renewals: u64) -> Self {
        Self {
            p50_us: run.overall.latency_us.p50,
            max_us: run.overall.latency_us.max,
            preemptions: run.meta.preemptions,
            renewals,
        }
    }

    pub(super) fn median_ns(&self) -> f64 {
        self.p50_us * 1e3
    }

    /// The time of one of [`BURST`] requests: they arrive at once, so the last one's latency is the time of all.
    pub(super) fn per_request_ns(&self) -> f64 {
        self.max_us * 1e3 / BURST as f64
    }

    /// The time beyond `work_ns`, per interruption.
    pub(super) fn per_preemption_ns(&self, work_ns: f64) -> f64 {
        (self.max_us * 1e3 - work_ns).max(0.0) / self.preemptions.max(1) as f64
    }

    /// The time beyond its own work, per slice after which [`ALONE`]'s request went on.
    pub(super) fn per_renewal_ns(&self) -> f64 {
        let slices = LONG_NS.div_ceil(QUANTUM_NS) - 1;
        (self.max_us * 1e3 - LONG_NS as f64).max(0.0) / slices.max(self.renewals) as f64
    }
}

/// Runs each load several times, and keeps the typical run.
pub(super) struct LoadMeter {
    pub(super) layout: Layout,
    /// The largest fraction of its time that a typical run lost to other work.
    pub(super) lost_fraction: f64,
    cutoff: Option<Arc<AtomicBool>>,
}

struct Repeat {
    time_ns: f64,
    lost_fraction: f64,
}

impl LoadMeter {
    pub(super) fn new(layout: Layout, cutoff: Option<&Arc<AtomicBool>>) -> Self {
        Self {
            layout,
            lost_fraction: 0.0,
            cutoff: cutoff.cloned(),
        }
    }

    /// The median time over the repeats of a load.
    pub(super) fn typical_ns(
        &mut self,
        load: &SteadyLoad,
        time_ns: impl Fn(&LoadFigures) -> f64,
    ) -> Result<u64, TrialError> {
        self.median_ns(load, REPEATS, time_ns)
    }

    /// The same over a given number of repeats.
    pub(super) fn median_ns(
        &mut self,
        load: &SteadyLoad,
        count: usize,
        time_ns: impl Fn(&LoadFigures) -> f64,
    ) -> Result<u64, TrialError> {
        let mut trial = load.trial(self.layout);
        trial.cutoff.clone_from(&self.cutoff);
        let mut repeats = Vec::with_capacity(count);
        for _ in 0..count {
            let observed = trial.observe()?;
            let shown = LoadFigures::by(&observed.run, observed.renewals);
            repeats.push(Repeat {
                time_ns: time_ns(&shown),
                lost_fraction: observed.lost_fraction(),
            });
        }
        repeats.sort_by(|a, b| a.time_ns.total_cmp(&b.time_ns));
        // Only the median is used, so only its losses count.
        let typical = &repeats[count / 2];
        self.lost_fraction = self.lost_fraction.max(typical.lost_fraction);
        Ok(typical.time_ns as u64)
    }
}
