//! `headway serve`: a service under a policy.

mod config;

use super::apps::{App, KvFlags};
use super::bench::{IdleFlag, LayoutFlag};
use crate::args;
use crate::error::explain;
use anyhow::{Context, Result};
use config::{File, Given};
use headway_net::classify::AnyClassifier;
use headway_policy::spec::Spec;
use headway_runtime::{Pin, Server, StartError, Stats, Stopper};
use headway_workload::{Workload, duration};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const LISTEN: &str = "udp://127.0.0.1:7000";
const DRAIN_NS: u64 = 10_000_000_000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Read settings from a TOML file; flags override it
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen; port 0 lets the system choose [default: udp://127.0.0.1:7000]
    #[arg(long, value_name = "URL")]
    listen: Option<String>,
    /// The service [default: spin]
    #[arg(long, value_enum)]
    app: Option<App>,
    /// The policy and its parameters [default: darc]
    #[arg(long, value_name = "NAME[,KEY=VALUE…]")]
    policy: Option<String>,
    /// Workers [default: one core less than there are, at least one]
    #[arg(long, value_name = "N", value_parser = args::workers)]
    workers: Option<usize>,
    /// The classes of the spin service: a workload by name or file [default: high-bimodal]
    #[arg(long, value_name = "NAME|FILE")]
    workload: Option<String>,
    /// How requests are told apart: header, resp:GET=0,…, memcached, protobuf:field=1, offset:at=4,bytes=2 [default: header]
    #[arg(long, value_name = "SPEC")]
    classifier: Option<String>,
    /// Most requests that wait in one queue; what comes on top is answered as shed [default: 1024]
    #[arg(long, value_name = "N", value_parser = args::count)]
    queue_limit: Option<u64>,
    /// Who carries the dispatcher out [default: auto]
    #[arg(long, value_enum)]
    layout: Option<LayoutFlag>,
    /// What threads without work do [default: spin-then-park]
    #[arg(long, value_enum)]
    idle: Option<IdleFlag>,
    /// Bind threads to cores: auto, off, or the cores, the dispatcher's first: 0,1,2 [default: auto]
    #[arg(long, value_name = "CORES")]
    pin: Option<String>,
    /// How long to answer what was accepted after SIGTERM or SIGINT [default: 10s]
    #[arg(long, value_name = "TIME")]
    drain: Option<String>,
    /// Seed of the policy's own randomness [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    kv: KvFlags,
    /// Check the settings and exit
    #[arg(long)]
    check: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let check = self.check;
        let settings = self.settings()?;
        if check {
            return Ok(ExitCode::SUCCESS);
        }
        let server = settings.start()?;
        stop_on_signal(server.stopper())?;
        announce(&server)?;
        server.wait();
        let stats = server.shutdown(settings.drain)?;
        tell(&stats);
        Ok(ExitCode::SUCCESS)
    }

    /// Flags over file over defaults.
    fn settings(self) -> Result<Settings> {
        let file = self
            .config
            .as_deref()
            .map(File::read)
            .transpose()?
            .unwrap_or_default();
        let set = &file.config;
        let one_core_less = || (headway_sim::available_threads() - 1).max(1);
        let drain = duration::format(DRAIN_NS);
        Ok(Settings {
            listen: file
                .given("listen", self.listen, &set.listen, || LISTEN.into())
                .parse(|url| address(url))?,
            app: self.app.or(set.app).unwrap_or_default(),
            policy: file
                .given("policy", self.policy, &set.policy, || "darc".into())
                .parse(|text| args::spec(text))?,
            workers: file.given("workers", self.workers, &set.workers, one_core_less),
            workload: file
                .given("workload", self.workload, &set.workload, || {
                    "high-bimodal".into()
                })
                .parse(|name| Workload::resolve(name))?
                .value,
            classifier: file
                .given("classifier", self.classifier, &set.classifier, || {
                    "header".into()
                })
                .parse(|text| text.parse())?
                .value,
            queue_limit: self.queue_limit.or(set.queue_limit).unwrap_or(1024) as usize,
            layout: self.layout.or(set.layout).unwrap_or_default(),
            idle: self.idle.or(set.idle).unwrap_or_default(),
            pin: file
                .given("pin", self.pin, &set.pin, || "auto".into())
                .parse(|text| pin(text))?,
            drain: file
                .given("drain", self.drain, &set.drain, || drain)
                .parse(|text| args::time(text).map(Duration::from_nanos))?
                .value,
            seed: self.seed.or(set.seed).unwrap_or(1),
            kv: self.kv.or(set.kv.clone()),
        })
    }
}

