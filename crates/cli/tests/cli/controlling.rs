//! `ctl` inspects and tunes a running server over its control socket, for the server's user only.

use super::errors::refused;
use super::hosting::until;
use super::serving::Serving;
use super::standing::shown_standing;
use super::{headway, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A server with `policy`, and a control socket in a separate folder.
pub(super) fn controlled(policy: &str) -> (Serving, TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("ctl.sock").display().to_string();
    let server = Serving::start(&[
        "--policy",
        policy,
        "--workers",
        "2",
        "--workload",
        "shenango-bimodal",
        "--ctl",
        &path,
    ]);
    (server, folder, path)
}

fn status(path: &str) -> serde_json::Value {
    json(&["ctl", "status", "--server", path, "--format", "json"])
}

/// Checks that a server with this control socket refuses to start, with these words.
fn not_started(ctl: &str, parts: &[&str]) {
    refused(
        &["serve", "--listen", "udp://127.0.0.1:0", "--ctl", ctl],
        parts,
    );
}

#[test]
fn a_server_says_what_it_does_and_is_tuned() {
    let (server, _folder, path) = controlled("concord,q=5us");
    let run = server.load("1000", "300ms");
    let said = status(&path);
    assert_eq!(said["policy"], "concord");
    assert_eq!(said["params"]["q"], "5us");
    assert_eq!(said["changeable"], serde_json::json!(["q"]));
    assert_eq!(said["changes"], 0);
    let sum = |of: &str| -> u64 {
        let all = said[of].as_array().unwrap().iter();
        all.map(|one| one["answered"].as_u64().unwrap()).sum()
    };
    let answered = run["answered"].as_u64().unwrap();
    assert_eq!(said["answered"], answered);
    assert_eq!(sum("classes"), answered);
    for class in said["classes"].as_array().unwrap() {
        let count = |times: &str| &class[times]["count"];
        assert_eq!(
            (count("wait"), count("service")),
            (&class["answered"], &class["answered"])
        );
        assert_eq!(
            (&class["queued"], &class["running"]),
            (&0.into(), &0.into())
        );
    }
    let by_dispatcher = said["dispatchers"][0]["answered"].as_u64().unwrap_or(0);
    assert_eq!(sum("workers") + by_dispatcher, answered);
    assert_eq!(said["workers"].as_array().unwrap().len(), 2);
    assert!(said["reservation"].is_null(), "concord follows no plan");

    let output = headway(&["ctl", "set", "--server", &path, "q=50us"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "q: 5us → 50us\n");
    let said = status(&path);
    assert_eq!(
        (&said["params"]["q"], &said["changes"]),
        (&"50us".into(), &1.into())
    );
    let output = headway(&["ctl", "set", "--server", &path, "q=50us"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, "nothing changed: it is so already\n");
    server.load("1000", "200ms");
}

/// Its requests keep nothing in their threads: they are on plain fibers.
#[test]
fn suspended_requests_of_plain_fibers_show_where_they_stand() {
    let (server, _folder, path) = controlled("concord,q=5us");
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                server.load("20000", "500ms");
            }
        });
        // With debug information a frame names the function alone.
        let told = shown_standing(&path, "handle", || {});
        ends.store(true, Ordering::Relaxed);
        assert!(told.contains(", begun by worker "), "{told}");
    });
    let said = headway(&["ctl", "stacks", "--server", &path, "--format", "json"]);
    let said: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    assert!(
        said["requests"].is_array() && said["at_home"] == 0,
        "{said}"
    );
    assert!(
        said["modules"].is_null(),
        "each frame names its file: {said}"
    );
}

#[test]
fn the_table_shows_plan_and_workers() {
    let (server, _folder, path) = controlled("darc,window=100");
    server.load("2000", "300ms");
    let output = headway(&["ctl", "status", "--server", &path]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "policy darc,delta=2,window=100",
        "lock yields",
        "overruns",
        "plan, revised",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let said = headway(&["ctl", "set", "--server", &path, "delta=3", "window=200"]);
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said, "delta: 2 → 3\nwindow: 100 → 200\n");
}

