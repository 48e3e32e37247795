//! Go: one goroutine a request, in a process of its own that gets the schedule and gives the latencies back.
//!
//! Go reads the kernel's clock, since it has no cheaper one, and does not pin its threads.

use crate::cores::Cores;
use crate::schedule::Schedule;
use anyhow::{Context, Result, bail, ensure};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/go");

/// Builds the program; `None` where there is no `go`.
///
/// # Errors
/// When `go` is there and refuses.
pub(crate) fn build() -> Result<Option<PathBuf>> {
    let program = program()?;
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(".");
    // No other version of Go is fetched, and no workspace around the sources counts.
    go.env("GOTOOLCHAIN", "local").env("GOWORK", "off");
    match go.current_dir(SOURCE).status() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context("cannot run `go build`"),
        Ok(status) => {
            ensure!(
                status.success(),
                "`go build` fails in peers/go ({status}); name the other peers by --peer, or mend it"
            );
            Ok(Some(program))
        }
    }
}

/// Beside this program, in the build tree.
fn program() -> Result<PathBuf> {
    let own = std::env::current_exe().context("cannot find this program's own path")?;
    Ok(own.with_file_name("headway-peers-go"))
}

pub(crate) fn play(schedule: &'static Schedule, cores: &Cores) -> Result<()> {
    schedule.start();
    let words = run(&program()?, &request_words(schedule, cores.workers()))?;
    let (latencies_ns, &[lost_ns, overrun_ns]) = words
        .split_last_chunk()
        .context("the Go program says nothing")?;
    let (answered, asked) = (latencies_ns.len(), schedule.arrivals().len());
    if answered != asked {
        bail!("the Go program answered {answered} of {asked} requests");
    }
    for (index, &latency_ns) in latencies_ns.iter().enumerate() {
        schedule.answer(index, latency_ns);
    }
    schedule.note_lost(lost_ns, overrun_ns);
    Ok(())
}

fn request_words(schedule: &Schedule, workers: usize) -> Vec<u8> {
    let arrivals = schedule.arrivals();
    let head = [workers as u64, arrivals.len() as u64];
    let requests = arrivals
        .iter()
        .flat_map(|arrival| [arrival.at_ns, arrival.service_ns]);
    head.into_iter()
        .chain(requests)
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// What the program answers to these bytes, as words.
fn run(program: &Path, input: &[u8]) -> Result<Vec<u64>> {
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run the Go program")?;
    // It reads all of its input before it writes. The pipe's end is dropped here, and so closed.
    child
        .stdin
        .take()
        .context("the Go program has no standard input")?
        .write_all(input)
        .context("the Go program does not read its schedule")?;
    let mut output = Vec::new();
    child
        .stdout
        .take()
        .context("the Go program has no standard output")?
        .read_to_end(&mut output)?;
    let status = child.wait()?;
    ensure!(status.success(), "the Go program failed ({status})");
    let words = output.chunks_exact(8);
    Ok(words
        .map(|bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("chunks of eight bytes")))
        .collect())
}
