//! The server under test: a separate program that is started for each run.
//!
//! `PROGRAM FOLDER POLICY WORKERS ADDRESS PREEMPT spin` prints `listening udp://HOST:PORT` when it is ready, and ends when its input does. Its
//! last line has the numbers of answers and of interruptions: `answered N, preemptions M`. A line before it may have the number of yields at
//! the end of a lock that had prevented an earlier one: `lock yields N`. Its threads never sleep, as in the papers: on a virtual machine,
//! waking a thread takes a hundred times as long as a short request.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;

/// Time after which a server that is not ready counts as failed.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// Time after which a server that has not ended counts as failed; it drains for one second at most.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// The arguments of the server's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerArguments<'a> {
    pub(crate) policy: &'a str,
    pub(crate) workers: usize,
    /// `probes` or `signal`.
    pub(crate) preempt: &'a str,
}

/// A running server; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    /// Address of the server.
    pub(crate) addr: SocketAddr,
    program: PathBuf,
    process: Child,
    input: Option<ChildStdin>,
    said: Receiver<String>,
    /// The server's data and its standard error.
    folder: TempDir,
}

/// A server's counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerCounts {
    pub(crate) answered: u64,
    pub(crate) preemptions: u64,
    /// 0 if the server does not report it.
    pub(crate) lock_yields: u64,
}

/// The errors of a server.
#[derive(thiserror::Error)]
pub enum ServerError {
    /// The program cannot start, or its folder cannot be made.
    #[error("cannot run {}: {source}", program.display())]
    Run {
        /// The program.
        program: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The server did not become ready, did not end, or ended with a failure.
    #[error("{} {did}{}", program.display(), quoted(complaint))]
    Failed {
        /// The program.
        program: PathBuf,
        /// The failure in words.
        did: String,
        /// The server's standard error.
        complaint: String,
    },
}

headway_words::debug_is_display!(ServerError);

fn quoted(complaint: &str) -> String {
    match complaint {
        "" => String::new(),
        words => format!(": {words}"),
    }
}

impl ServerProcess {
    /// Starts the server with a new folder, and waits until it is ready.
    pub(crate) fn start(
        program: &Path,
        arguments: &ServerArguments<'_>,
    ) -> Result<Self, ServerError> {
        let cannot = |source| ServerError::Run {
            program: program.into(),
            source,
        };
        let folder = tempfile::Builder::new()
            .prefix("headway-live-")
            .tempdir()
            .map_err(cannot)?;
        let complaints = File::create(complaints_in(&folder)).map_err(cannot)?;
        let mut process = Command::new(program)
            .arg(folder.path().join("data"))
            .args([arguments.policy, &arguments.workers.to_string()])
            .args(["udp://127.0.0.1:0", arguments.preempt, "spin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(complaints)
            .spawn()
            .map_err(cannot)?;
        let said = lines_of(process.stdout.take().expect("it is piped"));
        let mut server = Self {
            addr: SocketAddr::from(([127, 0, 0, 1], 0)),
            program: program.into(),
            input: process.stdin.take(),
            process,
            said,
            folder,
        };
        server.addr = server.await_address()?;
        Ok(server)
    }

    fn await_address(&mut self) -> Result<SocketAddr, ServerError> {
        let Ok(line) = self.said.recv_timeout(START_PATIENCE) else {
            return Err(self.failed(format!("was not ready within {START_PATIENCE:?}, or ended")));
        };
        let address = line.strip_prefix("listening udp://");
        address
            .and_then(|address| address.parse().ok())
            .ok_or_else(|| self.failed(format!("said {line:?} instead of where it listens")))
    }

    /// Ends the server and returns its counts.
    pub(crate) fn stop(mut self) -> Result<ServerCounts, ServerError> {
        drop(self.input.take());
        let (mut last, mut lock_yields) = (String::new(), 0);
        loop {
            match self.said.recv_timeout(STOP_PATIENCE) {
                Ok(line) => {
                    lock_yields = lock_yields_of(&line).unwrap_or(lock_yields);
                    last = line;
                }
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    return Err(self.failed(format!("did not end within {STOP_PATIENCE:?}")));
                }
            }
        }
        let status = self
            .process
            .wait()
            .map_err(|error| self.failed(format!("cannot be waited for ({error})")))?;
        if !status.success() {
            return Err(self.failed(format!("ended with {status}")));
        }
        let counts = ServerCounts::read(&last)
            .ok_or_else(|| self.failed(format!("ended with the words {last:?}")))?;
        Ok(ServerCounts {
            lock_yields,
            ..counts
        })
    }

    fn failed(&self, did: String) -> ServerError {
        let complaint = std::fs::read_to_string(complaints_in(&self.folder)).unwrap_or_default();
        ServerError::Failed {
            program: self.program.clone(),
            did,
            complaint: complaint.trim().into(),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both fail if the server has already ended, which is the usual case.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl ServerCounts {
    /// Parses `answered N, preemptions M`.
    fn read(line: &str) -> Option<Self> {
        let (answered, preemptions) = line
            .strip_prefix("answered ")?
            .split_once(", preemptions ")?;
        Some(Self {
            answered: answered.parse().ok()?,
            preemptions: preemptions.parse().ok()?,
            lock_yields: 0,
        })
    }
}

fn lock_yields_of(line: &str) -> Option<u64> {
    line.strip_prefix("lock yields ")?.parse().ok()
}

fn complaints_in(folder: &TempDir) -> PathBuf {
    folder.path().join("complaints")
}

/// Sends each line of `output` to the receiver until the end of the output.
fn lines_of(output: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const ARGUMENTS: ServerArguments<'_> = ServerArguments {
        policy: "c-fcfs",
        workers: 1,
        preempt: "probes",
    };

    /// A shell script as the server's program.
    fn script(text: &str) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        (folder, path)
    }

    #[test]
    fn a_server_is_told_what_it_is_to_be_and_says_what_it_did() {
        let (_folder, path) = script(
            "[ \"$2 $3 $4 $5 $6\" = 'c-fcfs 1 udp://127.0.0.1:0 probes spin' ] || exit 3\n\
             echo listening udp://127.0.0.1:4242; cat; echo lock yields 2; echo answered 12, preemptions 3",
        );
        let server = ServerProcess::start(&path, &ARGUMENTS).unwrap();
        assert_eq!(server.addr.port(), 4242);
        let counts = server.stop().unwrap();
        let (answered, preemptions) = (counts.answered, counts.preemptions);
        assert_eq!((answered, preemptions, counts.lock_yields), (12, 3, 2));
    }

    #[test]
    fn a_server_that_fails_is_quoted() {
        let (_folder, path) = script("echo no policy is called so >&2; exit 1");
        let error = ServerProcess::start(&path, &ARGUMENTS)
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("no policy is called so"), "{error}");
        let (_folder, path) = script("echo listening udp://127.0.0.1:1; cat; exit 7");
        let error = ServerProcess::start(&path, &ARGUMENTS)
            .unwrap()
            .stop()
            .unwrap_err();
        assert!(error.to_string().contains("exit status: 7"), "{error}");
    }

    #[test]
    fn a_server_that_is_not_there_is_named() {
        let error = ServerProcess::start(Path::new("/nowhere/server"), &ARGUMENTS).unwrap_err();
        assert!(error.to_string().contains("/nowhere/server"), "{error}");
    }
}
