//! `headway serve`: a service under a policy.

mod args;
mod check;
pub(crate) mod config;
mod datapath;
mod describe;
mod hosted;
mod interrupt;
mod meter;
mod rack;
mod record;
mod settings;
mod watch;

use crate::args::{server_policy, time};
use crate::learning::Learner;
use anyhow::{Context, Result};
pub(crate) use args::Args;
use config::{Flags, Sourced};
use datapath::ListenAddress;
use headway::config::{LISTEN, layout_costs, pin, read_costs, workload};
use headway_ctl::server::Subject;
use headway_ctl::socket::{Answering, ControlSocket, Place};
use headway_net::classify::AnyClassifier;
use headway_policy::server::systems::ServerSpec;
use headway_runtime::{
    Idle, Layout, LayoutCosts, LayoutFacts, Mechanism, Server, Stats, WorkersFacts,
    default_workers, mean_service_ns,
};
use headway_sim::class_hints;
use headway_workload::{Workload, duration};
use interrupt::Interruption;
use rack::Leaving;
use settings::ServeSettings;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use toml::Spanned;
use watch::{WatchThread, Wish};

/// The default limit of a request's service time. The wire header alone could ask for 4.3 s.
const MAX_SPIN: &str = "100ms";
const DRAIN_NS: u64 = 10_000_000_000;

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let (check, stats, record) = (self.check, self.stats, self.record.clone());
        let mut settings = self.settings()?;
        let admission = settings.admit()?;
        if check {
            return Ok(ExitCode::SUCCESS);
        }
        let classes = settings.app.classes(&settings.workload);
        let names = classes.iter().map(|class| class.name.clone());
        let names = names.chain(["unknown".to_owned()]).collect();
        let wish = Wish::new(stats, record.as_deref(), names)?;
        let early = settings.control_socket(settings.listen.value.port())?;
        let app = settings.host.as_ref();
        let cores = app
            .map(|app| app.register(&mut settings.workers.value))
            .transpose()?;
        let server = settings.start(wish.journal_entries(), cores)?;
        for line in describe::lines(&server, &settings, admission, &classes) {
            eprintln!("{line}");
        }
        let watch = WatchThread::begin(&server, wish, admission.interrupts())?;
        let (rack, workers) = (settings.rack.as_ref(), settings.workers.value);
        heed_signals(rack::begin(&server, rack, workers, classes.len())?)?;
        // The port that the system chose names the socket.
        let socket = match (early, server.local_addr()) {
            (None, Some(addr)) => settings.control_socket(addr.port())?,
            (early, _) => early,
        };
        let _socket = answer_control(socket, &server)?;
        announce(&server, &settings)?;
        let learner = Learner::of(&server, settings.workers.value);
        server.wait();
        let stopped = server.shutdown(settings.drain);
        let watched = watch.map_or(Ok(()), WatchThread::end);
        let stats = stopped?;
        tell(&stats);
        learner.tell(&stats);
        watched?;
        Ok(ExitCode::SUCCESS)
    }

    /// Flags over file over defaults.
    fn settings(self) -> Result<ServeSettings> {
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
        let has_policy = self.policy.is_some() || set.policy.is_some();
        let rack = self.rack.membership(has_policy)?;
        // The policy until the rack assigns another.
        let usual = if rack.is_some() { "c-fcfs" } else { "darc" };
        let policy = file
            .given("policy", self.policy, &set.policy, || usual.into())
            .parse(|text| server_policy(text))?;
        let layout = file.given(
            "layout",
            self.layout.map(Layout::from),
            &set.layout,
            Layout::default,
        );
        let asks_workers = self.workers.is_some() || set.workers.is_some();
        let host = self.hosted.app(&file, asks_workers)?;
        let measured = measured_costs(self.costs, &file)?;
        let workload = spin_workload(self.workload, &file)?;
        let interruption = Interruption::of(self.interrupt, &file)?;
        Ok(ServeSettings {
            workers: file.given("workers", self.workers, &set.workers, || {
                // Nobody but the workers has cores that a host grants.
                let layout = host.as_ref().map_or(layout.value, |_| Layout::Inline);
                usual_workers(&policy.value, layout, &interruption, measured, &workload)
            }),
            listen: file
                .given("listen", self.listen, &set.listen, || LISTEN.into())
                .parse(|url| ListenAddress::parse(url))?,
            app,
            rack,
            host,
            interruption,
            policy,
            workload,
            classifier: classifier(self.classifier, &file)?,
            limits_queues: self.queue_limit.is_some() || set.queue_limit.is_some(),
            queue_limit: file.given("queue-limit", self.queue_limit, &set.queue_limit, || 1024),
            layout,
            layout_costs: measured,
            idle: self.idle.map(Idle::from).or(set.idle).unwrap_or_default(),
            steer: file
                .given_if_set("steer", self.steer, &set.steer)
                .map(|steer| steer.parse(|text| text.parse()))
                .transpose()?,
            pin: file
                .given("pin", self.pin, &set.pin, || "auto".into())
                .parse(|text| pin(text))?,
            drain: file
                .given("drain", self.drain, &set.drain, || drain)
                .parse(|text| time(text).map(Duration::from_nanos))?
                .value,
            max_spin_ns: file
                .given("max-spin", self.max_spin, &set.max_spin, || MAX_SPIN.into())
                .parse(|text| time(text))?,
            ctl: control_place(self.ctl, self.no_ctl, &file),
            seed: self.seed.or(set.seed).unwrap_or(1),
            kv: self.kv.or(set.kv.clone().unwrap_or_default()),
        })
    }
}

