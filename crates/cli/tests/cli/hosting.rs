//! The daemon of a host, and its applications.

use super::serving::{Serving, count, figure};
use crate::children::TestChild;
use crate::headway;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Why the daemon cannot run here; none if it can.
pub(super) fn missing() -> Option<&'static str> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores < 2).then_some("it needs two cores")
}

/// Starts a daemon that ends with the test.
pub(super) fn daemon(socket: &Path) -> TestChild {
    daemon_of(socket, &["kv:guaranteed=1", "pricer:batch"])
}

fn daemon_of(socket: &Path, apps: &[&str]) -> TestChild {
    let said = tempfile::NamedTempFile::new().expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command
        .arg("host")
        .args(apps.iter().flat_map(|app| ["--app", app]))
        .args(["--share-core", "--socket"])
        .arg(socket)
        .stderr(said.reopen().expect("a file"));
    let child = TestChild::start(&mut command);
    // The daemon prints its settings once it listens. The file also takes its later output, which a closed pipe would not.
    until("the daemon listens", || {
        let said = std::fs::read_to_string(said.path()).expect("a file");
        said.contains("deals out cores")
    });
    child
}

/// Checks for exit status 2 and a message with `part`.
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

/// One of the daemon's counts of an application.
pub(super) fn counted(place: &str, name: &str, field: &str) -> u64 {
    let output = headway(&["host", "status", "--socket", place, "--format", "json"]);
    // A daemon that has just begun to listen may not answer yet.
    let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let mut apps = status["apps"].as_array().into_iter().flatten();
    let app = apps.find(|app| app["name"] == name);
    app.and_then(|app| app[field].as_u64()).unwrap_or(0)
}

pub(super) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Every request is answered while cores move between a server, a greedier one and a batch program, and while another daemon replaces a killed one.
fn answers_all_while_cores_come_and_go(policy: &str) {
    if let Some(why) = missing() {
        eprintln!("SKIPPED {policy} on granted cores: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("host.sock");
    let place = socket.to_str().unwrap();
    let apps = ["kv", "web:guaranteed=2", "pricer:batch"];
    let mut host = daemon_of(&socket, &apps);
    let serve = |name: &str, policy: &str| {
        let on = ["--host", name, "--socket", place, "--no-ctl"];
        let as_this = [
            "--policy",
            policy,
            "--workers",
            "2",
            "--workload",
            "shenango-bimodal",
        ];
        Serving::start(&[&on[..], &as_this].concat())
    };
    let (server, other) = (serve("kv", policy), serve("web", "c-fcfs"));
    let mut batch = Command::new(env!("CARGO_BIN_EXE_headway"));
    batch.args([
        "run", "--batch", "pricer", "--socket", place, "--", "sh", "-c",
    ]);
    batch.arg("while :; do :; done & while :; do :; done");
    let mut batch = TestChild::start(&mut batch);
    until("the program has a core", || {
        counted(place, "pricer", "grants") > 0
    });
    let mut sent = 0;
    let mut load = |duration: &str| {
        let run = server.load("2k", duration);
        assert_eq!(count(&run, "lost"), 0, "{policy}: {run}");
        sent += count(&run, "sent");
    };
    std::thread::scope(|scope| {
        let beside = scope.spawn(|| other.load("2k", "1s"));
        load("1s");
        assert_eq!(count(&beside.join().expect("it ran"), "lost"), 0);
    });
    let began = Instant::now();
    while counted(place, "kv", "grants") <= 10 || counted(place, "pricer", "revocations") <= 10 {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "cores do not come and go"
        );
        load("300ms");
    }
    host.kill();
    load("300ms");
    let _next = daemon_of(&socket, &apps);
    until("it is taken over", || counted(place, "kv", "most") > 0);
    load("300ms");
    assert!(
        counted(place, "kv", "grants") > 0,
        "the next daemon granted nothing"
    );
    batch.kill();
    server.signal(libc::SIGTERM);
    let (status, said) = server.end();
    assert_eq!(status, Some(0), "{policy}: {said}");
    assert_eq!(figure(&said, "answered "), sent, "{policy}: {said}");
}

/// The scheduling policies of a process's threads with this name, by the kernel's numbers.
fn scheduling(process: i32, name: &str) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let stats =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("stat")).ok());
    let told = stats.filter_map(|stat| {
        let (id, rest) = stat.rsplit_once(')')?;
        // Field 41 of proc_pid_stat(5); `rest` begins before the third.
        let policy = rest.split_whitespace().nth(41 - 3)?.to_owned();
        id.contains(&format!("({name}")).then_some(policy)
    });
    told.collect()
}

