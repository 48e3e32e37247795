//! Flags that several commands share.

use crate::error::{explain, explain_beside, usage};
use crate::output::Format;
use anyhow::Result;
use clap::Args;
use headway_policy::fluid::ProcessorSharing;
use headway_policy::rack::RackShape;
use headway_policy::spec::{Spec, SpecError};
use headway_policy::{ClassHint, MAX_WORKERS, Resume, Shape};
use headway_report::Slo;
use headway_sim::{Costs, Experiment, Figure, Length, MAX_SERVERS, Offered};
use headway_workload::{Arrivals, Workload, duration, rate};
use std::path::PathBuf;

/// What arrives, and how much of it.
#[derive(Args, Clone, Debug)]
pub(crate) struct Traffic {
    /// A workload by name, a workload file (TOML) or a trace (CSV)
    #[arg(long, value_name = "NAME|FILE", default_value = "high-bimodal")]
    pub(crate) workload: String,
    /// Offered load: rate × mean service time / workers
    #[arg(long, value_name = "FRACTION", conflicts_with = "rate", value_parser = load)]
    pub(crate) load: Option<f64>,
    /// Offered rate, requests per second: 5.1M, 260k
    #[arg(long, value_name = "RATE", value_parser = rate_rps)]
    pub(crate) rate: Option<f64>,
}

/// How long a run is and what its randomness starts from.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Arrivals, the first tenth of which is not measured
    #[arg(long, value_name = "N", conflicts_with = "duration", value_parser = count)]
    pub(crate) requests: Option<u64>,
    /// Arrivals during this time, instead of a number of them: 20ms, 3s
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) duration: Option<u64>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// What the machinery costs in a simulation.
#[derive(Args, Clone, Debug)]
pub(crate) struct CostFlags {
    /// Costs measured by `headway calibrate -o FILE`; none by default, the ideal system
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,
    /// The dispatcher's serial work per request
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) dispatch_cost: Option<u64>,
    /// Added to every latency
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = time)]
    pub(crate) network: u64,
    /// Most requests in one queue; the rest is shed. Unbounded by default
    #[arg(long, value_name = "N", value_parser = count)]
    pub(crate) queue_limit: Option<u64>,
    /// Where an interrupted request may go on: handlers that keep thread-local state must stay on their worker
    #[arg(long, value_enum, value_name = "WHERE", default_value_t)]
    pub(crate) resume: ResumeFlag,
}

/// `--resume`.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum ResumeFlag {
    /// On any worker
    #[default]
    Anywhere,
    /// Where it was interrupted
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

