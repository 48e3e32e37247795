//! Where output goes: results have their place before a run, and a standard error that is full ends nothing.

use super::hosting::until;
use super::{headway, words};
use crate::children::TestChild;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Each of these would take minutes, and the test with it.
#[test]
fn a_result_without_a_place_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("no/such/result");
    let place = place.to_str().unwrap();
    for (command, flags) in [
        (
            "sim --workload tpcc --policy darc --requests 4G",
            &["-o", "--hlog", "--trace-out", "--html"][..],
        ),
        (
            "sweep --workload tpcc --policy darc --requests 4G",
            &["-o", "--html"],
        ),
        (
            "capacity --workload tpcc --policy darc --slo overall.slowdown.p99<=9 --requests 4G",
            &["-o"],
        ),
        (
            "plan --workload tpcc --slo overall.slowdown.p99<=9 --requests 4G",
            &["-o"],
        ),
        (
            "bench --workload tpcc --policy darc --duration 600s",
            &["-o"],
        ),
        (
            "load udp://127.0.0.1:9 --workload tpcc --rate 10 --duration 600s",
            &["-o", "--hlog", "--record"],
        ),
        ("reproduce all", &["-o", "--html"]),
        ("calibrate", &["-o"]),
        ("demo", &["-o", "--html"]),
    ] {
        for flag in flags {
            let refused = headway(&[&words(command)[..], &[flag, place]].concat());
            let said = String::from_utf8(refused.stderr).unwrap();
            assert_eq!(refused.status.code(), Some(2), "{command} {flag}: {said}");
            let name = flag
                .replace("-o", "--output")
                .replace("----output", "--output");
            let name = if flag.starts_with("--") { *flag } else { &name };
            assert!(
                said.contains(name) && said.contains(place),
                "{command} {flag}: {said}"
            );
        }
    }
}

/// A command whose standard error has no room for a single byte.
fn with_full_stderr(args: &[&str]) -> Command {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command.args(args).stdout(Stdio::piped()).stderr(full);
    command.env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"));
    command
}

#[test]
fn a_full_standard_error_changes_no_exit_status() {
    for (args, code) in [
        ("sim --policy no-such --workload tpcc", 2),
        ("sim --workload /no/such.toml --policy darc", 2),
        ("ctl status udp://127.0.0.1:9", 2),
        (
            "sim --workload tpcc --policy darc --load 0.5 --requests 10k --slo overall.slowdown.p99<=0.1",
            1,
        ),
    ] {
        let done = with_full_stderr(&words(args)).output().unwrap();
        let expected = headway(&words(args)).status.code();
        assert_eq!(done.status.code(), expected, "{args}");
        assert_eq!(expected, Some(code), "{args}");
    }
}

#[test]
fn a_server_starts_and_ends_with_a_full_standard_error() {
    let mut command = with_full_stderr(&words("serve --listen udp://127.0.0.1:0 --app echo"));
    let mut child = TestChild::start(&mut command);
    let mut line = String::new();
    BufReader::new(child.stdout()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening udp://"), "{line:?}");
}

/// The files beside results, which hold them until they are whole.
fn unfinished(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".headway-")).collect()
}

#[test]
fn what_a_killed_run_leaves_behind_the_next_one_clears() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("result.json");
    let sim = |requests| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
        command.args(words(
            "sim --workload tpcc --policy darc --load 0.5 --format json",
        ));
        command.args(["--requests", requests, "-o"]).arg(&result);
        command.stderr(Stdio::null());
        command
    };
    let mut child = TestChild::start(&mut sim("4G"));
    until("it has opened its place", || {
        !unfinished(folder.path()).is_empty()
    });
    child.kill();
    assert_eq!(unfinished(folder.path()).len(), 1);
    assert!(!result.exists(), "half a result is none");
    assert!(sim("10k").status().unwrap().success());
    assert_eq!(unfinished(folder.path()), Vec::<String>::new());
    let whole = std::fs::read(&result).unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&whole).is_ok());
}
