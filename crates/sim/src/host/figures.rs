//! The host-level figures of the Shenango paper: a function for each runs it and returns its curves.
//!
//! The testbed of Figures 4, 5, 7 and 8 adds a network, packet processing and hyper-threads that share a
//! physical core. The model has none of them: compare systems and shapes, and leave absolute latencies aside.
//! Shenango has 14 of 16 hyper-threads (two are the daemon's), Arachne 15, ZygOS all 16.

use super::{App, HostCosts, HostExperiment, HostOutcome, IntervalBound, RateStep, Window};
use crate::{SimError, available_threads, in_parallel};
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::Spec;
use headway_workload::Workload;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Mean service time of the spin server, ns.
const SPIN_MEAN_NS: f64 = 10_000.0;

/// One point of a curve.
#[derive(Clone, Debug)]
pub struct CurvePoint {
    /// Position on the axis that the figure's function documents.
    pub x: f64,
    /// The result.
    pub outcome: HostOutcome,
}

/// The curve of one system.
#[derive(Clone, Debug)]
pub struct SystemCurve {
    /// The system's name.
    pub system: &'static str,
    /// Points in the axis's order.
    pub points: Vec<CurvePoint>,
}

/// The extent of the simulations.
#[derive(Clone, Copy, Debug)]
pub struct FigureEffort<'a> {
    /// Virtual time of a run, ms.
    pub duration_ms: u64,
    /// Seed of every random choice.
    pub seed: u64,
    /// Runs in parallel.
    pub threads: usize,
    /// The [cutoff](HostExperiment::cutoff) of every run.
    pub cutoff: Option<&'a Arc<AtomicBool>>,
}

impl Default for FigureEffort<'_> {
    fn default() -> Self {
        Self {
            duration_ms: 500,
            seed: 1,
            threads: available_threads(),
            cutoff: None,
        }
    }
}

/// Figure 1's two curves.
#[derive(Clone, Debug)]
pub struct Efficiency {
    /// The optimal allocator with an interval of 1 ms; no point where no number of cores keeps the limit.
    pub bound: Vec<Option<IntervalBound>>,
    /// A Shenango runtime under the same load, by the offered cores.
    pub shenango: Vec<CurvePoint>,
}

/// A host of the systems compared in Figures 4, 5, 7 and 8.
struct Contestant {
    system: &'static str,
    policy: &'static str,
    cores: usize,
    batch: bool,
    /// The application's own scheduler.
    server: &'static str,
}

const SHENANGO: Contestant = Contestant {
    system: "Shenango",
    policy: "shenango",
    cores: 14,
    batch: true,
    server: "work-stealing",
};
const ZYGOS: Contestant = Contestant {
    system: "ZygOS",
    policy: "static",
    cores: 16,
    batch: false,
    server: "work-stealing",
};
const ARACHNE: Contestant = Contestant {
    system: "Arachne",
    policy: "interval",
    cores: 15,
    batch: true,
    server: "c-fcfs",
};

impl Contestant {
    /// A server that may have every core, and swaptions under systems that share cores.
    fn host(&self, workload: &Workload, rate_rps: f64, effort: FigureEffort<'_>) -> HostExperiment {
        let app = App::server("server", workload.clone(), rate_rps)
            .guaranteed(self.cores)
            .policy(server(self.server));
        let mut host = HostExperiment::new(self.cores, spec(self.policy))
            .app(app)
            .duration_ms(effort.duration_ms)
            .seed(effort.seed);
        host.cutoff = effort.cutoff.cloned();
        if self.batch {
            host.app(App::batch("swaptions"))
        } else {
            host
        }
    }
}

fn spec(text: &str) -> Spec {
    text.parse().expect("a constant that parses")
}

fn server(text: &str) -> ServerSpec {
    text.parse().expect("a constant that parses")
}

