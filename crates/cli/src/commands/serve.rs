//! `headway serve`: a service under a policy.

mod config;

use super::apps::{App, KvFlags};
use super::bench::{IdleFlag, LayoutFlag};
use crate::args;
use crate::error::{spec_error, usage};
use anyhow::{Context, Result};
use config::Config;
use headway_net::classify::AnyClassifier;
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
    #[arg(long, value_name = "N")]
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
            .map(Config::read)
            .transpose()?
            .unwrap_or_default();
        let text = |flag: Option<String>, file: Option<String>, default: &str| {
            flag.or(file).unwrap_or_else(|| default.into())
        };
        let workload = text(self.workload, file.workload, "high-bimodal");
        let drain = text(self.drain, file.drain, &duration::format(DRAIN_NS));
        let drain_ns = args::time(&drain).map_err(|error| usage("--drain", error))?;
        let one_core_less = || (headway_sim::available_threads() - 1).max(1);
        Ok(Settings {
            listen: address(&text(self.listen, file.listen, LISTEN))?,
            app: self.app.or(file.app).unwrap_or_default(),
            policy: args::policy(&text(self.policy, file.policy, "darc"))?,
            workers: self.workers.or(file.workers).unwrap_or_else(one_core_less),
            workload: Workload::resolve(&workload)?,
            classifier: text(self.classifier, file.classifier, "header")
                .parse()
                .map_err(|error| usage("--classifier", error))?,
            queue_limit: self.queue_limit.or(file.queue_limit).unwrap_or(1024) as usize,
            layout: self.layout.or(file.layout).unwrap_or_default(),
            idle: self.idle.or(file.idle).unwrap_or_default(),
            pin: pin(&text(self.pin, file.pin, "auto"))?,
            drain: Duration::from_nanos(drain_ns),
            kv: self.kv.or(file.kv),
        })
    }
}

/// Everything decided.
struct Settings {
    listen: SocketAddr,
    app: App,
    policy: headway_policy::spec::Spec,
    workers: usize,
    workload: Workload,
    classifier: AnyClassifier,
    queue_limit: usize,
    layout: LayoutFlag,
    idle: IdleFlag,
    pin: Pin,
    drain: Duration,
    kv: KvFlags,
}

impl Settings {
    fn start(&self) -> Result<Server> {
        let started = Server::builder()
            .workers(self.workers)
            .policy_spec(self.policy.clone())
            .classes(self.app.classes(&self.workload))
            .classifier(self.classifier.clone())
            .queue_limit(self.queue_limit)
            .layout(self.layout.into())
            .idle(self.idle.into())
            .pin(self.pin.clone())
            .service(self.app.service(&self.kv)?)
            .listen_udp(self.listen)
            .start();
        started.map_err(|error| match error {
            StartError::Policy(error) => spec_error(&error),
            StartError::Workers { .. } => usage("--workers", error),
            StartError::TooFewCores { .. } | StartError::Pin(_) => usage("--pin", error),
            StartError::Bind(_) => usage("--listen", error),
            other => other.into(),
        })
    }
}

/// `auto`, `off`, or cores.
fn pin(text: &str) -> Result<Pin> {
    let core = |part: &str| part.trim().parse::<usize>().ok();
    match text {
        "auto" => Ok(Pin::Auto),
        "off" => Ok(Pin::Off),
        list => match list.split(',').map(core).collect() {
            Some(cores) => Ok(Pin::Cores(cores)),
            None => Err(usage(
                "--pin",
                format!("'{list}' is not auto, off or a list of cores such as 0,1,2"),
            )),
        },
    }
}

/// `udp://HOST:PORT`.
pub(crate) fn address(url: &str) -> Result<SocketAddr> {
    let wrong = |why: &str| usage("address", format!("'{url}' {why}: write udp://HOST:PORT"));
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
        "received {}, answered {}, shed {}, malformed {}, too large {}, panics {}, dropped by the kernel {}",
        stats.received,
        stats.answered,
        stats.shed,
        stats.malformed,
        stats.too_large,
        stats.panics,
        stats.kernel_drops
    );
}
