//! `headway serve`: a service under a policy.

#[cfg(test)]
mod agreement;
mod args;
mod check;
pub(crate) mod config;
mod datapath;
mod describe;
pub(crate) mod early;
mod hosted;
mod interrupt;
mod meter;
mod rack;
mod record;
mod settings;
mod watch;

use crate::args::{host_port, server_policy, time};
use crate::commands::apps::BuiltInApp;
use crate::commands::http;
use crate::device_look::DeviceLook;
use crate::learning::Learner;
use anyhow::{Context, Result};
pub(crate) use args::Args;
use config::{Flags, Sourced};
use datapath::ListenAddress;
use early::EarlySignals;
use headway::config::{LISTEN, layout_costs, pin, read_costs, workload};
use headway_net::classify::AnyClassifier;
use headway_ops::signals;
use headway_ops::socket::ControlPlace;
use headway_policy::server::systems::ServerSpec;
use headway_runtime::{
    Idle, Layout, LayoutCosts, LayoutFacts, Mechanism, Server, WorkersFacts, default_workers,
    mean_service_ns,
};
use headway_sim::class_hints;
use headway_workload::{Workload, duration};
use interrupt::Interruption;
use settings::ServeSettings;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
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
        let app = settings.host.as_ref();
        let cores = app
            .map(|app| app.register(&mut settings.workers.value))
            .transpose()?;
        let early =
            EarlySignals::listen(settings.app == BuiltInApp::Kv && settings.kv.data.is_none())?;
        settings.kv.early = Some(early.clone());
        let (server, device) = settings.start(cores).inspect_err(|_| early.end_process())?;
        for line in describe::lines(&server, &settings, admission, &classes) {
            say!("{line}");
        }
        let watch = WatchThread::begin(&server, wish, admission.interrupts())?;
        let (rack, workers) = (settings.rack.as_ref(), settings.workers.value);
        let leaving = rack::begin(&server, rack, workers, classes.len())?;
        signals::heed(move || leaving.request_stop()).context("cannot watch for signals")?;
        if early.came() {
            server.stopper().request_stop();
        }
        announce(&server, &settings)?;
        let learner = Learner::of(&server, settings.workers.value);
        let device = {
            let stopper = server.stopper();
            DeviceLook::begin(device, move || stopper.request_stop())?
        };
        server.wait();
        let stopped = server.shutdown(settings.drain);
        let watched = watch.map_or(Ok(()), WatchThread::end);
        let stats = stopped?;
        say!("{stats}");
        learner.tell(&stats);
        watched?;
        device.map_or(Ok(()), DeviceLook::end)?;
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
        let (set, is_read) = (&file.config, self.stats.is_some() || self.record.is_some());
        check::refuse_unheeded(&self, set)?;
        let drain = duration::format(DRAIN_NS);
        let app = self.app.or(set.app).unwrap_or_default();
        let has_policy = self.policy.is_some() || set.policy.is_some();
        let rack = self.rack.membership(has_policy)?;
        // The policy until the rack assigns another.
        let usual = if rack.is_some() { "c-fcfs" } else { "darc" };
        let policy = file.given("policy", self.policy, &set.policy, || usual.into());
        let policy = policy.parse(|text| server_policy(text))?;
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
            journal: watch::journal_entries(is_read),
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
            metrics: metrics_addr(self.metrics, &file)?,
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
fn control_place(path: Option<PathBuf>, off: bool, file: &config::File) -> Sourced<ControlPlace> {
    let set = &file.config;
    let given = path
        .map(ControlPlace::At)
        .or(off.then_some(ControlPlace::Off));
    if given.is_none()
        && let Some(no_ctl) = set.no_ctl.as_ref().filter(|no_ctl| *no_ctl.get_ref())
    {
        return file.given(
            "no-ctl",
            None,
            &Some(at_place(no_ctl, ControlPlace::Off)),
            || ControlPlace::Off,
        );
    }
    let set = set.ctl.as_ref();
    let set = set.map(|path| at_place(path, ControlPlace::At(path.get_ref().into())));
    file.given("ctl", given, &set, || ControlPlace::Usual)
}

/// Flag over file; none where it is in neither.
fn metrics_addr(flag: Option<String>, file: &config::File) -> Result<Option<Sourced<SocketAddr>>> {
    let given = file.given_if_set("metrics", flag, &file.config.metrics);
    given
        .map(|metrics| metrics.parse(|text| host_port(text)))
        .transpose()
}

/// Another value with the place of this one.
fn at_place<T, U>(set: &Spanned<T>, value: U) -> Spanned<U> {
    Spanned::new(set.span(), value)
}

/// The first line is for programs that wait for the server, the rest for people.
fn announce(server: &Server, settings: &ServeSettings) -> Result<()> {
    let Some(addr) = server.local_addr() else {
        return Ok(());
    };
    if let Some(path) = server.control_path() {
        say!("headway ctl finds it at {}", path.display());
    }
    if let Some(at) = server.metrics_addr() {
        http::say(at);
    }
    if let (Some(why), None) = (server.unpinned(), &settings.host) {
        say!("threads are not pinned: {why}; latencies will suffer");
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening {}", settings.listen.value.shown(addr))
        .and_then(|()| out.flush())
        .context("cannot write to standard output")
}
