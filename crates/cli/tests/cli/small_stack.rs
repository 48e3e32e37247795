//! Commands whose first thread may have a small stack only (`ulimit -s`).

use super::serving::{Serving, count};
use std::process::Command;

/// The command under a limit on the stack, in KiB.
fn under(kib: u32, args: &[&str]) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -s {kib}; exec \"$0\" \"$@\"")])
        .arg(env!("CARGO_BIN_EXE_headway"))
        .args(args)
        .env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"));
    command
}

#[test]
fn a_command_does_what_it_does_with_a_large_one() {
    for args in [
        &["--help"][..],
        &["policies"],
        &[
            "sim",
            "--requests",
            "2k",
            "--policy",
            "darc",
            "--format",
            "json",
        ],
    ] {
        let expected = super::headway(args).stdout;
        for kib in [64, 128, 2048] {
            let output = under(kib, args).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{args:?} with {kib} KiB: {said}");
            assert!(output.stdout == expected, "{args:?} with {kib} KiB: {said}");
        }
    }
}

#[test]
fn a_server_answers_and_heeds_a_signal() {
    let args = ["serve", "--listen", "udp://127.0.0.1:0", "--app", "spin"];
    let server = Serving::start_as(&mut under(64, &args));
    let run = server.load("200", "200ms");
    assert_eq!(count(&run, "lost"), 0, "{run}");
    server.signal(libc::SIGTERM);
    let (code, said) = server.end();
    assert_eq!(code, Some(0), "{said}");
}
