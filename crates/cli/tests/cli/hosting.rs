//! The daemon of a host, and programs under it.

use crate::children::TestChild;
use crate::headway;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Why cores cannot be dealt out here, if they cannot.
fn missing() -> Option<&'static str> {
    if std::env::var_os("CI").is_some() {
        return Some("it moves threads between cores that others share");
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores < 2).then_some("it needs two cores")
}

/// A daemon that ends with the test.
fn daemon(socket: &Path) -> TestChild {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command
        .args([
            "host",
            "--app",
            "kv:guaranteed=1",
            "--app",
            "pricer:batch",
            "--share-core",
            "--socket",
        ])
        .arg(socket)
        .stderr(Stdio::piped());
    let mut child = TestChild::start(&mut command);
    // It says what it does once it listens.
    let mut line = String::new();
    BufReader::new(child.stderr())
        .read_line(&mut line)
        .expect("it speaks");
    assert!(line.contains("deals out cores"), "{line}");
    child
}

/// Status 2, and a sentence with what to do.
fn refused(args: &[&str], part: &str) {
    let output = headway(args);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
    assert!(text.contains(part), "{args:?}: {text}");
}

#[test]
fn settings_that_cannot_be_are_refused() {
    refused(&["host"], "no application is named");
    refused(
        &["host", "--check", "--app", "kv:guaranteed=9999"],
        "guaranteed",
    );
    refused(
        &["host", "--check", "--app", "kv", "--policy", "darc"],
        "policy of a server",
    );
    refused(
        &["host", "--check", "--app", "kv", "--cores", "9999"],
        "no core 9999",
    );
    refused(
        &["host", "--check", "--app", "kv", "--tick", "1ns"],
        "a tick is",
    );
    refused(
        &["host", "--check", "--app", "kv:user=nobody-at-all"],
        "knows no user",
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.toml");
    std::fs::write(&file, "polcy = \"static\"\n").unwrap();
    refused(
        &["host", "--check", "-c", file.to_str().unwrap()],
        "did you mean `policy`?",
    );
    let socket = folder.path().join("none.sock");
    let run = [
        "run",
        "--batch",
        "pricer",
        "--socket",
        socket.to_str().unwrap(),
        "--",
        "true",
    ];
    refused(&run, "start one by 'headway host'");
}

#[test]
fn a_file_says_what_flags_say() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.toml");
    let text = "policy = \"interval,period=20ms\"\nshare-core = true\n[[app]]\nname = \"kv\"\nguaranteed = 1\nusers = [\"root\"]\n[[app]]\nname = \"pricer\"\nclass = \"batch\"\n";
    std::fs::write(&file, text).unwrap();
    let socket = folder.path().join("host.sock");
    let output = headway(&[
        "host",
        "--check",
        "-c",
        file.to_str().unwrap(),
        "--socket",
        socket.to_str().unwrap(),
    ]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        said.contains("interval,period=20ms") && said.contains("no core of its own"),
        "{said}"
    );
}

#[test]
fn a_program_keeps_its_status_and_the_daemon_says_who_has_which_core() {
    if let Some(why) = missing() {
        eprintln!("SKIPPED a_program_keeps_its_status: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("host.sock");
    let place = socket.to_str().unwrap();
    let _daemon = daemon(&socket);
    refused(
        &["host", "--app", "kv", "--share-core", "--socket", place],
        "another daemon listens",
    );
    refused(
        &["run", "--batch", "kv", "--socket", place, "--", "true"],
        "must be of class batch",
    );
    refused(
        &["run", "--batch", "other", "--socket", place, "--", "true"],
        "there are: kv, pricer",
    );
    let ran = |script: &str| {
        headway(&[
            "run", "--batch", "pricer", "--socket", place, "--", "sh", "-c", script,
        ])
    };
    assert_eq!(ran("exit 7").status.code(), Some(7));
    let killed = ran("kill -TERM $$").status;
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&killed),
        Some(15)
    );
    assert_eq!(ran("echo it runs").stdout, b"it runs\n");
    let status = crate::json(&["host", "status", "--socket", place, "--format", "json"]);
    assert_eq!(status["spec"], "shenango");
    assert!(
        status["cores"]
            .as_array()
            .is_some_and(|cores| !cores.is_empty()),
        "{status}"
    );
    assert!(status["grant"]["count"].as_u64() >= Some(1), "{status}");
    let table = headway(&["host", "status", "--socket", place]);
    assert!(String::from_utf8_lossy(&table.stdout).contains("the policy's look"));
}
