//! `headway serve`: a service under a policy.

mod check;
mod config;
mod describe;
mod interrupt;
mod meter;
mod record;
mod watch;

use super::apps::{App, KvFlags};
use super::bench::{IdleFlag, LayoutFlag};
use crate::args;
use crate::error::explain;
use crate::learning::Learner;
use crate::policy_flag::{self, Runs};
use anyhow::{Context, Result};
use config::{Flags, Given};
pub(crate) use headway::config::address;
use headway::config::{LISTEN, default_workers, pin, workload};
use headway_net::classify::AnyClassifier;
use headway_policy::systems::ServerSpec;
use headway_runtime::{Idle, Layout, Mechanism, Pin, Server, StartError, Stats, Stopper};
use headway_workload::{Workload, duration};
use interrupt::{InterruptFlags, Interruption};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use watch::{Watch, Wish};

/// No request may keep a worker for longer, unless that is asked for: the wire header alone can ask for 4.3 s.
const MAX_SPIN: &str = "100ms";
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
    #[arg(long, value_name = policy_flag::VALUE, value_parser = Runs::Live, hide_possible_values = true, long_help = Runs::Live.help("The policy and its parameters [default: darc]"))]
    policy: Option<String>,
    /// Workers [default: as many as there are cores, where workers take turns as the dispatcher (up to 4 cores, or --layout inline) or the
    /// policy has none; else one less, for the dispatcher's thread]
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
    /// Who carries the dispatcher out, or the monitor of synergy, which has no dispatcher [default: auto]
    #[arg(long, value_enum)]
    layout: Option<LayoutFlag>,
    #[command(flatten)]
    interrupt: InterruptFlags,
    /// What threads without work do [default: spin-then-park]
    #[arg(long, value_enum)]
    idle: Option<IdleFlag>,
    /// Bind threads to cores: auto, off, or the cores, the dispatcher's first: 0,1,2 [default: auto]
    #[arg(long, value_name = "CORES")]
    pin: Option<String>,
    /// How long to answer what was accepted after SIGTERM or SIGINT; a second one ends the server at once [default: 10s]
    #[arg(long, value_name = "TIME")]
    drain: Option<String>,
    /// The longest that the spin service works for one request; who asks for more is refused [default: 100ms]
    #[arg(long, value_name = "TIME")]
    max_spin: Option<String>,
    /// Say what the server does on standard error every so often, a line per class: rate, queued, sheds, times in the server,
    /// where it may run
    #[arg(long, value_name = "TIME", value_parser = stats_every)]
    stats: Option<u64>,
    /// Write the requests served as a trace that fit, plan --trace and sim read: when each came, and how long its handler ran.
    /// The file is there when the server has stopped
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
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
        let (check, stats, record) = (self.check, self.stats, self.record.clone());
        let settings = self.settings()?;
        let admission = settings.admit()?;
        if check {
            return Ok(ExitCode::SUCCESS);
        }
        let classes = settings.app.classes(&settings.workload);
        let names = classes.iter().map(|class| class.name.clone());
        let names = names.chain(["unknown".to_owned()]).collect();
        let wish = Wish::new(stats, record.as_deref(), names)?;
        let server = settings.start(wish.journal_entries())?;
        for line in describe::lines(&server, &settings, admission, &classes) {
            eprintln!("{line}");
        }
        let watch = Watch::begin(&server, wish, admission.interrupts())?;
        heed_signals(server.stopper())?;
        announce(&server)?;
        let learner = Learner::of(&server, settings.workers.value);
        server.wait();
        let stopped = server.shutdown(settings.drain);
        let watched = watch.map_or(Ok(()), Watch::end);
        let stats = stopped?;
        tell(&stats);
        learner.tell(&stats);
        watched?;
        Ok(ExitCode::SUCCESS)
    }

    /// Flags over file over defaults.
    fn settings(self) -> Result<Settings> {
        let file = self
            .config
            .as_deref()
            .map(config::read)
            .transpose()?
            .unwrap_or_default();
        let set = &file.config;
        check::refuse_unheeded(&self, set)?;
        let drain = duration::format(DRAIN_NS);
        let app = self.app.or(set.app).unwrap_or_default();
        let policy = file
            .given("policy", self.policy, &set.policy, || "darc".into())
            .parse(|text| args::server_policy(text))?;
        let layout = file.given(
            "layout",
            self.layout.map(Layout::from),
            &set.layout,
            Layout::default,
        );
        let interruption = Interruption::of(self.interrupt, &file, app)?;
        let default_workers = || {
            let by_signal = interruption.mechanism() == Mechanism::Signal;
            let cores = headway_sim::available_threads();
            default_workers(&policy.value, layout.value, by_signal, cores)
        };
        Ok(Settings {
            workers: file.given("workers", self.workers, &set.workers, default_workers),
            listen: file
                .given("listen", self.listen, &set.listen, || LISTEN.into())
                .parse(|url| address(url))?,
            app,
            interruption,
            policy,
            workload: file
                .given("workload", self.workload, &set.workload, || {
                    "high-bimodal".into()
                })
                .parse(|name| workload(name))?
                .value,
            classifier: file
                .given("classifier", self.classifier, &set.classifier, || {
                    "header".into()
                })
                .parse(|text| text.parse())?
                .value,
            limits_queues: self.queue_limit.is_some() || set.queue_limit.is_some(),
            queue_limit: file.given("queue-limit", self.queue_limit, &set.queue_limit, || 1024),
            layout,
            idle: self.idle.map(Idle::from).or(set.idle).unwrap_or_default(),
            pin: file
                .given("pin", self.pin, &set.pin, || "auto".into())
                .parse(|text| pin(text))?,
            drain: file
                .given("drain", self.drain, &set.drain, || drain)
                .parse(|text| args::time(text).map(Duration::from_nanos))?
                .value,
            max_spin_ns: file
                .given("max-spin", self.max_spin, &set.max_spin, || MAX_SPIN.into())
                .parse(|text| args::time(text))?,
            seed: self.seed.or(set.seed).unwrap_or(1),
            kv: self.kv.or(set.kv.clone().unwrap_or_default()),
        })
    }
}