/// Beside batch threads it would else wake late, by milliseconds.
#[test]
fn the_thread_at_a_receive_queue_is_as_urgent_as_the_daemon() {
    if let Some(why) = missing() {
        eprintln!("SKIPPED the_thread_at_a_receive_queue_is_as_urgent_as_the_daemon: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("host.sock");
    let host = daemon_of(&socket, &["kv", "web", "mail"]);
    for (name, policy, doors) in [
        ("kv", "c-fcfs", 1),
        ("web", "synergy", 2),
        ("mail", "tardis", 1),
    ] {
        let on = ["--host", name, "--socket", socket.to_str().unwrap()];
        let as_this = ["--no-ctl", "--policy", policy, "--workers", "2"];
        let server = Serving::start(&[&on[..], &as_this].concat());
        until("its threads have their priorities", || {
            let daemons = scheduling(host.id(), "hw-arbiter");
            scheduling(server.process(), "hw-door") == vec![daemons[0].clone(); doors]
        });
    }
}

#[test]
fn a_server_with_a_dispatcher_comes_and_goes() {
    answers_all_while_cores_come_and_go("darc,window=500");
}

#[test]
fn a_server_that_interrupts_comes_and_goes() {
    answers_all_while_cores_come_and_go("concord,q=20us");
}

#[test]
fn a_server_of_workers_with_queues_of_their_own_comes_and_goes() {
    answers_all_while_cores_come_and_go("d-fcfs");
}

#[test]
fn a_server_of_thieves_that_interrupts_comes_and_goes() {
    answers_all_while_cores_come_and_go("synergy");
}

#[test]
fn a_server_of_workers_that_help_themselves_comes_and_goes() {
    answers_all_while_cores_come_and_go("tardis");
}

#[test]
fn a_server_that_cannot_come_and_go_is_refused() {
    if let Some(why) = missing() {
        eprintln!("SKIPPED a_server_that_cannot_come_and_go_is_refused: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("host.sock");
    let place = socket.to_str().unwrap();
    let with = |more: &[&str], part: &str| {
        let args = [
            "serve",
            "--listen",
            "udp://127.0.0.1:0",
            "--no-ctl",
            "--host",
        ];
        refused(
            &[&args[..], &["kv", "--socket", place], more].concat(),
            part,
        );
    };
    with(&[], "start one by 'headway host'");
    let _daemon = daemon(&socket);
    with(&["--layout", "dedicated"], "choose the inline layout");
    with(
        &["--policy", "concord,dispatcher=dedicated"],
        "leave the policy's parameter `dispatcher` out",
    );
    with(&["--workers", "2", "--pin", "0,1"], "leave the cores out");
    refused(&["serve", "--socket", place], "--host");
}

#[test]
fn the_status_of_a_daemon_that_is_gone_names_its_socket() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("host.sock");
    let place = socket.to_str().unwrap();
    let args = ["host", "status", "--socket", place];
    refused(&args, &format!("no daemon at {place} says how it is"));
    refused(&args, "start one by 'headway host'");
}

/// A file can name the application and its daemon, like flags; a flag overrides the file.
#[test]
fn a_settings_file_names_the_host() {
    if let Some(why) = missing() {
        eprintln!("SKIPPED a_settings_file_names_the_host: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (socket, file) = (
        folder.path().join("host.sock"),
        folder.path().join("kv.toml"),
    );
    let config = file.to_str().unwrap();
    let text = format!("host = \"nobody\"\nsocket = \"{}\"\n", socket.display());
    std::fs::write(&file, &text).unwrap();
    let serve = [
        "serve",
        "--listen",
        "udp://127.0.0.1:0",
        "--no-ctl",
        "-c",
        config,
    ];
    let _daemon = daemon(&socket);
    refused(&serve, "there are: kv, pricer");
    let server = Serving::start(&["-c", config, "--host", "kv", "--no-ctl"]);
    let run = server.load("500", "300ms");
    assert_eq!(count(&run, "lost"), 0, "{run}");
    assert!(counted(socket.to_str().unwrap(), "kv", "grants") > 0);
    std::fs::write(&file, text.replace("host = \"nobody\"\n", "")).unwrap();
    refused(&serve, "say `host`");
}

/// With its standard error closed, the daemon goes on and obeys signals.
#[test]
fn a_daemon_whose_standard_error_is_closed_goes_on() {
    if let Some(why) = missing() {
        eprintln!("SKIPPED a_daemon_whose_standard_error_is_closed_goes_on: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (socket, file) = (
        folder.path().join("host.sock"),
        folder.path().join("host.toml"),
    );
    let text = "share-core = true\n[[app]]\nname = \"kv\"\n";
    std::fs::write(&file, text).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command.args(["host", "-c", file.to_str().unwrap(), "--socket"]);
    command.arg(&socket).stderr(writer);
    let child = TestChild::start(&mut command);
    let place = socket.to_str().unwrap();
    let spec = || {
        let output = headway(&["host", "status", "--socket", place, "--format", "json"]);
        let status: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        status["spec"].as_str().unwrap_or_default().to_owned()
    };
    until("the daemon answers", || spec() == "shenango");
    std::fs::write(&file, format!("policy = \"static\"\n{text}")).unwrap();
    child.signal(libc::SIGHUP);
    until("it has read its settings again", || spec() == "static");
    std::fs::write(&file, "nonsense").unwrap();
    child.signal(libc::SIGHUP);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(spec(), "static", "it lives, with the settings that it had");
}