#[test]
fn what_cannot_be_set_is_refused_and_changes_nothing() {
    let (_server, _folder, path) = controlled("synergy");
    let set = |params: &[&str], parts: &[&str]| {
        refused(
            &[&["ctl", "set", "--server", &path], params].concat(),
            parts,
        );
    };
    set(
        &["fator=3"],
        &["no parameter 'fator'", "did you mean 'factor'"],
    );
    set(&["factor=3", "alpha=7"], &["alpha=7", "1"]);
    set(
        &["factor=3", "waits=2"],
        &["waits at the start only", "factor, parts"],
    );
    set(&["parts=wsp"], &["parts=wsp", "ws, wq, cp and qa"]);
    set(&["factor"], &["not NAME=VALUE"]);
    set(&["q=0"], &["q=0", "above 0"]);
    let said = status(&path);
    assert_eq!(
        (&said["changes"], &said["params"]["factor"]),
        (&0.into(), &"2".into())
    );
    // A derived parameter changes too.
    let output = headway(&["ctl", "set", "--server", &path, "factor=3"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, "factor: 2 → 3\ncongested_factor: 2 → 3\n");
    assert_eq!(status(&path)["wait_queues"].as_array().unwrap().len(), 1);
}

#[test]
fn the_socket_is_the_users_alone_and_goes_with_the_server() {
    let (server, _folder, path) = controlled("c-fcfs");
    let found = fs::symlink_metadata(&path).unwrap();
    assert!(found.file_type().is_socket());
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    server.signal(libc::SIGTERM);
    assert_eq!(server.end().0, Some(0));
    assert!(!Path::new(&path).exists());
}

#[test]
fn a_stale_socket_is_replaced_and_a_served_one_is_not() {
    let (server, folder, path) = controlled("c-fcfs");
    not_started(&path, &["--ctl", "a running process listens", "--no-ctl"]);
    assert_eq!(status(&path)["policy"], "c-fcfs", "it goes on");
    drop(server);
    assert!(Path::new(&path).exists(), "it was killed");
    drop(Serving::start(&["--ctl", &path]));
    let file = folder.path().join("file").display().to_string();
    fs::write(&file, "kept").unwrap();
    not_started(&file, &["is no socket"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    not_started("/nowhere/at/all.sock", &["--ctl", "cannot listen"]);
    refused(
        &["serve", "--ctl", "a", "--no-ctl"],
        &["--no-ctl", "cannot be used with"],
    );
}

#[test]
fn no_socket_is_made_where_none_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("serve.toml");
    fs::write(&config, "no-ctl = true\n").unwrap();
    for args in [["--no-ctl"].as_slice(), &["-c", config.to_str().unwrap()]] {
        let server = Serving::start(args);
        server.signal(libc::SIGTERM);
        let (_, said) = server.end();
        assert!(!said.contains("headway ctl"), "{said}");
    }
    fs::write(
        &config,
        format!("ctl = \"{}\"\n", folder.path().join("s").display()),
    )
    .unwrap();
    let server = Serving::start(&["-c", config.to_str().unwrap()]);
    let path = folder.path().join("s").display().to_string();
    assert!(status(&path)["layout"].is_string());
    drop(server);
    fs::write(&config, "\nctl = \"/nowhere/at/all.sock\"\n").unwrap();
    refused(
        &[
            "serve",
            "--listen",
            "udp://127.0.0.1:0",
            "-c",
            config.to_str().unwrap(),
        ],
        &["serve.toml:2: ctl", "cannot listen"],
    );
}

/// Runs `headway ctl`, which looks for this user's servers in this folder.
fn among(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    let command = command.args(args).env("XDG_RUNTIME_DIR", folder);
    command.output().expect("headway runs")
}

#[test]
fn the_only_server_is_found_and_of_several_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("headway");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
    let start = |name: &str| {
        let path = directory.join(name).display().to_string();
        Serving::start(&["--policy", "c-fcfs", "--ctl", &path])
    };
    let said = |args: &[&str]| {
        let output = among(folder.path(), args);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), stderr)
    };
    // The command would also find other servers of this user in /tmp.
    let alone = said(&["ctl", "status"]).0 == Some(2);
    let first = start("4001.sock");
    if alone {
        assert_eq!(said(&["ctl", "status"]).0, Some(0));
    }
    let second = start("4002.sock");
    let (code, stderr) = said(&["ctl", "status"]);
    assert_eq!(code, Some(2));
    assert!(
        stderr.contains("4001.sock") && stderr.contains("4002.sock"),
        "{stderr}"
    );
    assert_eq!(said(&["ctl", "status", "--server", "4002"]).0, Some(0));
    assert_eq!(
        said(&["ctl", "set", "--server", "4003", "q=1us"]).0,
        Some(2)
    );
    drop((first, second));
}

fn ask(stream: &mut UnixStream, line: &[u8]) -> String {
    stream.write_all(line).unwrap();
    let mut said = String::new();
    BufReader::new(stream).read_line(&mut said).unwrap();
    said
}

