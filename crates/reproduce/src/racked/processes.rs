//! The rack under test: servers with agents and the switch, each a process of the command `headway`.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use headway_workload::Workload;
use tempfile::TempDir;

use super::experiment::{RackedSetup, RackedSystem};

/// A process that is not ready after this will not be.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is wrong with a process of the rack.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It cannot be run, or has no file or port.
    #[error("cannot run {program}: {source}")]
    Run {
        /// The program and what it was to be.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It did not say what it says when it is ready.
    #[error("{program} did not say within 30 s that it is ready: {said}")]
    NotReady {
        /// The program and what it was to be.
        program: String,
        /// What it said instead.
        said: String,
    },
}

/// A process that says line by line what it does; killed when it is dropped.
#[derive(Debug)]
struct Told {
    program: String,
    process: Child,
    lines: Receiver<String>,
}

impl Told {
    fn start(command: &Path, args: &[&str]) -> Result<Self, ProcessError> {
        let program = format!("headway {}", args.first().unwrap_or(&""));
        let started = Command::new(command)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut process = started.map_err(|source| ProcessError::Run {
            program: program.clone(),
            source,
        })?;
        let (sender, lines) = channel();
        let output = process.stdout.take().map(boxed);
        let errors = process.stderr.take().map(boxed);
        for stream in output.into_iter().chain(errors) {
            let sender = sender.clone();
            thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    // Whoever listened may have heard enough.
                    let _ = sender.send(line);
                }
            });
        }
        Ok(Self {
            program,
            process,
            lines,
        })
    }

    /// Waits for the line that has these words.
    fn await_line(&self, words: &str) -> Result<String, ProcessError> {
        let deadline = Instant::now() + PATIENCE;
        let mut said = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(words) => return Ok(line),
                Ok(line) => said.push(line),
                Err(_) => {
                    return Err(ProcessError::NotReady {
                        program: self.program.clone(),
                        said: said.join("; "),
                    });
                }
            }
        }
    }

    fn await_address(&self) -> Result<SocketAddr, ProcessError> {
        let line = self.await_line("listening udp://")?;
        let address = line.rsplit("udp://").next().unwrap_or_default();
        address.parse().map_err(|_| ProcessError::NotReady {
            program: self.program.clone(),
            said: line.clone(),
        })
    }
}

fn boxed(stream: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(stream)
}

impl Drop for Told {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A rack that serves.
#[derive(Debug)]
pub(super) struct RackProcesses {
    /// Where clients send.
    pub(super) addr: SocketAddr,
    _switch: Told,
    _servers: Vec<Told>,
    _folder: TempDir,
}

impl RackProcesses {
    /// Starts servers and switch, and waits until the switch has every agent.
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
            servers.push(Told::start(command, &args)?);
        }
        let addresses: Vec<String> = servers
            .iter()
            .map(|server| Ok(format!("{},cores={workers}", server.await_address()?)))
            .collect::<Result<_, ProcessError>>()?;
        let mut args = vec!["rack", "--listen", "127.0.0.1:0", "--no-ctl"];
        args.extend(["--agents", &agents, "--agent-key", &key]);
        args.extend(["--workload", &mix, "--policy", &system.policy]);
        args.extend(addresses.iter().flat_map(|addr| ["--server", addr]));
        let switch = Told::start(command, &args)?;
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

/// The first phase's mix, which switch and servers are told.
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
    // It keeps nobody out for longer than a run: whoever can read it can do as much without it.
    std::fs::write(&path, "a key of this measurement, and of no other use\n")?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(path)
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A port that nobody has, for now.
fn free_port() -> std::io::Result<SocketAddr> {
    UdpSocket::bind("127.0.0.1:0")?.local_addr()
}