/// Everything decided. What the server may still refuse keeps its place.
struct Settings {
    listen: Given<SocketAddr>,
    app: App,
    policy: Given<Spec>,
    workers: Given<usize>,
    workload: Workload,
    classifier: AnyClassifier,
    queue_limit: usize,
    layout: LayoutFlag,
    idle: IdleFlag,
    pin: Given<Pin>,
    drain: Duration,
    seed: u64,
    kv: KvFlags,
}

impl Settings {
    fn start(&self) -> Result<Server> {
        self.layout
            .check(std::slice::from_ref(&self.policy.value))?;
        let started = Server::builder()
            .workers(self.workers.value)
            .policy_spec(self.policy.value.clone())
            .classes(self.app.classes(&self.workload))
            .classifier(self.classifier.clone())
            .queue_limit(self.queue_limit)
            .seed(self.seed)
            .layout(self.layout.into())
            .idle(self.idle.into())
            .pin(self.pin.value.clone())
            .service(self.app.service(&self.kv)?)
            .listen_udp(self.listen.value)
            .start();
        started.map_err(|error| match error {
            StartError::Policy(error) => self.policy.refused(explain(&error)),
            StartError::Unplaced { .. }
            | StartError::Preemptive { .. }
            | StartError::Dispatchers { .. } => self.policy.refused(error),
            StartError::Workers { .. } => self.workers.refused(error),
            StartError::TooFewCores { .. } | StartError::Pin(_) => self.pin.refused(error),
            StartError::Bind(_) => self.listen.refused(error),
            other => other.into(),
        })
    }
}

/// `auto`, `off`, or cores.
fn pin(text: &str) -> Result<Pin, String> {
    let core = |part: &str| part.trim().parse::<usize>().ok();
    match text {
        "auto" => Ok(Pin::Auto),
        "off" => Ok(Pin::Off),
        list => match list.split(',').map(core).collect() {
            Some(cores) => Ok(Pin::Cores(cores)),
            None => Err(format!(
                "'{list}' is not auto, off or a list of cores such as 0,1,2"
            )),
        },
    }
}

/// `udp://HOST:PORT`.
pub(crate) fn address(url: &str) -> Result<SocketAddr, String> {
    let wrong = |why: &str| format!("'{url}' {why}: write udp://HOST:PORT");
    let Some((scheme, place)) = url.split_once("://") else {
        return Err(wrong("has no scheme"));
    };
    if scheme != "udp" {
        return Err(wrong("is not udp"));
    }
    let mut addresses = place
        .to_socket_addrs()
        .map_err(|error| wrong(&format!("cannot be resolved ({error})")))?;
    addresses.next().ok_or_else(|| wrong("names no address"))
}

/// One line for whoever waits for the server, the rest for people.
fn announce(server: &Server) -> Result<()> {
    let Some(addr) = server.local_addr() else {
        return Ok(());
    };
    if let Some(why) = server.unpinned() {
        eprintln!("threads are not pinned: {why}; latencies will suffer");
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening udp://{addr}")?;
    Ok(out.flush()?)
}

/// SIGTERM and SIGINT begin a graceful stop.
fn stop_on_signal(stopper: Stopper) -> Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).context("cannot watch for signals")?;
    std::thread::Builder::new()
        .name("hw-signals".into())
        .spawn(move || {
            if signals.forever().next().is_some() {
                stopper.request_stop();
            }
        })
        .context("cannot start the signal thread")?;
    Ok(())
}

fn tell(stats: &Stats) {
    eprintln!(
        "received {}, answered {}, shed {}, malformed {}, too large {}, refused {}, abandoned {}, panics {}, dropped by the kernel {}",
        stats.received,
        stats.answered,
        stats.shed,
        stats.malformed,
        stats.too_large,
        stats.refused_draining,
        stats.abandoned,
        stats.panics,
        stats.kernel_drops
    );
}