fn run_all(
    experiments: &[(f64, HostExperiment)],
    effort: FigureEffort<'_>,
) -> Result<Vec<CurvePoint>, SimError> {
    in_parallel(
        experiments,
        effort.threads,
        |(x, experiment): &(f64, HostExperiment)| {
            experiment
                .run()
                .map(|outcome| CurvePoint { x: *x, outcome })
        },
        |_, _| (),
    )
    .into_iter()
    .collect()
}

/// Figure 1: CPU efficiency over offered load in cores (exponential service of 10 µs), of the optimal 1 ms
/// allocator with p99.9 ≤ 100 µs and of a Shenango runtime, with the runtime's own tail. Requests are spawned
/// locally: they do not pass through the daemon.
///
/// # Errors
/// [`SimError`] when a load is not above 0.
pub fn efficiency(offered_cores: &[f64], effort: FigureEffort<'_>) -> Result<Efficiency, SimError> {
    const LIMIT_NS: u64 = 100_000;
    const INTERVAL_NS: u64 = 1_000_000;
    let bound = super::optimal_interval_bound(
        offered_cores,
        SPIN_MEAN_NS as u64,
        LIMIT_NS,
        INTERVAL_NS,
        4 * effort.duration_ms,
        64,
        effort.seed,
    );
    let workload = named("exponential-10us");
    let experiments: Vec<_> = offered_cores
        .iter()
        .map(|&cores: &f64| {
            let rate_rps = cores * 1e9 / SPIN_MEAN_NS;
            (cores, SHENANGO.host(&workload, rate_rps, effort))
        })
        .collect();
    Ok(Efficiency {
        bound,
        shenango: run_all(&experiments, effort)?,
    })
}

/// Figure 4: a spin server with one of three distributions of service time beside a batch application, over
/// its rate in requests per second: Shenango, ZygOS (a static 16 cores) and Arachne (50 ms).
/// `workload` is `fixed-10us` (made up here), `exponential-10us` or `shenango-bimodal`.
///
/// # Errors
/// [`SimError`] when a rate is not valid.
pub fn spin_server(
    workload: &Workload,
    rates_rps: &[f64],
    effort: FigureEffort<'_>,
) -> Result<Vec<SystemCurve>, SimError> {
    [SHENANGO, ZYGOS, ARACHNE]
        .iter()
        .map(|contestant: &Contestant| {
            let experiments: Vec<_> = rates_rps
                .iter()
                .map(|&rate: &f64| (rate, contestant.host(workload, rate, effort)))
                .collect();
            Ok(SystemCurve {
                system: contestant.system,
                points: run_all(&experiments, effort)?,
            })
        })
        .collect()
}

/// The three workloads of Figure 4, mean 10 µs each: constant, exponential, bimodal (90 % × 5 + 10 % × 55 µs).
#[must_use]
pub fn spin_workloads() -> [Workload; 3] {
    let constant = headway_workload::ServiceDistribution::Constant {
        mean_ns: SPIN_MEAN_NS as u64,
    };
    let class = headway_workload::Class::new("all", 1.0, constant);
    [
        Workload::new("fixed-10us", vec![class]),
        named("exponential-10us"),
        named("shenango-bimodal"),
    ]
}

/// One system's response to a sudden load, Figure 5.
#[derive(Clone, Debug)]
pub struct StepResponse {
    /// The system's name.
    pub system: &'static str,
    /// The raised rate, requests per second.
    pub raised_rps: f64,
    /// Tails of windows of a tenth of the run's tenth: 10 ms where the phases last 1 s.
    pub windows: Vec<Window>,
    /// The whole run.
    pub outcome: HostOutcome,
}

impl StepResponse {
    /// The worst window's 99.9th percentile, µs.
    #[must_use]
    pub fn worst_p999_us(&self) -> f64 {
        let worst = self.windows.iter().map(|window| window.p999_ns).max();
        worst.unwrap_or(0) as f64 / 1e3
    }
}

