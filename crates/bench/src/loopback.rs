//! What loopback UDP adds to a request: the server's calls of the kernel, and the way between it and a client.

use crate::datapath::{self, DatapathCosts};
use crate::{Trial, TrialError};
use headway_runtime::Layout;
use headway_sim::{Costs, Experiment, MachineCosts, Offered, ThreadLayout};
use headway_workload::{Arrivals, Class, ServiceDistribution, Workload};

const SERVICE_NS: u64 = 10_000;
const REQUESTS: u64 = 3_000;
const RATE_RPS: f64 = 5_000.0;
/// Runs, of which the median counts.
const REPEATS: usize = 5;

/// The way of a request over loopback.
#[derive(Clone, Copy, Debug)]
pub struct LoopbackPath {
    /// The server's own calls.
    pub calls: DatapathCosts,
    /// From the client's send to the server's receive, and from its send to the client's receive, ns.
    pub network_ns: u64,
}

impl LoopbackPath {
    /// Measures it: what a lone request takes more over loopback than in a simulation with these costs.
    ///
    /// # Errors
    /// [`TrialError`] when the server or the client cannot be run.
    pub fn measure(costs: &MachineCosts, dedicated: bool) -> Result<Self, TrialError> {
        let mut path = Self {
            calls: datapath::udp()?,
            network_ns: 0,
        };
        let service = ServiceDistribution::Constant {
            mean_ns: SERVICE_NS,
        };
        let mut workload = Workload::new("lone", vec![Class::new("request", 1.0, service)]);
        workload.arrivals = Arrivals::Deterministic;
        let experiment = Experiment::new(workload, "c-fcfs".parse()?)
            .workers(1)
            .requests(REQUESTS)
            .offered(Offered::Rate(RATE_RPS));
        let (layout, live_layout) = if dedicated {
            (ThreadLayout::Dedicated, Layout::Dedicated)
        } else {
            (ThreadLayout::Inline, Layout::Inline)
        };
        let trial = Trial {
            layout: live_layout,
            over_udp: true,
            ..Trial::new(experiment.clone())
        };
        let mut medians_us = Vec::with_capacity(REPEATS);
        for _ in 0..REPEATS {
            medians_us.push(trial.observe()?.run.overall.latency_us.p50);
        }
        medians_us.sort_by(f64::total_cmp);
        let simulated = experiment
            .costs(path.costs(layout, costs.of(layout)))
            .run()?;
        let beyond_us = medians_us[REPEATS / 2] - simulated.run.overall.latency_us.p50;
        path.network_ns = (beyond_us.max(0.0) * 1e3) as u64;
        Ok(path)
    }

    /// The costs of a layout with the calls: a dispatcher's thread receives, else the workers; they send.
    #[must_use]
    pub fn costs(&self, layout: ThreadLayout, costs: Costs) -> Costs {
        let mut costs = Costs {
            overhead_ns: costs.overhead_ns + self.calls.send_ns,
            ..costs
        };
        if layout == ThreadLayout::Dedicated {
            costs.dispatch_ns += self.calls.receive_ns;
        } else {
            costs.overhead_ns += self.calls.receive_ns;
        }
        costs
    }
}
