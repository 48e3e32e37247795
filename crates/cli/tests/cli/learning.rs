//! A warning on standard error tells of a policy that has learned nothing, or has nothing to reserve.

use super::headway;
use crate::children::TestChild;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// The standard error of a command that must succeed.
fn said(args: &[&str]) -> String {
    let done = headway(args);
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(done.status.success(), "{args:?}: {said}");
    said
}

const LEARNED_NOTHING: &str = "within the first window of 50000 requests";

#[test]
fn runs_that_end_within_the_first_window_say_so() {
    let of = |command: &[&'static str], policy: &'static str, workers: &'static str| {
        let short = ["--policy", policy, "--workers", workers, "--requests", "2k"];
        said(&[command, &short[..]].concat())
    };
    let sim: &[&str] = &["sim", "--workload", "high-bimodal", "--load", "0.5"];
    let sweep: &[&str] = &["sweep", "--workload", "high-bimodal", "--loads", "0.3,0.5"];
    let bench: &[&str] = &[
        "bench", "--rate", "2k", "--rounds", "1", "--layout", "inline", "--idle", "park",
    ];
    let once = |text: &str| text.matches(LEARNED_NOTHING).count() == 1;
    for command in [sim, sweep, bench] {
        let short = of(command, "darc-paper", "2");
        assert!(
            once(&short) && short.contains("darc-paper,window=1000"),
            "{command:?}: {short}"
        );
        let learned = of(command, "darc-paper,window=100", "2");
        assert!(
            !learned.contains("learned nothing"),
            "{command:?}: {learned}"
        );
        // It starts from what is declared.
        let declared = of(command, "darc", "2");
        assert!(
            !declared.contains("learned nothing"),
            "{command:?}: {declared}"
        );
        let alone = of(command, "darc,window=100", "1");
        assert!(
            alone.contains("darc reserves nothing with one worker"),
            "{command:?}: {alone}"
        );
    }
    assert!(of(sweep, "darc-paper", "2").contains("2 of its 2 runs"));
}

/// The standard error of a server that is stopped at once.
fn served(policy: &str, workers: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command
        .args([
            "serve",
            "--listen",
            "udp://127.0.0.1:0",
            "--policy",
            policy,
            "--workers",
            workers,
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = TestChild::start(&mut command);
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout());
    stdout.read_line(&mut line).unwrap();
    child.signal(libc::SIGTERM);
    let mut said = String::new();
    child.stderr().read_to_string(&mut said).unwrap();
    assert!(child.wait().success(), "{said}");
    said
}

#[test]
fn a_server_says_so_too() {
    let one = served("darc", "1");
    assert!(
        one.contains("darc reserves nothing with one worker"),
        "{one}"
    );
    let declared = served("darc", "2");
    assert!(!declared.contains("learned nothing"), "{declared}");
    let two = served("darc-paper", "2");
    assert!(two.contains(LEARNED_NOTHING), "{two}");
    assert!(!two.contains("reserves nothing"), "{two}");
}
