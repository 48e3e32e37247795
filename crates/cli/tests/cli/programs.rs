//! Programs of the library, asked and stopped as `headway serve` is: the tests' own executable, started anew with one test as its main function.

use super::children::TestChild;
use super::{headway, json};
use headway_pool::{ClassOptions, ControlPlace, Pool};
use headway_runtime::Server;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// Set in the child, where the test is the program.
const IN_CHILD: &str = "HEADWAY_TEST_PROGRAM";

/// A running program, and what it says on standard error.
struct LibraryProgram {
    child: TestChild,
    said: BufReader<ChildStderr>,
}

impl LibraryProgram {
    /// Starts the test of this name as a program, whose control sockets lie in this folder.
    fn start(test: &str, runtime: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", test, "--nocapture"])
            .env(IN_CHILD, "1")
            .env("XDG_RUNTIME_DIR", runtime)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = TestChild::start(&mut command);
        let said = BufReader::new(child.stderr());
        Self { child, said }
    }

    /// The rest of the line that begins so.
    fn line(&mut self, begin: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.said.read_line(&mut line).unwrap();
            assert!(read > 0, "it ended before it said '{begin}'");
            if let Some(rest) = line.strip_prefix(begin) {
                return rest.trim_end().to_owned();
            }
        }
    }

    /// What it says after SIGTERM, until its end.
    fn terminate(mut self) -> String {
        self.child.signal(libc::SIGTERM);
        let mut said = String::new();
        self.said.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().success(), "{said}");
        said
    }
}

fn is_child() -> bool {
    std::env::var_os(IN_CHILD).is_some()
}

#[test]
fn a_server_in_one_call() {
    if !is_child() {
        return;
    }
    let server = Server::builder()
        .class("get", Duration::from_micros(1))
        .workers(2)
        .metrics("127.0.0.1:0".parse().unwrap())
        .handler(|call| call.reply(b"pong"))
        .listen_udp("127.0.0.1:0".parse().unwrap())
        .start()
        .unwrap();
    eprintln!("metrics at {}", server.metrics_addr().unwrap());
    server.run().unwrap();
}

#[test]
fn a_server_of_the_library_is_found_and_drains_on_a_signal() {
    let runtime = tempfile::tempdir().unwrap();
    let mut program = LibraryProgram::start("programs::a_server_in_one_call", runtime.path());
    let metrics = program.line("metrics at ");
    let address = program.line("listening on ");
    let path = program.line("headway ctl finds it at ");
    let port = address.rsplit_once(':').unwrap().1;
    assert!(path.ends_with(&format!("headway/{port}.sock")), "{path}");
    let load = json(&[
        "load",
        &format!("udp://{address}"),
        "--workload",
        "fixed-1us",
        "--rate",
        "1000",
        "--duration",
        "200ms",
        "--format",
        "json",
    ]);
    let answered = load["answered"].as_u64().unwrap();
    assert!(answered > 0);
    let status = json(&["ctl", "status", "--server", &path, "--format", "json"]);
    assert_eq!(
        (&status["kind"], &status["answered"]),
        (&"server".into(), &answered.into())
    );
    let text = headway(&["ctl", "status", "--server", &path]);
    assert!(String::from_utf8_lossy(&text.stdout).contains("policy darc"));
    let changed = headway(&["ctl", "set", "--server", &path, "delta=3"]);
    assert_eq!(String::from_utf8_lossy(&changed.stdout), "delta: 2 → 3\n");
    let scraped = get(&metrics, "/metrics");
    for metric in [
        "answered_requests_total",
        "wait_seconds_count",
        "service_seconds_count",
    ] {
        let line = format!("headway_server_{metric}{{class=\"get\"}} {answered}");
        assert!(
            scraped.lines().any(|other| other == line),
            "{line}: {scraped}"
        );
    }
    let said = program.terminate();
    assert!(
        said.contains(&format!(
            "received {answered}, answered {answered} (served {answered},"
        )),
        "{said}"
    );
    assert!(!Path::new(&path).exists());
}

fn get(address: &str, path: &str) -> String {
    use std::io::Write as _;
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_pool_with_a_control_socket() {
    if !is_child() {
        return;
    }
    let pool = Pool::builder()
        .name("shop")
        .workers(1)
        .class("point", ClassOptions::new())
        .control(ControlPlace::Usual)
        .build()
        .unwrap();
    pool.run("point", || ()).unwrap();
    pool.wait_idle().unwrap();
    eprintln!("control at {}", pool.control_path().unwrap().display());
    // The parent ends it.
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn a_pool_of_a_program_is_shown() {
    let runtime = tempfile::tempdir().unwrap();
    let mut program =
        LibraryProgram::start("programs::a_pool_with_a_control_socket", runtime.path());
    let path = program.line("control at ");
    let name = format!("headway/{}-0.pool", program.child.id());
    assert!(path.ends_with(&name), "{path}");
    let status = json(&["ctl", "status", "--server", &path, "--format", "json"]);
    assert_eq!(
        (&status["kind"], &status["classes"][0]["done"]),
        (&"pool".into(), &1.into())
    );
    let shown = headway(&["ctl", "status", "--server", &path]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    for part in ["pool shop", "policy darc-stable", "point", "longest gap"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let refused = headway(&["ctl", "set", "--server", &path, "q=5us"]);
    assert_eq!(refused.status.code(), Some(2));
    program.child.kill();
    let begun = Instant::now();
    // Nobody serves the socket of a killed program.
    loop {
        let gone = headway(&["ctl", "status", "--server", &path]);
        if gone.status.code() == Some(2) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
