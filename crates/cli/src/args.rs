//! Flags that several commands share.

use crate::error::{explain, explain_any_level, usage};
use crate::output::OutputFormat;
pub(crate) use crate::trace_flags::TraceFlags;
use anyhow::Result;
use clap::Args;
use headway::config::{self, MeasuredCosts};
use headway_policy::rack::RackShape;
use headway_policy::server::fluid::ProcessorSharing;
use headway_policy::server::systems::ServerSpec;
use headway_policy::spec::{Spec, SpecError};
use headway_policy::{ClassHint, Level, MAX_WORKERS, Policy, PolicySpec, Resume, Shape, WorkerId};
use headway_report::Slo;
use headway_sim::{
    Classification, CoreChange, Costs, Experiment, Figure, Length, MAX_SERVERS, Offered,
    SystemCores,
};
use headway_workload::{Arrivals, Workload, duration, rate};
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
    #[arg(long, value_name = "TIME", value_parser = time)]
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
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) dispatch_cost: Option<u64>,
    /// Time in the network, added to every latency
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = time)]
    pub(crate) network: u64,
    /// Capacity of each queue; requests beyond it are shed. Unbounded by default
    #[arg(long, value_name = "N", value_parser = count, allow_negative_numbers = true)]
    pub(crate) queue_limit: Option<u64>,
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

impl Circumstances {
    /// Sets the classifier and the worker changes of an experiment.
    pub(crate) fn apply(&self, experiment: &mut Experiment) -> Result<()> {
        if experiment.policy == PolicySpec::Fluid {
            self.refuse(
                "'ps' treats all requests alike, whatever they are taken for",
                false,
            )?;
        }
        experiment.classifier = match self.classifier {
            ClassifierFlag::Exact => Classification::Exact,
            ClassifierFlag::Random => Classification::Random,
        };
        experiment.unknown_share = self.unknown;
        experiment.core_changes.clone_from(&self.core_changes);
        experiment.core_changes.sort_by_key(|change| change.at_ns);
        Ok(())
    }

    /// Refuses these flags where the simulated system ignores them, and says why.
    pub(crate) fn refuse(&self, why: &str, core_changes_too: bool) -> Result<()> {
        let given = [
            ("--classifier", self.classifier != ClassifierFlag::default()),
            ("--unknown", self.unknown > 0.0),
            (
                "--core-change",
                core_changes_too && !self.core_changes.is_empty(),
            ),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(usage(flag, why)),
            None => Ok(()),
        }
    }
}

/// Parses a fraction from 0 to 1.
fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        _ => Err(format!(
            "'{text}' is not a fraction from 0 to 1, such as 0.05"
        )),
    }
}

/// Parses a change of workers: `20ms:-3`.
fn core_change(text: &str) -> Result<CoreChange, String> {
    let wrong = || format!("'{text}' is not a core change, such as 20ms:-3 or 50ms:+3");
    let (at, worker) = text.split_once(':').ok_or_else(wrong)?;
    let present = worker.starts_with('+');
    let number = worker.strip_prefix(['+', '-']).ok_or_else(wrong)?;
    Ok(CoreChange {
        at_ns: time(at)?,
        worker: WorkerId(number.parse().map_err(|_| wrong())?),
        present,
    })
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
        if matches!(workload.arrivals, Arrivals::Trace(_))
            && (self.load.is_some() || self.rate.is_some())
        {
            return Err(usage(
                "--load/--rate",
                "a trace is replayed at the times it recorded",
            ));
        }
        Ok(match self.rate {
            Some(rate) => Offered::Rate(rate),
            None => Offered::Load {
                load: self.load.unwrap_or(default),
                workers,
            },
        })
    }
}

impl LengthFlags {
    /// The length of a run: where it is not given the whole of a trace, else `default` arrivals.
    pub(crate) fn length_of(&self, workload: &Workload, default: u64) -> Length {
        self.length(match &workload.arrivals {
            Arrivals::Trace(trace) => trace.records().len() as u64,
            _ => default,
        })
    }

    /// The length of a run; `default` arrivals where neither is given.
    pub(crate) fn length(&self, default: u64) -> Length {
        match (self.requests, self.duration) {
            (_, Some(ns)) => Length::Duration(ns),
            (requests, None) => Length::Requests(requests.unwrap_or(default)),
        }
    }
}

