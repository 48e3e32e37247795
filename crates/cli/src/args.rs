//! Flags that several commands share.

use crate::error::usage;
use crate::output::OutputFormat;
pub(crate) use crate::trace_flags::TraceFlags;
use anyhow::Result;
use clap::Args;
use headway::config::{self, MeasuredCosts};
use headway_policy::server::fluid::ProcessorSharing;
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::Spec;
use headway_policy::{Level, PolicySpec, Resume};
use headway_report::Slo;
use headway_sim::{Classification, CoreChange, Experiment, Length, Offered};
use headway_study::parse::{core_change, fraction, servers};
pub(crate) use headway_study::parse::{cost, count, load, rate_rps, run_length, time, workers};
use headway_study::{SystemSetup, figures, policy_of_servers, traffic};
pub(crate) use headway_study::{any_policy, server_policy};
use headway_workload::Workload;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The workload of a run and its offered load.
#[derive(Args, Clone, Debug)]
pub(crate) struct Traffic {
    /// A workload by name, a workload file (TOML), a trace (CSV) or a log of a cache
    #[arg(long, value_name = "NAME|FILE", default_value = "high-bimodal")]
    pub(crate) workload: String,
    #[command(flatten)]
    pub(crate) read: TraceFlags,
    /// Offered load: rate × mean service time / workers
    #[arg(long, value_name = "FRACTION", conflicts_with = "rate", value_parser = load, allow_negative_numbers = true)]
    pub(crate) load: Option<f64>,
    /// Offered rate, requests per second: 5.1M, 260k
    #[arg(long, value_name = "RATE", value_parser = rate_rps, allow_negative_numbers = true)]
    pub(crate) rate: Option<f64>,
}

/// The length of a run and its random seed.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct LengthFlags {
    /// Number of arrivals; the first tenth is warm-up and not measured
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = count, allow_negative_numbers = true)]
    pub(crate) requests: Option<u64>,
    /// Length of the run in time instead of in arrivals: 20ms, 3s
    #[arg(long, value_name = "TIME", value_parser = run_length)]
    pub(crate) duration: Option<u64>,
    /// Seed of all random draws
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// The costs of dispatching, interrupting and switching in a simulation.
#[derive(Args, Clone, Debug)]
pub(crate) struct CostFlags {
    /// Costs measured by `headway calibrate -o FILE`; none by default, the ideal system
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,
    /// Serial work of the dispatcher per request
    #[arg(long, value_name = "TIME", value_parser = cost)]
    pub(crate) dispatch_cost: Option<u64>,
    /// Time in the network, added to every latency
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = cost)]
    pub(crate) network: u64,
    /// Capacity of each queue; requests beyond it are shed. Unbounded by default
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub(crate) queue_limit: Option<u64>,
    /// Requests that may have begun and not ended, as in a pool; others wait before the policy. Unlimited by default
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub(crate) begun_at_most: Option<u64>,
    /// Where an interrupted request resumes: handlers that keep thread-local state must stay on their worker
    #[arg(long, value_enum, value_name = "WHERE", default_value_t)]
    pub(crate) resume: ResumeFlag,
}

/// `--resume`.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ResumeFlag {
    /// On any worker
    #[default]
    Anywhere,
    /// On the worker that was interrupted
    OwnWorker,
}

impl From<ResumeFlag> for Resume {
    fn from(flag: ResumeFlag) -> Self {
        match flag {
            ResumeFlag::Anywhere => Self::Anywhere,
            ResumeFlag::OwnWorker => Self::OwnWorker,
        }
    }
}

/// How the simulated server classifies requests, and when it loses or gains workers.
#[derive(Args, Clone, Debug)]
pub(crate) struct Circumstances {
    /// The class that the server's classifier assigns to a request
    #[arg(long, value_enum, value_name = "HOW", default_value_t)]
    pub(crate) classifier: ClassifierFlag,
    /// Fraction of requests that the classifier does not recognise: UNKNOWN to the policy
    #[arg(long, value_name = "FRACTION", default_value = "0", value_parser = fraction, allow_negative_numbers = true)]
    pub(crate) unknown: f64,
    /// At this time remove a worker (20ms:-3) or add it back (50ms:+3); workers count from 0 over all servers; repeatable
    #[arg(long = "core-change", value_name = "TIME:-N|TIME:+N", value_parser = core_change)]
    pub(crate) core_changes: Vec<CoreChange>,
}

