//! Commands that start something where standard error is closed or full, and where there is no /proc.

use super::children::TestChild;
use super::hosting::{missing, until};
use super::serving::Serving;
use super::{headway, words};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// What standard error is.
#[derive(Clone, Copy, Debug)]
pub(super) enum StderrState {
    Closed,
    Full,
    /// A pipe that nobody reads any more.
    Gone,
}

/// The command with such a standard error.
pub(super) fn with_stderr(state: StderrState, args: &[&str]) -> Command {
    let program = env!("CARGO_BIN_EXE_headway");
    let mut command = match state {
        StderrState::Closed => {
            let mut shell = Command::new("sh");
            shell.args(["-c", "exec \"$@\" 2>&-", "sh", program]);
            shell
        }
        StderrState::Gone => {
            let (reader, writer) = std::io::pipe().unwrap();
            drop(reader);
            let mut command = Command::new(program);
            command.stderr(writer);
            command
        }
        StderrState::Full => {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let mut command = Command::new(program);
            command.stderr(full);
            command
        }
    };
    command.args(args).stdout(Stdio::piped());
    command.env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"));
    command
}

const STATES: [StderrState; 3] = [StderrState::Closed, StderrState::Full, StderrState::Gone];

/// The URL after `listening` in the first line of what the child prints.
fn listening(child: &mut TestChild) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout()).read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("listening ");
    url.unwrap_or_else(|| panic!("{line:?}")).to_owned()
}

/// A server that was just started answers a request.
pub(super) fn one_answer(server: &mut TestChild) {
    let url = listening(server);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    client.connect(url.strip_prefix("udp://").unwrap()).unwrap();
    client
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    client.send(&[0; 12]).unwrap();
    let mut answer = [0; 64];
    assert!(client.recv(&mut answer).unwrap() > 0);
}

#[test]
fn what_listens_starts_and_ends_where_standard_error_takes_nothing() {
    let server = Serving::start(&["--app", "echo", "--workers", "1", "--pin", "off"]);
    let rack = format!("rack --listen 127.0.0.1:0 --server {}", server.addr());
    let serve =
        "serve --listen udp://127.0.0.1:0 --app spin --workers 1 --policy shinjuku-sq,q=5us";
    for args in [serve, rack.as_str()] {
        for state in STATES {
            let mut child = TestChild::start(&mut with_stderr(state, &words(args)));
            listening(&mut child);
            child.signal(libc::SIGTERM);
            assert_eq!(child.wait().code(), Some(0), "{args} {state:?}");
        }
    }
}

#[test]
fn what_measures_ends_as_ever_where_standard_error_takes_nothing() {
    let server = Serving::start(&["--app", "spin", "--workers", "1", "--pin", "off"]);
    // No run meets this: each says so on standard error.
    let missed = "--slo overall.latency.p50<=1ns --format json";
    let load = format!(
        "load {} --workload high-bimodal --rate 50 --duration 200ms {missed}",
        server.url
    );
    let bench = format!(
        "bench --workload high-bimodal --policy c-fcfs --workers 1 --load 0.1 --duration 200ms {missed}"
    );
    for args in [load, bench] {
        let said = headway(&words(&args)).stderr;
        assert!(!said.is_empty(), "{args} has nothing to say");
        for state in STATES {
            let done = with_stderr(state, &words(&args)).output().unwrap();
            assert_eq!(
                done.status.code(),
                Some(1),
                "{args} {state:?}: {}",
                done.status
            );
            let result = serde_json::from_slice::<Value>(&done.stdout);
            assert!(result.is_ok(), "{args} {state:?}: {result:?}");
        }
    }
}

#[test]
fn what_studies_ends_as_ever_where_standard_error_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let page = page.to_str().unwrap();
    let demo = format!(
        "demo --policy c-fcfs --policy fixed-priority --workers 1 --rounds 2 --seconds 2 --html {page} --format json"
    );
    let reproduce = "reproduce pallas-fig2a --fast --format json";
    for args in [demo.as_str(), reproduce] {
        for state in STATES {
            let done = with_stderr(state, &words(args)).output().unwrap();
            // 1 says that the figures do not count, or that a claim does not hold.
            assert!(
                matches!(done.status.code(), Some(0 | 1)),
                "{args} {state:?}: {}",
                done.status
            );
            let result = serde_json::from_slice::<Value>(&done.stdout);
            assert!(result.is_ok(), "{args} {state:?}: {result:?}");
        }
    }
}

