//! Commands that serve beside a reader of standard error that stands still: what they say there holds up none of their threads.

use super::children::TestChild;
use super::hosting::{missing, until};
use super::words;
use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A pipe as standard error: its reader is there, reads nothing, and no byte more finds room.
fn full_pipe() -> (PipeReader, Stdio) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    // SAFETY: the call takes no pointers.
    let room = unsafe { libc::fcntl(writer.as_raw_fd(), libc::F_GETPIPE_SZ) };
    writer.write_all(&vec![b'.'; room as usize]).unwrap();
    (reader, writer.into())
}

/// Starts the command with such a standard error.
fn started(args: &[&str]) -> (TestChild, PipeReader) {
    let (reader, stderr) = full_pipe();
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command.args(args).stdout(Stdio::piped()).stderr(stderr);
    command.env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"));
    (TestChild::start(&mut command), reader)
}

/// Waits until the child says where it listens.
fn await_listening(child: &mut TestChild) {
    let (said, says) = channel();
    let mut out = BufReader::new(child.stdout());
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = out.read_line(&mut line);
        let _ = said.send(line);
    });
    let line = says.recv_timeout(Duration::from_secs(60)).expect("a line");
    assert!(line.starts_with("listening "), "{line:?}");
}

/// Sends SIGHUP, whose answer finds no room, then SIGTERM.
fn ends_in_order(mut child: TestChild, what: &str) {
    child.signal(libc::SIGHUP);
    std::thread::sleep(Duration::from_millis(100));
    child.signal(libc::SIGTERM);
    until(&format!("{what} ends"), || child.ended().is_some());
    assert_eq!(child.wait().code(), Some(0), "{what}");
}

#[test]
fn a_server_ends_and_completes_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record.csv");
    let serve = "serve --listen udp://127.0.0.1:0 --app spin --workers 1 --pin off --policy c-fcfs --no-ctl --drain 1s --stats 10ms --record";
    let mut args = words(serve);
    args.push(record.to_str().unwrap());
    let (mut child, _reader) = started(&args);
    await_listening(&mut child);
    ends_in_order(child, "serve");
    assert!(lines(&record) > 0, "the record was never written");
}

#[test]
fn a_switch_ends() {
    let args = "rack --listen 127.0.0.1:0 --server 127.0.0.1:9 --no-ctl";
    let (mut child, _reader) = started(&words(args));
    await_listening(&mut child);
    ends_in_order(child, "rack");
}

#[test]
fn a_daemon_of_a_host_ends() {
    if let Some(why) = missing() {
        eprintln!("SKIPPED a_daemon_of_a_host_ends: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("host.sock");
    let place = socket.to_str().unwrap();
    let (child, _reader) = started(&["host", "--app", "kv", "--share-core", "--socket", place]);
    until("the daemon answers", || {
        let status = super::headway(&["host", "status", "--socket", place]);
        status.status.success()
    });
    ends_in_order(child, "host");
}

/// A supervisor that does not read waits for the end all the same.
#[test]
fn a_server_that_fails_ends_with_its_status() {
    for args in [
        "serve --listen udp://127.0.0.1:0 --app spin --ctl /nowhere/at/all.sock",
        "rack --no-ctl",
        "host --socket /nowhere/at/all.sock --app kv",
    ] {
        let (mut child, _reader) = started(&words(args));
        until(&format!("{args} ends"), || child.ended().is_some());
        assert_eq!(child.wait().code(), Some(2), "{args}");
    }
}

fn lines(path: &Path) -> usize {
    File::open(path).map_or(0, |file| BufReader::new(file).lines().count())
}