/// `--classifier`.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ClassifierFlag {
    /// Its true class
    #[default]
    Exact,
    /// A class drawn at random, independent of the true one
    Random,
}

/// Format and destination of the result.
#[derive(Args, Clone, Debug)]
pub(crate) struct Destination {
    /// Format of the result
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
    /// File to write to instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl Traffic {
    /// The workload that the flags name.
    pub(crate) fn workload(&self) -> Result<Workload> {
        self.read.workload(&self.workload)
    }

    /// The load offered to a number of workers; `default` where neither load nor rate is given.
    pub(crate) fn offered(
        &self,
        workload: &Workload,
        workers: usize,
        default: f64,
    ) -> Result<Offered> {
        let (load, rate_rps) = (self.load, self.rate);
        Ok(traffic::offered(
            workload, load, rate_rps, workers, default,
        )?)
    }
}

/// The costs of the file that `--costs` names.
pub(crate) fn read_costs(path: &Path) -> Result<MeasuredCosts> {
    config::read_costs(path).map_err(|error| usage("--costs", error))
}

/// A policy of a rack, for a live switch.
pub(crate) fn rack_policy(text: &str) -> Result<Spec, String> {
    let other_level = |name: &str, level: &str| {
        format!(
            "'{name}' is the policy of a {level}: a switch runs one of {}; servers choose their own by 'headway serve --policy'",
            Level::Rack.names().join(", ")
        )
    };
    match any_policy(text)? {
        PolicySpec::Rack { inner: Some(_), .. } if text.contains("inner=") => Err(
            "'inner' is what simulated servers run; live ones choose it themselves by 'headway serve --policy': leave it out".into(),
        ),
        PolicySpec::Rack { spec, .. } => Ok(spec),
        PolicySpec::Server(server) => Err(other_level(&server.to_string(), "server")),
        PolicySpec::Fluid => Err(other_level(ProcessorSharing::NAME, "server")),
        PolicySpec::Host { spec, .. } => Err(other_level(&spec.name, "host")),
    }
}

/// A policy of a host, for a live daemon.
pub(crate) fn host_policy(text: &str) -> Result<Spec, String> {
    let other_level = |name: &str, level: &str| {
        format!(
            "'{name}' is the policy of a {level}: a host's daemon runs one of {}",
            Level::Host.names().join(", ")
        )
    };
    match any_policy(text)? {
        PolicySpec::Host { spec, .. } => Ok(spec),
        PolicySpec::Rack { spec, .. } => Err(other_level(&spec.name, "rack")),
        PolicySpec::Server(server) => Err(other_level(&server.to_string(), "server")),
        PolicySpec::Fluid => Err(other_level(ProcessorSharing::NAME, "server")),
    }
}

/// Servers of a rack, and the workers of each.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Workers of a server; with a host's policy, the cores that the host grants
    #[arg(long, value_name = "N", default_value_t = 14, value_parser = workers, allow_negative_numbers = true)]
    pub(crate) workers: usize,
    /// Cores of a server instead: a policy's workers are those that its dispatchers and timers leave, and load counts all of them
    #[arg(long, value_name = "N", conflicts_with = "workers", value_parser = workers, allow_negative_numbers = true)]
    pub(crate) cores: Option<usize>,
    /// Servers behind a switch, with a rack's policy (pallas, racksched,inner=darc); load counts all their workers
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = servers, allow_negative_numbers = true)]
    pub(crate) servers: usize,
    /// Racks behind a core switch; the servers are spread evenly over them
    #[arg(long, value_name = "R", default_value_t = 1)]
    pub(crate) racks: usize,
}

impl Size {
    /// The number of cores over which a load counts, of all servers: those given, or the workers.
    pub(crate) fn load_cores(&self) -> usize {
        self.servers * self.cores.unwrap_or(self.workers)
    }
}