impl CostFlags {
    /// Puts the costs into an experiment.
    pub(crate) fn apply(&self, experiment: &mut Experiment) -> Result<()> {
        if experiment.policy == PolicySpec::Fluid {
            self.refuse_all_but_network(
                "'ps' is an ideal that shares the workers among all requests at once: it has no dispatcher, queues or interruptions",
            )?;
        }
        if let Some(path) = &self.costs {
            experiment.costs = read_costs(path)?.of_policy(&experiment.policy);
            if let PolicySpec::Server(policy) = &experiment.policy
                && let Some(left) = left_to(policy, &experiment.costs)?
            {
                eprintln!("note: {}: {left}", path.display());
            }
        }
        if let Some(dispatch_ns) = self.dispatch_cost {
            experiment.costs.dispatch_ns = dispatch_ns;
        }
        experiment.network_ns = self.network;
        experiment.queue_limit = self.queue_limit.map_or(usize::MAX, |limit| limit as usize);
        experiment.resume = self.resume.into();
        Ok(())
    }
}

impl CostFlags {
    /// Refuses every cost flag that the simulated system ignores, and says why.
    pub(crate) fn refuse_all_but_network(&self, why: &str) -> Result<()> {
        let given = [
            ("--costs", self.costs.is_some()),
            ("--dispatch-cost", self.dispatch_cost.is_some()),
            ("--queue-limit", self.queue_limit.is_some()),
            ("--resume", self.resume != ResumeFlag::default()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(usage(flag, why)),
            None => Ok(()),
        }
    }
}

/// The costs of the file that `--costs` names.
pub(crate) fn read_costs(path: &Path) -> Result<MeasuredCosts> {
    config::read_costs(path).map_err(|error| usage("--costs", error))
}

/// Names the interrupt costs that the policy takes from its paper because `costs` lacks them. `None` where the policy needs none
/// of them.
fn left_to(policy: &ServerSpec, costs: &Costs) -> Result<Option<String>> {
    if !policy.facts().interrupts() {
        return Ok(None);
    }
    let params = policy.check(&Shape::new(MAX_WORKERS))?;
    let own = |names: [&str; 2]| params.iter().find(|(key, _)| names.contains(key));
    let left: Vec<String> = costs
        .not_given()
        .filter_map(|(cost, names)| {
            let (key, value) = own(names)?;
            Some(format!("{cost} ({key}={value})"))
        })
        .collect();
    let name = policy.name();
    Ok((!left.is_empty()).then(|| {
        let left = left.join(", ");
        format!("costs that it does not say are {name}'s own, as the papers have them: {left}")
    }))
}

/// A policy of any level and its parameters, checked when the flag is parsed, so that an error names the flag.
pub(crate) fn any_policy(text: &str) -> Result<PolicySpec, String> {
    let spec: Spec = text.parse().map_err(|error| explain(&error))?;
    // A name that no level knows gets suggestions from every level; an error in a rack's inner policy, from servers alone.
    let unknown = Policy::find(&spec.name).is_none();
    let policy = PolicySpec::parse(spec).map_err(|error| {
        if unknown {
            explain_any_level(&error)
        } else {
            explain(&error)
        }
    })?;
    check(&policy).map_err(|error| explain(&error))?;
    Ok(policy)
}

/// Checks the values against a server, a rack or a host with the largest number of workers.
fn check(policy: &PolicySpec) -> Result<(), SpecError> {
    let shape = Shape::new(MAX_WORKERS);
    match policy {
        PolicySpec::Server(server) => {
            server.check(&shape)?;
        }
        PolicySpec::Fluid => {}
        PolicySpec::Rack { spec, inner, .. } => {
            headway_policy::rack::systems::check(spec, &small_rack())?;
            if let Some(inner) = inner {
                inner.check(&shape)?;
            }
        }
        PolicySpec::Host { spec, .. } => {
            headway_policy::host::systems::check(spec)?;
        }
    }
    Ok(())
}

fn small_rack() -> RackShape {
    RackShape {
        cores: vec![1; 2],
        types: vec![ClassHint::new(1e3, 1.0)],
        room: 1,
        seed: 0,
    }
}

/// A policy of a server or a rack.
fn policy_of_servers(text: &str) -> Result<PolicySpec, String> {
    match any_policy(text)? {
        PolicySpec::Host { spec, .. } => Err(only_of_host(&spec)),
        policy => Ok(policy),
    }
}

/// A policy of one server that a live server can run, so no ideal.
pub(crate) fn server_policy(text: &str) -> Result<ServerSpec, String> {
    let policy = any_policy(text)?;
    policy.server().cloned().map_err(|error| error.to_string())
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

fn only_of_host(host: &Spec) -> String {
    format!(
        "'{}' deals the cores of a host out to applications: 'headway sim' simulates it, and 'headway host' runs it live",
        host.name
    )
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

    /// Gives an experiment its servers, and each its workers.
    pub(crate) fn apply(&self, experiment: Experiment) -> Result<Experiment> {
        let workers = match self.cores {
            None => self.workers,
            Some(cores) => workers_of(&experiment.policy, cores)?,
        };
        let mut experiment = experiment
            .servers(self.servers)
            .racks(self.racks)
            .workers(workers);
        experiment.cores = self.cores;
        Ok(experiment)
    }
}

/// The workers that a policy's dispatchers and timers leave of these cores.
pub(crate) fn workers_of(policy: &PolicySpec, cores: usize) -> Result<usize> {
    let beside = SystemCores::of(policy, 0).beside;
    if cores > beside {
        return Ok(cores - beside);
    }
    let (policy, least) = (policy.to_string(), beside + 1);
    Err(usage(
        "--cores",
        format!("'{policy}' takes {beside} beside its workers: {least} or more"),
    ))
}

/// Parses a number of servers within a rack's limit.
fn servers(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(servers) if (1..=MAX_SERVERS).contains(&servers) => Ok(servers),
        _ => Err(format!("a rack has 1 to {MAX_SERVERS} servers")),
    }
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
    match workload.arrivals {
        Arrivals::Trace(_) => Err(usage(
            "--workload",
            "a trace is replayed at the times it recorded, whatever the load: 'headway fit TRACE --fit-out FILE' makes a workload of it",
        )),
        _ => Ok(workload),
    }
}

/// Reads the workload of a flag.
pub(crate) fn workload(name_or_file: &str) -> Result<Workload> {
    Workload::resolve(name_or_file).map_err(|error| usage("--workload", error))
}

/// Parses an SLO without checking its classes.
pub(crate) fn parse_slo(text: &str) -> Result<Slo> {
    text.parse().map_err(|error| usage("--slo", error))
}

/// Parses a figure of a run, `class.GET.latency.p99`, whose class must exist.
pub(crate) fn figure(flag: &str, text: &str, classes: &[&str]) -> Result<Figure> {
    // A figure has the grammar of an SLO's left side.
    let unit = if text.contains(".latency.") { "us" } else { "" };
    let slo: Slo = format!("{text}<=1{unit}")
        .parse()
        .map_err(|error| usage(flag, error))?;
    slo.check_classes(classes.iter().copied())
        .map_err(|error| usage(flag, error))?;
    match slo.bounds() {
        [bound] => Ok(Figure {
            scope: bound.scope.clone(),
            measure: bound.measure,
            statistic: bound.statistic,
        }),
        _ => Err(usage(flag, "name one figure")),
    }
}

/// Parses an SLO whose classes must exist.
pub(crate) fn slo(text: &str, workload: &Workload) -> Result<Slo> {
    let slo = parse_slo(text)?;
    slo.check_classes(workload.class_names())
        .map_err(|error| usage("--slo", error))?;
    Ok(slo)
}

/// Parses a duration with its unit, in ns.
pub(crate) fn time(text: &str) -> Result<u64, String> {
    duration::parse(text).map_err(|error| error.to_string())
}

/// Parses a rate above 0.
pub(crate) fn rate_rps(text: &str) -> Result<f64, String> {
    rate::parse(text).map_err(|error| error.to_string())
}

/// Parses a number with an optional k or M.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    match rate::parse(text) {
        Ok(number) if number.fract() == 0.0 && number < u64::MAX as f64 => Ok(number as u64),
        _ => Err(format!(
            "'{text}' is not a whole number above 0, such as 900, 260k or 5M"
        )),
    }
}

/// Parses a number of workers within a server's limit.
pub(crate) fn workers(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(workers) if (1..=MAX_WORKERS).contains(&workers) => Ok(workers),
        _ => Err(format!("a server has 1 to {MAX_WORKERS} workers")),
    }
}

/// Parses a load above 0.
pub(crate) fn load(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(load) if load > 0.0 && load <= 100.0 => Ok(load),
        _ => Err(format!(
            "'{text}' is not a load: a fraction above 0 and at most 100, such as 0.8"
        )),
    }
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
