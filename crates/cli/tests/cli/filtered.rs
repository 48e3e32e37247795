//! Commands under a filter of system calls (seccomp), as sandboxes and containers have one.

use super::children::TestChild;
use super::hosting::missing;
use super::serving::Serving;
use super::surroundings::one_answer;
use super::words;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const RECEIVES_AND_SENDS: [libc::c_long; 2] = [libc::SYS_recvmmsg, libc::SYS_sendmmsg];

/// The command, to which the kernel refuses these calls.
fn filtered(args: &[&str], calls: &[libc::c_long], errno: i32) -> Command {
    let mut program = filter(calls, errno);
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command
        .args(args)
        .env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // SAFETY: the closure makes two system calls, which need no lock; its program was made before.
    unsafe { command.pre_exec(move || install(&mut program)) };
    command
}

/// Answers `errno` to these calls, and lets all others pass.
fn filter(calls: &[libc::c_long], errno: i32) -> Vec<libc::sock_filter> {
    let statement = |code: u32, jt: usize, k: u32| libc::sock_filter {
        code: code as u16,
        jt: jt as u8,
        jf: 0,
        k,
    };
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (at, call) in calls.iter().enumerate() {
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        // Over the other calls and the statement that allows.
        program.push(statement(equal, calls.len() - at, *call as u32));
    }
    for verdict in [
        libc::SECCOMP_RET_ALLOW,
        libc::SECCOMP_RET_ERRNO | errno as u32,
    ] {
        program.push(statement(libc::BPF_RET | libc::BPF_K, 0, verdict));
    }
    program
}

fn install(program: &mut [libc::sock_filter]) -> io::Result<()> {
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: the filter and its program live during the calls.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const filter) != 0
    };
    if refused {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[test]
fn a_server_answers_where_batches_of_datagrams_are_refused() {
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
