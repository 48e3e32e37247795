//! The rack under test: servers with agents and the switch, each a process of the command `headway`.

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use headway_workload::Workload;
use tempfile::TempDir;

use super::experiment::{RackedSetup, RackedSystem};
use crate::process::{HeadwayProcess, ProcessError};

/// A running rack.
#[derive(Debug)]
pub(super) struct RackProcesses {
    /// Address of the switch.
    pub(super) addr: SocketAddr,
    _switch: HeadwayProcess,
    _servers: Vec<HeadwayProcess>,
    _folder: TempDir,
}

impl RackProcesses {
    /// Starts servers and switch, and waits until the switch accepts every agent.
    pub(super) fn start(
        command: &Path,
        setup: &RackedSetup,
        workload: &Workload,
        system: &RackedSystem,
    ) -> Result<Self, ProcessError> {
        let cannot = |source| ProcessError::Run {
            program: "the rack".into(),
            source,
        };
        let folder = tempfile::tempdir().map_err(cannot)?;
        let key = key_file(&folder).map_err(cannot)?;
        let mix = folder.path().join("mix.toml");
        std::fs::write(&mix, mix_of(workload)).map_err(cannot)?;
        let (key, mix) = (text_of(&key), text_of(&mix));
        let agents = free_port().map_err(cannot)?.to_string();
        let workers = setup.workers.to_string();
        let mut servers = Vec::new();
        for _ in 0..setup.servers {
            let mut args = vec!["serve", "--listen", "udp://127.0.0.1:0", "--app", "sleep"];
            args.extend(["--workload", &mix, "--workers", &workers, "--pin", "off"]);
            args.extend(["--no-ctl", "--rack", &agents, "--rack-key", &key]);
            if let Some(policy) = &system.servers {
                args.extend(["--policy", policy]);
            }
            servers.push(HeadwayProcess::start(command, &args)?);
        }
        let addresses: Vec<String> = servers
            .iter()
            .map(|server| Ok(format!("{},cores={workers}", server.await_address()?)))
            .collect::<Result<_, ProcessError>>()?;
        let mut args = vec!["rack", "--listen", "127.0.0.1:0", "--no-ctl"];
        args.extend(["--agents", &agents, "--agent-key", &key]);
        args.extend(["--workload", &mix, "--policy", &system.policy]);
        args.extend(addresses.iter().flat_map(|addr| ["--server", addr]));
        let switch = HeadwayProcess::start(command, &args)?;
        let addr = switch.await_address()?;
        for server in &servers {
            server.await_line("has this server")?;
        }
        Ok(Self {
            addr,
            _switch: switch,
            _servers: servers,
            _folder: folder,
        })
    }
}

/// The first phase's mix, as a workload file for switch and servers.
fn mix_of(workload: &Workload) -> String {
    let first = workload.phases.first();
    let classes = first.map_or(&workload.classes, |phase| &phase.classes);
    let mut text = String::from("name = \"mix\"\n");
    for class in classes {
        let mean_us = class.mean_ns() / 1e3;
        text += &format!(
            "\n[[class]]\nname = \"{}\"\nshare = {}\nservice = {{ dist = \"constant\", mean = \"{mean_us}us\" }}\n",
            class.name, class.share
        );
    }
    text
}

fn key_file(folder: &TempDir) -> std::io::Result<PathBuf> {
    let path = folder.path().join("key");
    // The key serves a single run: a user who can read this file can do as much without it.
    std::fs::write(&path, "a key of this measurement, and of no other use\n")?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(path)
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A port that is free at the moment.
fn free_port() -> std::io::Result<SocketAddr> {
    UdpSocket::bind("127.0.0.1:0")?.local_addr()
}
