//! A daemon in this process or in another, and its reports.

use crate::processes::{TestProcess, marked};
use headway_host::arbiter::HostReport;
use headway_host::daemon::{AppRule, DaemonError, DaemonSettings, HostDaemon};
use headway_machine::Clock;
use headway_policy::host::AppKind;
use nix::sched::{sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The role of a test's process, and its daemon's socket.
pub(crate) const ROLE: &str = "HEADWAY_HOST_ROLE";

/// Tests that move threads about, or open descriptors, which others count, take turns.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reason why the tests cannot run here, if there is one.
pub(crate) fn missing() -> Option<&'static str> {
    let own = Pid::from_raw(0);
    let mask = sched_getaffinity(own).ok()?;
    let cores = (0..nix::sched::CpuSet::count()).filter(|&core| mask.is_set(core) == Ok(true));
    if cores.count() < 2 {
        return Some("it needs two cores");
    }
    sched_setaffinity(own, &mask)
        .is_err()
        .then_some("sched_setaffinity is forbidden")
}

/// Whether a test can run here; prints the reason if not.
pub(crate) fn may(test: &str) -> bool {
    let why = missing();
    if let Some(why) = why {
        eprintln!("SKIPPED {test}: {why}");
    }
    why.is_none()
}

pub(crate) fn rule(name: &str, guaranteed: usize, kind: AppKind) -> AppRule {
    AppRule {
        name: name.into(),
        guaranteed,
        most: None,
        kind,
        users: Vec::new(),
        groups: Vec::new(),
        network: None,
    }
}

pub(crate) fn settings(socket: &Path, policy: &str) -> DaemonSettings {
    DaemonSettings {
        socket: socket.into(),
        policy: policy.parse().unwrap(),
        apps: vec![
            rule("kv", 1, AppKind::Latency),
            rule("web", 0, AppKind::Latency),
            rule("batch", 0, AppKind::Batch),
        ],
        cores: None,
        shares: Some(true),
        tick_ns: 100_000,
        device: None,
        sysfs: "/sys".into(),
    }
}

/// A test's directory.
pub(crate) struct Stage {
    folder: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The directory, which marks the processes of the test.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("host.sock")
    }

    pub(crate) fn daemon(&self) -> HostDaemon {
        self.daemon_of("shenango")
    }

    pub(crate) fn daemon_of(&self, policy: &str) -> HostDaemon {
        HostDaemon::start(settings(&self.socket(), policy), Clock::global()).unwrap()
    }

    pub(crate) fn try_daemon(&self) -> Result<HostDaemon, DaemonError> {
        HostDaemon::start(settings(&self.socket(), "shenango"), Clock::global())
    }

    /// This test program again, in a role.
    pub(crate) fn spawn(&self, role: &str) -> TestProcess {
        let mut command = Command::new(std::env::current_exe().unwrap());
        self.spawn_by(&mut command, role)
    }

    /// This test program again, in a role, by a command that ends with its name.
    pub(crate) fn spawn_by(&self, command: &mut Command, role: &str) -> TestProcess {
        command
            .args([
                "apps::role",
                "--exact",
                "--ignored",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(ROLE, format!("{role}:{}", self.socket().display()))
            .stdout(Stdio::null());
        self.start(command)
    }

    /// A program that ends with the test.
    pub(crate) fn start(&self, command: &mut Command) -> TestProcess {
        TestProcess::start(command, self.folder.path())
    }
}

/// Checks that no process of the test and no descendant is left.
impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let folder = self.folder.path();
        until("every process is gone", || marked(folder).is_empty());
    }
}

/// Waits until a condition holds, and fails the test after a minute.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(60), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn report(daemon: &HostDaemon) -> HostReport {
    daemon.observer().report(0, 0).expect("the daemon answers")
}

pub(crate) fn cores_of(report: &HostReport, name: &str) -> Option<usize> {
    let app = report.apps.iter().find(|app| app.name == name)?;
    Some(app.cores.len())
}

/// Descriptors that this process has open.
pub(crate) fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// What the process has open.
#[derive(Clone, Copy)]
pub(crate) struct Open {
    descriptors: usize,
    mappings: usize,
}

impl Open {
    pub(crate) fn now() -> Self {
        Self {
            descriptors: descriptors(),
            mappings: mappings(),
        }
    }

    /// Whether it is no more than then. It may be less: the test before may have been about to close some.
    pub(crate) fn is_within(self, then: Self) -> bool {
        self.descriptors <= then.descriptors && self.mappings <= then.mappings
    }
}

/// Mappings of memory shared with applications.
fn mappings() -> usize {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines()
        .filter(|line| line.contains("headway-lines"))
        .count()
}

/// The cores on which each thread of a process may run.
pub(crate) fn masks(pid: u32) -> Vec<String> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let status = tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    status
        .filter_map(|text| {
            let line = text
                .lines()
                .find(|line| line.starts_with("Cpus_allowed_list:"))?;
            Some(line.split_whitespace().nth(1)?.to_owned())
        })
        .collect()
}
