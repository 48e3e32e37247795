//! The host under test: daemon, server and batch program, each a process of the command `headway`.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::batch::BatchProgram;
use super::experiment::{HostedSetup, HostedSystem};
use crate::process::{HeadwayProcess, ProcessError};

/// The server's name in the daemon's rules.
const SERVER: &str = "server";
/// The batch program's name in the daemon's rules.
const BATCH: &str = "pricer";

/// A running host. Fields drop in this order, so applications end before their daemon.
#[derive(Debug)]
pub(super) struct HostProcesses {
    /// Address of the server.
    pub(super) addr: SocketAddr,
    command: PathBuf,
    socket: String,
    _batch: Option<HeadwayProcess>,
    _server: HeadwayProcess,
    _daemon: HeadwayProcess,
}

/// The daemon's counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct DaemonCounts {
    /// Time on the daemon's clock, ns.
    pub(super) at_ns: u64,
    /// Core time that the daemon granted to the server, ns.
    pub(super) server_core_ns: u64,
    /// Number of grants of a core to an application.
    pub(super) grants: u64,
}

impl HostProcesses {
    /// Starts all processes, and waits until the batch program counts its first work.
    pub(super) fn start(
        command: &Path,
        folder: &Path,
        setup: &HostedSetup,
        system: &HostedSystem,
        program: &BatchProgram,
    ) -> Result<Self, ProcessError> {
        let cannot = |source| ProcessError::Run {
            program: "the host".into(),
            source,
        };
        let socket = folder.join("host.sock");
        // The last run's daemon was killed and left its socket. One that takes a socket over first gives the applications of the last one 100 ms to come back,
        // and grants no core meanwhile.
        match std::fs::remove_file(&socket) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(cannot(error)),
            _ => {}
        }
        let socket = socket.to_string_lossy().into_owned();
        let mix = folder.join("mix.toml").to_string_lossy().into_owned();
        let text = toml::to_string(&setup.workload).unwrap_or_default();
        std::fs::write(&mix, text).map_err(cannot)?;
        let server_rule = format!("{SERVER}:guaranteed={}", system.guaranteed);
        let batch_rule = format!("{BATCH}:batch");
        let cores = format!("0-{}", setup.cores - 1);
        let mut args = vec!["host", "--socket", &socket, "--policy", &system.policy];
        args.extend(["--app", &server_rule, "--app", &batch_rule]);
        args.extend(["--share-core", "--cores", &cores]);
        let daemon = HeadwayProcess::start(command, &args)?;
        daemon.await_line("deals out cores")?;
        let workers = setup.cores.to_string();
        let mut args = vec!["serve", "--listen", "udp://127.0.0.1:0", "--app", "spin"];
        args.extend(["--workload", &mix, "--policy", "c-fcfs", "--no-ctl"]);
        args.extend(["--host", SERVER, "--socket", &socket, "--workers", &workers]);
        let server = HeadwayProcess::start(command, &args)?;
        let addr = server.await_address()?;
        program
            .reset()
            .map_err(|error| cannot(std::io::Error::other(error)))?;
        let batch = if system.batch {
            let path = program.path.to_string_lossy().into_owned();
            let counter = program.counter.to_string_lossy().into_owned();
            let mut args = vec!["run", "--batch", BATCH, "--socket", &socket, "--"];
            args.extend([&*path, &*counter, &*workers]);
            let batch = HeadwayProcess::start(command, &args)?;
            program
                .await_work()
                .map_err(|error| cannot(std::io::Error::other(error)))?;
            Some(batch)
        } else {
            None
        };
        Ok(Self {
            addr,
            command: command.into(),
            socket,
            _batch: batch,
            _server: server,
            _daemon: daemon,
        })
    }

    /// Reads the daemon's counters.
    pub(super) fn counts(&self) -> Result<DaemonCounts, ProcessError> {
        let program = "headway host status".to_owned();
        let output = Command::new(&self.command)
            .args([
                "host",
                "status",
                "--format",
                "json",
                "--socket",
                &self.socket,
            ])
            .output()
            .map_err(|source| ProcessError::Run {
                program: program.clone(),
                source,
            })?;
        let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let apps = status["apps"].as_array().cloned().unwrap_or_default();
        let server = apps.iter().find(|app| app["name"] == SERVER);
        match (status["at_ns"].as_u64(), server) {
            (Some(at_ns), Some(server)) => Ok(DaemonCounts {
                at_ns,
                server_core_ns: server["core_ns"].as_u64().unwrap_or(0),
                grants: apps.iter().filter_map(|app| app["grants"].as_u64()).sum(),
            }),
            _ => Err(ProcessError::NotReady {
                program,
                said: String::from_utf8_lossy(&output.stderr).into_owned(),
            }),
        }
    }
}