/// Figure 5: requests of 1 µs at 100 000 a second, then at each of `raised_rps`, then at 100 000 again, each
/// phase `phase_ms` long (the paper's: 1000). Shenango, and Arachne up to what its 15 cores can serve.
/// Every request passes through Shenango's daemon (6.5 million a second, § 8).
///
/// # Errors
/// [`SimError`] when a rate is not valid.
pub fn load_step(
    raised_rps: &[f64],
    phase_ms: u64,
    effort: FigureEffort<'_>,
) -> Result<Vec<StepResponse>, SimError> {
    const BASELINE_RPS: f64 = 100_000.0;
    const PACKET_NS: u64 = 154;
    let workload = named("fixed-1us");
    let phase = |rate_rps| RateStep {
        lasts_ns: phase_ms * 1_000_000,
        rate_rps,
    };
    let mut inputs = Vec::new();
    for contestant in [SHENANGO, ARACHNE] {
        for &raised in raised_rps {
            let mut host = contestant.host(&workload, BASELINE_RPS, effort);
            let steps = [phase(BASELINE_RPS), phase(raised), phase(BASELINE_RPS)];
            host.apps[0] = host.apps[0].clone().steps(&steps);
            host = host.duration_ms(3 * phase_ms);
            host.warm_up = 0.0;
            host.window_ns = Some((phase_ms * 10_000).max(1));
            if contestant.system == SHENANGO.system {
                host.costs.packet_ns = PACKET_NS;
            }
            inputs.push(LoadStep {
                system: contestant.system,
                raised_rps: raised,
                host,
            });
        }
    }
    in_parallel(&inputs, effort.threads, LoadStep::run, |_, _| ())
        .into_iter()
        .collect()
}

/// A host whose load steps up and down again.
struct LoadStep {
    system: &'static str,
    raised_rps: f64,
    host: HostExperiment,
}

impl LoadStep {
    fn run(&self) -> Result<StepResponse, SimError> {
        let mut outcome = self.host.run()?;
        Ok(StepResponse {
            system: self.system,
            raised_rps: self.raised_rps,
            windows: std::mem::take(&mut outcome.apps[0].windows),
            outcome,
        })
    }
}

/// Figure 7: the spin server (exponential, 10 µs) under Shenango, for few flows and many, over its rate. Flows
/// are hashed to kthreads, which steal what waits at others. A flow count of 24 or 1200 is the paper's.
///
/// # Errors
/// [`SimError`] when a rate or a number of flows is not valid.
pub fn few_connections(
    flows: &[u64],
    rates_rps: &[f64],
    effort: FigureEffort<'_>,
) -> Result<Vec<(u64, Vec<CurvePoint>)>, SimError> {
    let workload = named("exponential-10us");
    flows
        .iter()
        .map(|&flows: &u64| {
            let experiments: Vec<_> = rates_rps
                .iter()
                .map(|&rate: &f64| {
                    let mut host = SHENANGO.host(&workload, rate, effort);
                    let steered = server(&format!("work-stealing,flows={flows}"));
                    host.apps[0] = host.apps[0].clone().policy(steered);
                    (rate, host)
                })
                .collect();
            Ok((flows, run_all(&experiments, effort)?))
        })
        .collect()
}

/// Figure 8: the spin server (exponential, 10 µs) and a batch application under Shenango, over the interval
/// between looks in µs (the paper's: 5, 25, 50, 100), at one rate.
///
/// # Errors
/// [`SimError`] when an interval or the rate is not valid.
pub fn allocation_interval(
    intervals_us: &[u64],
    rate_rps: f64,
    effort: FigureEffort<'_>,
) -> Result<Vec<CurvePoint>, SimError> {
    let workload = named("exponential-10us");
    let experiments: Vec<_> = intervals_us
        .iter()
        .map(|&us: &u64| {
            let mut host = SHENANGO.host(&workload, rate_rps, effort);
            host.policy = spec(&format!("shenango,interval={us}us"));
            host.costs = HostCosts::default();
            (us as f64, host)
        })
        .collect();
    run_all(&experiments, effort)
}

fn named(name: &str) -> Workload {
    Workload::named(name).expect("a workload of the literature")
}
