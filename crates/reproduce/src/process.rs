//! Processes of the command `headway`, which print a line when they are ready.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Time after which a process that is not ready counts as failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// The errors of a measured process.
#[derive(thiserror::Error)]
pub enum ProcessError {
    /// The process cannot start, or cannot get a file or port.
    #[error("cannot run {program}: {source}")]
    Run {
        /// The program and its verb.
        program: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The expected line did not come in time.
    #[error("{program} did not say within 30 s that it is ready: {said}")]
    NotReady {
        /// The program and its verb.
        program: String,
        /// The lines that came instead.
        said: String,
    },
}

headway_words::debug_is_display!(ProcessError);

/// A process whose output lines can be awaited; killed when it is dropped.
#[derive(Debug)]
pub(crate) struct HeadwayProcess {
    program: String,
    process: Child,
    lines: Receiver<String>,
}

impl HeadwayProcess {
    pub(crate) fn start(command: &Path, args: &[&str]) -> Result<Self, ProcessError> {
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
                    // The receiver is gone once its owner needs no more lines.
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

    /// Waits for a line that contains `words`.
    pub(crate) fn await_line(&self, words: &str) -> Result<String, ProcessError> {
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

    pub(crate) fn await_address(&self) -> Result<SocketAddr, ProcessError> {
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

impl Drop for HeadwayProcess {
    fn drop(&mut self) {
        // Fails if the process has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