/// Everything decided. What the server may still refuse keeps its place.
struct Settings {
    listen: Given<SocketAddr>,
    app: App,
    policy: Given<ServerSpec>,
    workers: Given<usize>,
    workload: Workload,
    classifier: AnyClassifier,
    queue_limit: Given<u64>,
    /// Whether it was chosen.
    limits_queues: bool,
    layout: Given<Layout>,
    interruption: Interruption,
    idle: Idle,
    pin: Given<Pin>,
    drain: Duration,
    max_spin_ns: Given<u64>,
    seed: u64,
    kv: KvFlags,
}

impl Settings {
    fn start(&self, journal: usize) -> Result<Server> {
        let builder = Server::builder()
            .workers(self.workers.value)
            .policy_spec(self.policy.value.spec().clone())
            .classes(self.app.classes(&self.workload))
            .classifier(self.classifier.clone())
            .queue_limit(self.queue_limit.value as usize)
            .seed(self.seed)
            .layout(self.layout.value)
            .journal(journal)
            .idle(self.idle)
            .pin(self.pin.value.clone())
            .drain(self.drain)
            .service(
                self.app
                    .service(&self.kv, &self.workload, self.max_spin_ns.value)?,
            )
            .listen_udp(self.listen.value);
        let started = self.interruption.apply(self.app, builder).start();
        started.map_err(|error| match error {
            StartError::Policy(error) => self.policy.refused(explain(&error)),
            StartError::Unplaced { .. } | StartError::Dispatchers { .. } => {
                self.policy.refused(error)
            }
            StartError::InlineSignals => self.layout.refused(error),
            StartError::Workers { .. } => self.workers.refused(error),
            StartError::QueueLimit { .. } => self.queue_limit.refused(error),
            StartError::TooFewCores { .. } | StartError::Pin(_) => self.pin.refused(error),
            StartError::Bind(_) => self.listen.refused(error),
            other => other.into(),
        })
    }
}

/// Long enough for lines to be read.
fn stats_every(text: &str) -> Result<u64, String> {
    const LEAST_NS: u64 = 10_000_000;
    match args::time(text)? {
        ns if ns >= LEAST_NS => Ok(ns),
        _ => Err(format!("'{text}' is too short: at least 10ms")),
    }
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

/// A wrapper such as `timeout` sends its signal to the server and to the server's group: what comes so soon after the first means the same stop.
const SAME_STOP: Duration = Duration::from_millis(200);

/// SIGTERM and SIGINT begin a graceful stop, and end the process when one of them comes again. The signals by which other servers read their
/// settings anew are refused: their default is to end the process.
fn heed_signals(stopper: Stopper) -> Result<()> {
    let heeded = [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2];
    let mut signals = Signals::new(heeded).context("cannot watch for signals")?;
    let mut first: Option<Instant> = None;
    let heed = move |signal| match (signal, first) {
        (SIGTERM | SIGINT, Some(first)) if first.elapsed() < SAME_STOP => {}
        (SIGTERM | SIGINT, Some(_)) => {
            // It ends the process, so there is nothing to do where it fails.
            let _ = emulate_default_handler(signal);
        }
        (SIGTERM | SIGINT, None) => {
            first = Some(Instant::now());
            stopper.request_stop();
        }
        _ => refuse(signal),
    };
    std::thread::Builder::new()
        .name("hw-signals".into())
        .spawn(move || signals.forever().for_each(heed))
        .context("cannot start the signal thread")?;
    Ok(())
}

/// Says that a signal has no effect. Whoever closed standard error, as a terminal does that sends SIGHUP, does not read it.
fn refuse(signal: i32) {
    let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
    let _ = writeln!(
        std::io::stderr(),
        "{name} is ignored: a running server keeps its settings; stop it with SIGTERM and start it anew to change them"
    );
}

/// The closing line. `answered` counts what `load` counts under that name: responses, whatever their status.
fn tell(stats: &Stats) {
    eprintln!(
        "received {}, answered {} (served {}, shed {}, too large {}, refused {}), unsent {}, malformed {}, abandoned {}, panics {}, \
         dropped by the kernel {}",
        stats.received,
        stats.responses(),
        stats.answered,
        stats.shed,
        stats.too_large,
        stats.refused_draining,
        stats.unsent,
        stats.malformed,
        stats.abandoned,
        stats.panics,
        stats.kernel_drops
    );
}