/// The costs of layouts that `headway calibrate` measured; built-in ones without a file.
fn measured_costs(flag: Option<String>, file: &config::File) -> Result<LayoutCosts> {
    let costs = file
        .given_if_set("costs", flag, &file.config.costs)
        .map(|path| path.parse(|path| read_costs(Path::new(path))))
        .transpose()?;
    Ok(costs.map_or_else(LayoutCosts::default, |file| layout_costs(&file.value.costs)))
}

/// Workers where nobody says how many.
fn usual_workers(
    policy: &ServerSpec,
    layout: Layout,
    interruption: &Interruption,
    costs: LayoutCosts,
    workload: &Workload,
) -> usize {
    let facts = WorkersFacts {
        cores: LayoutFacts::usable_cores(),
        by_signal: interruption.mechanism() == Mechanism::Signal,
        costs,
        service_ns: mean_service_ns(&class_hints(workload)),
    };
    default_workers(policy, layout, &facts)
}

/// The workload whose classes are those of the spin service.
fn spin_workload(flag: Option<String>, file: &config::File) -> Result<Workload> {
    let set = &file.config.workload;
    let name = file.given("workload", flag, set, || "high-bimodal".into());
    Ok(name.parse(|name| workload(name))?.value)
}

fn classifier(flag: Option<String>, file: &config::File) -> Result<AnyClassifier> {
    let set = &file.config.classifier;
    let spec = file.given("classifier", flag, set, || "header".into());
    Ok(spec.parse(|text| text.parse())?.value)
}

/// Flags over file over the place by port.
fn control_place(path: Option<PathBuf>, off: bool, file: &config::File) -> Sourced<Place> {
    let set = &file.config;
    let given = path.map(Place::At).or(off.then_some(Place::Off));
    if given.is_none()
        && let Some(no_ctl) = set.no_ctl.as_ref().filter(|no_ctl| *no_ctl.get_ref())
    {
        return file.given("no-ctl", None, &Some(at_place(no_ctl, Place::Off)), || {
            Place::Off
        });
    }
    let set = set.ctl.as_ref();
    let set = set.map(|path| at_place(path, Place::At(path.get_ref().into())));
    file.given("ctl", given, &set, || Place::ByPort)
}

/// Another value with the place of this one.
fn at_place<T, U>(set: &Spanned<T>, value: U) -> Spanned<U> {
    Spanned::new(set.span(), value)
}

/// Answers at the control socket, if there is one, until what this returns is dropped.
fn answer_control(socket: Option<ControlSocket>, server: &Server) -> Result<Option<Answering>> {
    let Some(socket) = socket else {
        return Ok(None);
    };
    eprintln!("headway ctl finds it at {}", socket.path().display());
    let answering = socket.answer(Subject::of(server));
    let answering = answering.context("cannot start the thread that answers headway ctl")?;
    Ok(Some(answering))
}

/// The first line is for programs that wait for the server, the rest for people.
fn announce(server: &Server, settings: &ServeSettings) -> Result<()> {
    let Some(addr) = server.local_addr() else {
        return Ok(());
    };
    if let (Some(why), None) = (server.unpinned(), &settings.host) {
        eprintln!("threads are not pinned: {why}; latencies will suffer");
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening {}", settings.listen.value.shown(addr))?;
    Ok(out.flush()?)
}

/// A wrapper such as `timeout` signals the server and its group. A second signal this soon after the first belongs to the same stop.
const SAME_STOP: Duration = Duration::from_millis(200);

/// SIGTERM and SIGINT begin a graceful stop; a second one ends the process. The handler ignores the signals that make other servers reload
/// their settings, since their default ends the process.
fn heed_signals(leaving: Leaving) -> Result<()> {
    let heeded = [SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2];
    let mut signals = Signals::new(heeded).context("cannot watch for signals")?;
    let mut first: Option<Instant> = None;
    std::thread::Builder::new()
        .name("hw-signals".into())
        .spawn(move || {
            for signal in signals.forever() {
                match (signal, first) {
                    (SIGTERM | SIGINT, Some(first)) if first.elapsed() < SAME_STOP => {}
                    (SIGTERM | SIGINT, Some(_)) => {
                        // The call ends the process, so its failure has no remedy.
                        let _ = emulate_default_handler(signal);
                    }
                    (SIGTERM | SIGINT, None) => {
                        first = Some(Instant::now());
                        leaving.request_stop();
                    }
                    _ => refuse(signal),
                }
            }
        })
        .context("cannot start the signal thread")?;
    Ok(())
}

/// Says that a signal has no effect. The write may fail: a terminal that sends SIGHUP has closed standard error.
fn refuse(signal: i32) {
    let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
    let _ = writeln!(
        std::io::stderr(),
        "{name} is ignored: a running server does not read its settings anew; `headway ctl set` changes its policy's parameters, and for the \
         rest stop it with SIGTERM and start it anew"
    );
}

/// Behind a rack's switch, where requests were handed back to it.
fn handed_back(stats: &Stats) -> String {
    match stats.handed_back {
        0 => String::new(),
        requests => format!(", handed back {requests}"),
    }
}

/// The closing line. `answered` counts what `load` counts under that name: responses, whatever their status.
fn tell(stats: &Stats) {
    eprintln!(
        "received {}, answered {} (served {}, shed {}, too large {}, refused {}), unsent {}, malformed {}, abandoned {}, panics {}, \
         dropped by the kernel {}{}",
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
        stats.kernel_drops,
        handed_back(stats)
    );
}
