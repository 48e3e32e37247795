//! A daemon, the server and the batch program, each a process of its own, and one run of them.

use crate::kv;
use crate::load::{self, Load, Step};
use headway_host::arbiter::{HostReport, TenancyChange};
use headway_host::daemon::{AppRule, DaemonSettings, HostDaemon};
use headway_host::program;
use headway_machine::noise::SchedStat;
use headway_machine::{Clock, Topology};
use headway_policy::host::AppKind;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ROLE: &str = "HEADWAY_DEMO_ROLE";
/// The cores that server and batch program share.
pub(crate) const CORES: usize = 2;

/// The role of a process of the demonstration.
pub(crate) struct Role {
    what: String,
    socket: PathBuf,
}

pub(crate) fn role() -> Option<Role> {
    let told = std::env::var(ROLE).ok()?;
    let (what, socket) = told.split_once(':')?;
    Some(Role {
        what: what.to_owned(),
        socket: socket.into(),
    })
}

impl Role {
    pub(crate) fn run(&self) -> Result<(), Box<dyn Error>> {
        // It dies with the demonstration, however that ends; so does the program that it becomes.
        set_pdeathsig(Signal::SIGKILL)?;
        if self.what == "kv" {
            return kv::serve(&self.socket, CORES);
        }
        // Registers and runs as `headway run` does.
        program::register(&self.socket, "pricer", None)?;
        let command: Vec<String> = std::env::args().skip(1).collect();
        Err(program::run(&command).into())
    }
}

/// Why it cannot run here.
pub(crate) fn missing() -> Option<String> {
    let cores = Topology::read("/sys").map_or(0, |topology| topology.cores().len());
    if cores < CORES {
        return Some(format!("it needs {CORES} cores"));
    }
    let compiler = Command::new("cc").arg("--version").output();
    compiler
        .is_err()
        .then(|| "it needs a C compiler (apt-get install gcc libc6-dev)".into())
}

/// One run.
pub(crate) struct Outcome {
    pub(crate) policy: &'static str,
    pub(crate) load: Load,
    /// The part of its time that the server's threads were ready while others had their core, of that and the time that they ran.
    pub(crate) withheld: f64,
    /// Paths priced in each step.
    pub(crate) priced: Vec<u64>,
    pub(crate) report: HostReport,
    pub(crate) changes: Vec<TenancyChange>,
}

pub(crate) struct Stage {
    folder: TempDir,
    pricer: PathBuf,
    cores: Vec<usize>,
    /// Whether a signal came to end the demonstration.
    stops: Arc<AtomicBool>,
}

/// A process that ends with the run.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Stage {
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        let stops = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The second one ends it at once.
            flag::register_conditional_shutdown(signal, 1, Arc::clone(&stops))?;
            flag::register(signal, Arc::clone(&stops))?;
        }
        let folder = tempfile::tempdir()?;
        let pricer = folder.path().join("pricer");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/shared_cores/pricer.c");
        let compiled = Command::new("cc")
            .args(["-std=gnu11", "-O2", "-pthread", "-o"])
            .args([&pricer, &source])
            .arg("-lm")
            .status()?;
        if !compiled.success() {
            return Err("the batch program does not compile".into());
        }
        let cores = Topology::read("/sys")?.pinning_order();
        let mut cores: Vec<usize> = cores.into_iter().take(CORES).collect();
        cores.sort_unstable();
        Ok(Self {
            folder,
            pricer,
            cores,
            stops,
        })
    }

    pub(crate) fn run(
        &self,
        policy: &'static str,
        steps: &[Step],
    ) -> Result<Outcome, Box<dyn Error>> {
        let socket = self.folder.path().join("host.sock");
        let daemon = HostDaemon::start(self.settings(&socket, policy)?, Clock::global())?;
        let (server, port) = spawn_kv(&socket)?;
        let counter = self.folder.path().join("priced");
        fs::write(&counter, [0; 8])?;
        let pricer = spawn_pricer(&socket, &self.pricer, &counter)?;
        let observer = daemon.observer();
        until("both are registered", || {
            observer
                .report(0, 0)
                .is_some_and(|report| report.apps.len() == 2)
                && priced(&counter) > 0
        })?;
        let mut marks = Vec::new();
        let before = SchedStat::of_threads(server.0.id())?;
        let load = load::offer(port, steps, &self.stops, || marks.push(priced(&counter)))?;
        let after = SchedStat::of_threads(server.0.id())?;
        let report = observer
            .report(0, usize::MAX)
            .ok_or("the daemon does not answer")?;
        drop((server, pricer));
        daemon.stop();
        Ok(Outcome {
            policy,
            priced: marks.windows(2).map(|pair| pair[1] - pair[0]).collect(),
            load,
            withheld: withheld(&before, &after),
            changes: report.changes.clone(),
            report,
        })
    }

    fn settings(&self, socket: &Path, policy: &str) -> Result<DaemonSettings, Box<dyn Error>> {
        let rule = |name: &str, guaranteed, kind| AppRule {
            name: name.into(),
            guaranteed,
            most: None,
            kind,
            users: Vec::new(),
            groups: Vec::new(),
            network: None,
        };
        Ok(DaemonSettings {
            socket: socket.into(),
            policy: policy
                .parse()
                .map_err(|error| format!("{policy}: {error}"))?,
            apps: vec![
                rule("kv", 1, AppKind::Latency),
                rule("pricer", 0, AppKind::Batch),
            ],
            cores: Some(self.cores.clone()),
            shares: Some(true),
            tick_ns: 50_000,
            device: None,
            sysfs: "/sys".into(),
        })
    }
}

fn spawn(role: &str, socket: &Path) -> Result<Command, Box<dyn Error>> {
    let mut command = Command::new(std::env::current_exe()?);
    command.env(ROLE, format!("{role}:{}", socket.display()));
    Ok(command)
}

fn spawn_kv(socket: &Path) -> Result<(Ends, u16), Box<dyn Error>> {
    let mut child = spawn("kv", socket)?.stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().ok_or("it has an output")?;
    let child = Ends(child);
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    Ok((child, line.trim().parse()?))
}

fn spawn_pricer(socket: &Path, pricer: &Path, counter: &Path) -> Result<Ends, Box<dyn Error>> {
    let threads = CORES.to_string();
    let mut command = spawn("pricer", socket)?;
    command.arg(pricer).arg(counter).arg(threads);
    Ok(Ends(command.spawn()?))
}

fn priced(counter: &Path) -> u64 {
    let bytes = fs::read(counter).unwrap_or_default();
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

fn withheld(before: &SchedStat, after: &SchedStat) -> f64 {
    let ran = (after.running_ns - before.running_ns) as f64;
    let waited = (after.run_delay_ns - before.run_delay_ns) as f64;
    waited / (ran + waited).max(1.0)
}

fn until(what: &str, mut holds: impl FnMut() -> bool) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    while !holds() {
        if start.elapsed() > Duration::from_secs(10) {
            return Err(format!("in vain: {what}").into());
        }
        thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}