impl LengthFlags {
    /// The length of a run: where it is not given the whole of a trace, else `default` arrivals.
    pub(crate) fn length_of(&self, workload: &Workload, default: u64) -> Length {
        let setup = SystemSetup {
            requests: self.requests,
            duration_ns: self.duration,
            ..SystemSetup::default()
        };
        setup.length_of(workload, default)
    }
}

/// The simulated system that the flags describe.
pub(crate) fn setup(
    size: &Size,
    extent: &LengthFlags,
    costs: &CostFlags,
    circumstances: &Circumstances,
) -> SystemSetup {
    SystemSetup {
        workers: size.workers,
        cores: size.cores,
        servers: size.servers,
        racks: size.racks,
        requests: extent.requests,
        duration_ns: extent.duration,
        seed: extent.seed,
        costs: costs.costs.clone(),
        dispatch_ns: costs.dispatch_cost,
        network_ns: costs.network,
        queue_limit: costs.queue_limit,
        begun_at_most: costs.begun_at_most,
        resume: costs.resume.into(),
        classifier: match circumstances.classifier {
            ClassifierFlag::Exact => Classification::Exact,
            ClassifierFlag::Random => Classification::Random,
        },
        unknown_share: circumstances.unknown,
        core_changes: circumstances.core_changes.clone(),
    }
}

/// The experiment of a setup. Notes the interrupt costs that the file of costs leaves to the policy.
pub(crate) fn experiment(
    setup: &SystemSetup,
    workload: Workload,
    policy: PolicySpec,
    offered: Offered,
    default_requests: u64,
) -> Result<Experiment> {
    let experiment = setup.experiment(workload, policy, offered, default_requests)?;
    if let Some(left) = setup.costs_left(&experiment) {
        eprintln!("note: {left}");
    }
    Ok(experiment)
}

/// The policies of a flag that takes policies of servers or racks.
pub(crate) fn policies(texts: &[String]) -> Result<Vec<PolicySpec>> {
    let policies = texts.iter().map(|text| policy_of_servers(text));
    let policies: Result<Vec<_>, String> = policies.collect();
    policies.map_err(|error| usage("--policy", error))
}

/// The policies of a flag that takes policies of one server.
pub(crate) fn server_policies(texts: &[String]) -> Result<Vec<ServerSpec>> {
    let policies = texts.iter().map(|text| server_policy(text));
    let policies: Result<Vec<_>, String> = policies.collect();
    policies.map_err(|error| usage("--policy", error))
}

/// Reads the workload of a flag, to be offered at several loads.
pub(crate) fn scalable_workload(name_or_file: &str) -> Result<Workload> {
    let workload = workload(name_or_file)?;
    traffic::check_scalable(&workload)?;
    Ok(workload)
}

/// Reads the workload of a flag.
pub(crate) fn workload(name_or_file: &str) -> Result<Workload> {
    Workload::resolve(name_or_file).map_err(|error| usage("--workload", error))
}

/// Parses an SLO without checking its classes.
pub(crate) fn parse_slo(text: &str) -> Result<Slo> {
    text.parse().map_err(|error| usage("--slo", error))
}

/// Parses an SLO whose classes must exist.
pub(crate) fn slo(text: &str, workload: &Workload) -> Result<Slo> {
    Ok(figures::slo(text, &workload.class_names())?)
}

/// Parses `ADDR:PORT`, with or without `udp://`, and resolves a host name.
pub(crate) fn host_port(text: &str) -> Result<SocketAddr, String> {
    of_host_port(text, config::resolve)
}

/// The same for a server that may listen already: of several addresses that a name has the one where it does.
pub(crate) fn server_host_port(text: &str) -> Result<SocketAddr, String> {
    of_host_port(text, config::resolve_server)
}

fn of_host_port(
    text: &str,
    resolve: impl FnOnce(&str) -> Result<SocketAddr, String>,
) -> Result<SocketAddr, String> {
    let place = text.strip_prefix("udp://").unwrap_or(text);
    let wrong = |why: &str| format!("'{text}' {why}: write ADDR:PORT, such as 127.0.0.1:7001");
    resolve(place).map_err(|why| wrong(&why))
}