#[test]
fn a_program_runs_where_standard_error_takes_nothing() {
    for state in STATES {
        let args = "run --batch none --socket /nowhere/host.sock -- true";
        let done = with_stderr(state, &words(args)).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{state:?}");
        assert!(done.stdout.is_empty());
    }
}

#[test]
fn a_daemon_starts_where_standard_error_takes_nothing() {
    if let Some(why) = missing() {
        println!("SKIPPED a_daemon_starts_where_standard_error_takes_nothing: {why}");
        return;
    }
    for state in STATES {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("host.sock");
        let place = socket.to_str().unwrap();
        let mut child = TestChild::start(&mut with_stderr(
            state,
            &["host", "--app", "kv", "--share-core", "--socket", place],
        ));
        until("the daemon answers", || {
            let asked = headway(&["host", "status", "--socket", place, "--format", "json"]);
            asked.status.success()
        });
        child.signal(libc::SIGTERM);
        assert_eq!(child.wait().code(), Some(0), "{state:?}");
    }
}

/// The command where /proc is an empty folder; why there is none.
fn without_proc(args: &[&str]) -> Result<Command, String> {
    let hide = "mount -t tmpfs none /proc && exec \"$@\"";
    let hidden = |program: &str| {
        let mut command = Command::new("unshare");
        command.args([
            "--mount",
            "--propagation",
            "private",
            "sh",
            "-c",
            hide,
            "sh",
            program,
        ]);
        command
    };
    let tried = hidden("true").output();
    match tried {
        Ok(output) if output.status.success() => {}
        Ok(output) => return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => return Err(format!("unshare: {error}")),
    }
    let mut command = hidden(env!("CARGO_BIN_EXE_headway"));
    command
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Ok(command)
}

/// With threads that run requests to their end, and with those that interrupt them, which a monitor or other workers look at.
#[test]
fn a_server_serves_without_proc() {
    for policy in [
        "darc",
        "shinjuku-sq,q=5us",
        "synergy --workload high-bimodal",
        "tiny-quanta",
    ] {
        let args = format!(
            "serve --listen udp://127.0.0.1:0 --app spin --workers 1 --pin off --no-ctl --policy {policy}"
        );
        let mut command = match without_proc(&words(&args)) {
            Ok(command) => command,
            Err(why) => {
                return println!("SKIPPED a_server_serves_without_proc: it needs root ({why})");
            }
        };
        let mut child = TestChild::start(&mut command);
        one_answer(&mut child);
        child.signal(libc::SIGTERM);
        assert_eq!(child.wait().code(), Some(0), "{policy}");
    }
}

/// What `doctor` finds of the kernel.
fn kernel_found(doctor: &Output) -> Value {
    let report: Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let kernel = findings.iter().find(|it| it["name"] == "kernel");
    kernel.expect("a finding").clone()
}

#[test]
fn the_doctor_knows_the_kernel_without_proc() {
    let mut command = match without_proc(&words("doctor --format json")) {
        Ok(command) => command,
        Err(why) => {
            return println!(
                "SKIPPED the_doctor_knows_the_kernel_without_proc: it needs root ({why})"
            );
        }
    };
    let done = command.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let with_proc = headway(&words("doctor --format json"));
    assert_eq!(kernel_found(&done), kernel_found(&with_proc));
    let older = |doctor: &Output| {
        let said = String::from_utf8_lossy(&doctor.stdout);
        said.matches("older than").count()
    };
    assert_eq!(older(&done), older(&with_proc), "{done:?}");
}

#[test]
fn a_full_standard_output_is_named() {
    for args in [
        "serve --listen udp://127.0.0.1:0 --app echo --workers 1 --pin off --no-ctl",
        "rack --listen 127.0.0.1:0 --server 127.0.0.1:9 --no-ctl",
    ] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
        let done = command.args(words(args)).stdout(full).output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(
            said.contains("cannot write to standard output: No space"),
            "{said}"
        );
    }
}