#[test]
fn malformed_lines_are_answered_and_hurt_nothing() {
    let (_server, _folder, path) = controlled("c-fcfs");
    let mut stream = UnixStream::connect(&path).unwrap();
    for line in [
        &b"\n"[..],
        b"{}\n",
        b"null\n",
        b"{\"command\":\"stop\"}\n",
        b"{\"command\":\"set\",\"params\":[1]}\n",
        b"\xff\xfe\0\n",
        b"GET / HTTP/1.1\r\n",
    ] {
        let said = ask(&mut stream, line);
        assert!(said.starts_with("{\"error\":"), "{line:?}: {said}");
    }
    assert!(ask(&mut stream, b"{\"command\":\"status\"}\n").starts_with("{\"ok\":"));
    let mut long = UnixStream::connect(&path).unwrap();
    let said = ask(&mut long, &[b'['; 5000]);
    assert!(said.contains("at most 4096 bytes"), "{said}");
    assert_eq!(status(&path)["policy"], "c-fcfs");
}

/// Whether the other end has neither sent anything nor hung up.
fn is_open(stream: &mut UnixStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let read = stream.read(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

#[test]
fn a_client_that_hangs_keeps_nobody_from_an_answer() {
    let (server, _folder, path) = controlled("c-fcfs");
    let deadline = Instant::now() + Duration::from_secs(60);
    let hanging = loop {
        let mut hanging: Vec<UnixStream> = (0..8)
            .map(|at| {
                let mut stream = UnixStream::connect(&path).unwrap();
                stream.write_all(&b"{\"command\":"[..at]).unwrap();
                stream
            })
            .collect();
        assert_eq!(status(&path)["policy"], "c-fcfs");
        // The server hangs up on clients whose time is over. One that it still waits for kept nobody from that answer.
        if hanging.iter_mut().any(is_open) {
            break hanging;
        }
        assert!(Instant::now() < deadline, "it waited for them");
    };
    server.load("1000", "100ms");
    // The server gives each client its time, and then sends an error or hangs up.
    for mut stream in hanging {
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).expect("the server hangs up");
    }
}

/// Only root can act as another user.
fn is_root() -> bool {
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !root {
        eprintln!("SKIPPED: only root can give a file away, or act for another user");
    }
    root
}

const NOBODY: u32 = 65_534;

#[test]
fn what_belongs_to_another_user_is_refused() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.sock");
    drop(UnixListener::bind(&path).unwrap());
    chown(&path, Some(NOBODY), None).unwrap();
    not_started(path.to_str().unwrap(), &["belongs to user 65534"]);
    assert!(path.exists(), "it is not ours to replace");

    let runtime = tempfile::tempdir().unwrap();
    let directory = runtime.path().join("headway");
    fs::create_dir(&directory).unwrap();
    chown(&directory, Some(NOBODY), None).unwrap();
    let serve = [
        "serve",
        "--listen",
        "udp://127.0.0.1:0",
        "--policy",
        "c-fcfs",
    ];
    let output = among(runtime.path(), &serve);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("belongs to user 65534"), "{stderr}");
}

#[test]
fn another_user_is_turned_away_even_where_the_file_would_let_them() {
    if !is_root() {
        return;
    }
    let (_server, folder, path) = controlled("c-fcfs");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let says = |uid: u32, first: &str| {
        // Skips even an empty send, since the pipe of a rejected client is broken.
        let script = format!(
            "import socket; s = socket.socket(socket.AF_UNIX); s.connect({path:?}); \
             b{first:?} and s.sendall(b{first:?}); print(s.makefile().readline())"
        );
        let mut command = Command::new("python3");
        command.args(["-c", &script]).uid(uid).gid(uid);
        command.stdout(Stdio::piped()).output()
    };
    // A rejected client gets its error before it sends a request.
    let Ok(theirs) = says(NOBODY, "") else {
        return eprintln!("SKIPPED: it needs Python 3 (apt-get install python3)");
    };
    let theirs = String::from_utf8_lossy(&theirs.stdout).into_owned();
    assert!(theirs.contains("only the server's own user"), "{theirs}");
    let own = says(0, "{\"command\":\"status\"}\n").unwrap();
    assert!(String::from_utf8_lossy(&own.stdout).starts_with("{\"ok\""));
}

#[test]
fn the_counts_of_a_status_add_up() {
    let (server, _folder, path) = controlled("c-fcfs");
    server.load("1k", "100ms");
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    // Shorter than a header.
    client.send_to(&[0; 3], server.addr()).unwrap();
    let ask = || json(&["ctl", "status", "--server", &path, "--format", "json"]);
    until("a datagram is malformed", || ask()["malformed"] == 1);
    let status = ask();
    let told = headway(&["ctl", "status", "--server", &path]);
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(told.contains("malformed 1, pending 0"), "{told}");
    let names = [
        "answered",
        "shed",
        "too_large",
        "refused",
        "malformed",
        "handed_back",
        "abandoned",
    ];
    let counted: u64 = names
        .iter()
        .map(|name| status[name].as_u64().unwrap())
        .sum();
    assert_eq!(status["received"].as_u64().unwrap(), counted, "{status}");
    assert!(counted > 1, "{status}");
}
