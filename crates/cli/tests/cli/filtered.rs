//! Commands under a filter of system calls (seccomp), as sandboxes and containers have one.

use super::children::TestChild;
use super::hosting::missing;
use super::serving::Serving;
use super::surroundings::one_answer;
use super::words;
use headway_machine::thread::CallFilter;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const RECEIVES_AND_SENDS: [libc::c_long; 2] = [libc::SYS_recvmmsg, libc::SYS_sendmmsg];

/// The command, to which the kernel refuses these calls.
fn filtered(args: &[&str], calls: &[libc::c_long], errno: i32) -> Command {
    let filter = CallFilter::refusing(calls, errno);
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command
        .args(args)
        .env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: the closure makes two system calls, which need no lock; its filter was made before.
    unsafe { command.pre_exec(move || filter.install()) };
    command
}

/// Whether the kernel has such filters. Says what is skipped where it has not.
fn has_filters(what: &str) -> bool {
    let missing = CallFilter::missing();
    if let Some(why) = &missing {
        println!("SKIPPED {what} under a filter of system calls: {why}");
    }
    missing.is_none()
}

#[test]
fn a_server_answers_where_batches_of_datagrams_are_refused() {
    if !has_filters("a server") {
        return;
    }
    for errno in [libc::ENOSYS, libc::EPERM] {
        for policy in ["c-fcfs", "d-fcfs", "tardis"] {
            let args = format!(
                "serve --listen udp://127.0.0.1:0 --app echo --workers 1 --pin off --no-ctl --policy {policy}"
            );
            let mut command = filtered(&words(&args), &RECEIVES_AND_SENDS, errno);
            let mut child = TestChild::start(&mut command);
            one_answer(&mut child);
            child.signal(libc::SIGTERM);
            assert_eq!(child.wait().code(), Some(0), "{policy}");
        }
    }
}

#[test]
fn a_load_is_answered_where_batches_of_datagrams_are_refused() {
    if !has_filters("a load") {
        return;
    }
    let server = Serving::start(&["--app", "echo", "--workers", "1", "--pin", "off"]);
    let args = format!(
        "load {} --workload fixed-1us --rate 500 --duration 300ms --timeout 60s --format json",
        server.url
    );
    for errno in [libc::ENOSYS, libc::EPERM] {
        let done = filtered(&words(&args), &RECEIVES_AND_SENDS, errno).output();
        let done = done.unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        let run: serde_json::Value = serde_json::from_slice(&done.stdout).expect(&said);
        assert!(run["sent"].as_u64().unwrap() > 0, "{run}");
        assert_eq!(
            run["sent"].as_u64().unwrap(),
            run["answered"].as_u64().unwrap() + run["lost"].as_u64().unwrap()
        );
        assert!(run["answered"].as_u64().unwrap() > 0, "{run}");
    }
}

#[test]
fn who_is_refused_an_event_names_the_call_and_does_not_listen() {
    if !has_filters("who is refused an event") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("host.sock");
    let host = format!("host --app kv --share-core --socket {}", socket.display());
    let mut commands = vec![
        "serve --listen udp://127.0.0.1:0 --app echo --workers 1 --no-ctl --policy d-fcfs",
        "serve --listen udp://127.0.0.1:0 --app echo --workers 1 --no-ctl --policy c-fcfs",
    ];
    match missing() {
        None => commands.push(&host),
        Some(why) => println!("SKIPPED the daemon without events: {why}"),
    }
    for errno in [libc::ENOSYS, libc::EPERM] {
        for args in &commands {
            let done = filtered(&words(args), &[libc::SYS_eventfd2], errno).output();
            let done = done.unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(matches!(done.status.code(), Some(1 | 2)), "{args}: {said}");
            assert!(
                said.contains("eventfd2") && said.contains("seccomp"),
                "{args}: {said}"
            );
            assert!(done.stdout.is_empty(), "{args}: {said}");
        }
    }
}