/// Where the result goes.
#[derive(Args, Clone, Debug)]
pub(crate) struct Destination {
    /// How it is written
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl Traffic {
    /// The workload that was asked for.
    pub(crate) fn workload(&self) -> Result<Workload> {
        workload(&self.workload)
    }

    /// How much is offered to so many workers; `default` where neither load nor rate is given.
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

impl Extent {
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
        if let Some(path) = &self.costs {
            experiment.costs = read_costs(path)?;
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

/// Reads what `headway calibrate` wrote, or the costs alone.
fn read_costs(path: &std::path::Path) -> Result<Costs> {
    let place = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| usage("--costs", format!("{place}: {error}")))?;
    let value: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| usage("--costs", format!("{place}: {error}")))?;
    let costs = value.get("costs").cloned().unwrap_or(value);
    serde_json::from_value(costs).map_err(|error| usage("--costs", format!("{place}: {error}")))
}

/// A policy and its parameters, checked at once so that an error names its place.
pub(crate) fn spec(text: &str) -> Result<Spec, String> {
    let spec: Spec = text.parse().map_err(|error| explain(&error))?;
    let fluid = ProcessorSharing::asked_for(&spec).map_err(|error| explain(&error))?;
    let is_rack = headway_sim::rack::is_rack_policy(&spec.name);
    let server = match is_rack {
        true => rack(&spec).map_err(|error| explain(&error))?,
        false if fluid.is_some() => None,
        false => Some(spec.clone()),
    };
    if let Some(server) = server {
        // What a policy can be at all: as many workers as there may be.
        let shape = Shape::new(MAX_WORKERS);
        let switches = match is_rack {
            true => &[],
            false => headway_policy::rack::systems::NAMES,
        };
        headway_policy::systems::check(&server, &shape)
            .map_err(|error| explain_beside(&error, switches))?;
    }
    Ok(spec)
}

/// Checks a rack's policy; that of its servers.
fn rack(spec: &Spec) -> Result<Option<Spec>, SpecError> {
    let shape = RackShape {
        cores: vec![1; 2],
        types: vec![ClassHint::new(1e3, 1.0)],
        room: 1,
        seed: 0,
    };
    let (_, inner) = headway_policy::rack::systems::check(spec, &shape)?;
    Ok(inner)
}

/// Servers of a rack, and the workers of each.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Workers of a server; of a host, the cores it deals out
    #[arg(long, value_name = "N", default_value_t = 14, value_parser = workers)]
    pub(crate) workers: usize,
    /// Servers behind a switch; load is over all their workers. Takes a rack's policy: pallas, racksched,inner=darc
    #[arg(long, value_name = "S", default_value_t = 1, value_parser = servers)]
    pub(crate) servers: usize,
}

impl Size {
    /// Workers of all servers.
    pub(crate) fn total_workers(&self) -> usize {
        self.servers * self.workers
    }
}

/// As many servers as a rack can have.
fn servers(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(servers) if (1..=MAX_SERVERS).contains(&servers) => Ok(servers),
        _ => Err(format!("a rack has 1 to {MAX_SERVERS} servers")),
    }
}

/// The policy of a flag.
pub(crate) fn policy(text: &str) -> Result<Spec> {
    spec(text).map_err(|error| usage("--policy", error))
}

/// Policies, each checked.
pub(crate) fn policies(texts: &[String]) -> Result<Vec<Spec>> {
    texts.iter().map(|text| policy(text)).collect()
}

/// The workload of a flag.
pub(crate) fn workload(name_or_file: &str) -> Result<Workload> {
    Workload::resolve(name_or_file).map_err(|error| usage("--workload", error))
}

/// An SLO, whatever its classes.
pub(crate) fn parse_slo(text: &str) -> Result<Slo> {
    text.parse().map_err(|error| usage("--slo", error))
}

/// A figure of a run, `class.GET.latency.p99`, whose class exists.
pub(crate) fn figure(flag: &str, text: &str, classes: &[&str]) -> Result<Figure> {
    // The grammar is that of a bound of an SLO, without the bound.
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

/// An SLO whose classes exist.
pub(crate) fn slo(text: &str, workload: &Workload) -> Result<Slo> {
    let slo = parse_slo(text)?;
    slo.check_classes(workload.class_names())
        .map_err(|error| usage("--slo", error))?;
    Ok(slo)
}

/// A duration with its unit, in ns.
pub(crate) fn time(text: &str) -> Result<u64, String> {
    duration::parse(text).map_err(|error| error.to_string())
}

/// A rate above 0.
pub(crate) fn rate_rps(text: &str) -> Result<f64, String> {
    rate::parse(text).map_err(|error| error.to_string())
}

/// A number with an optional k or M.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    match rate::parse(text) {
        Ok(number) if number.fract() == 0.0 && number < u64::MAX as f64 => Ok(number as u64),
        _ => Err(format!(
            "'{text}' is not a whole number above 0, such as 900, 260k or 5M"
        )),
    }
}

/// As many workers as a server can have.
pub(crate) fn workers(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(workers) if (1..=MAX_WORKERS).contains(&workers) => Ok(workers),
        _ => Err(format!("a server has 1 to {MAX_WORKERS} workers")),
    }
}

/// A load above 0.
pub(crate) fn load(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(load) if load > 0.0 && load <= 100.0 => Ok(load),
        _ => Err(format!(
            "'{text}' is not a load: a fraction above 0, such as 0.8"
        )),
    }
}
