//! `headway rack` with real servers, each in a separate process.

use super::errors::refused;
use super::own_address;
use super::serving::{Serving, count};
use crate::children::TestChild;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A server with the spin service and one worker.
pub(super) fn server() -> Serving {
    Serving::start(&SPIN)
}

pub(super) const SPIN: [&str; 8] = [
    "--app",
    "spin",
    "--workers",
    "1",
    "--pin",
    "off",
    "--policy",
    "c-fcfs",
];

pub(super) fn rack(servers: &[&Serving], args: &[&str]) -> Serving {
    let servers: Vec<_> = servers
        .iter()
        .flat_map(|server| ["--server", server.addr()])
        .collect();
    let listen = ["rack", "--listen", "127.0.0.1:0"];
    Serving::start_command(&[&listen[..], &servers, args].concat())
}

fn status_in(rack: &Serving, format: &str) -> Output {
    let port = rack.addr().rsplit(':').next().unwrap();
    Command::new(env!("CARGO_BIN_EXE_headway"))
        .args(["rack", "status", "--format", format, "--switch", port])
        .env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"))
        .output()
        .expect("headway runs")
}

/// The status of the switch as people read it.
pub(super) fn status_text(rack: &Serving) -> String {
    String::from_utf8(status_in(rack, "table").stdout).unwrap()
}

/// The status of the switch.
pub(super) fn status(rack: &Serving) -> Value {
    let output = status_in(rack, "json");
    let text = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A request to the spin service for 20 µs.
pub(super) fn request(class: u8, index: u32) -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[0] = class;
    bytes[2..6].copy_from_slice(&index.to_be_bytes());
    bytes[6..].copy_from_slice(&20_000u32.to_be_bytes());
    bytes
}

/// A client that counts its requests and their answers.
pub(super) struct Asking {
    socket: UdpSocket,
    pub(super) sent: u32,
    answered: u32,
}

impl Asking {
    pub(super) fn of(rack: &Serving) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(rack.addr()).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self {
            socket,
            sent: 0,
            answered: 0,
        }
    }

    /// Sends `requests` requests, one every millisecond.
    pub(super) fn send(&mut self, requests: u32) {
        for _ in 0..requests {
            let class = (self.sent % 2) as u8 * 9;
            self.socket.send(&request(class, self.sent)).unwrap();
            self.sent += 1;
            self.receive();
        }
    }

    /// Counts the answers that come within a millisecond.
    fn receive(&mut self) {
        std::thread::sleep(Duration::from_millis(1));
        while self.socket.recv(&mut [0; 64]).is_ok() {
            self.answered += 1;
        }
    }

    /// Waits for a number of answers, and returns the number that came.
    pub(super) fn await_answers(&mut self, answers: u32) -> u32 {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.answered < answers && Instant::now() < deadline {
            self.receive();
        }
        self.answered
    }
}

/// Sends `requests` requests, and returns the number of answers once all have come, or no more come.
fn ask(rack: &Serving, requests: u32) -> u32 {
    let mut asking = Asking::of(rack);
    asking.send(requests);
    asking.await_answers(requests)
}

#[test]
fn requests_go_through_the_switch_and_its_counts_are_told_at_the_end() {
    let servers = [server(), server()];
    let [one, two] = &servers;
    let rack = rack(
        &[one, two],
        &["--policy", "round-robin", "--silence", "0ms"],
    );
    let run = rack.load("2000", "1s");
    assert_eq!(count(&run, "lost"), 0);
    let status = status(&rack);
    assert_eq!(status["counts"]["requests"], run["sent"]);
    assert_eq!(status["groups"], Value::Null, "round robin has none");
    rack.signal(libc::SIGTERM);
    let (code, said) = rack.end();
    assert_eq!(code, Some(0), "{said}");
    for server in servers {
        server.signal(libc::SIGTERM);
        let (_, said) = server.end();
        let served = super::serving::figure(&said, "served ");
        assert_eq!(served, count(&run, "sent") / 2, "every other one");
    }
}

#[test]
fn types_show_up_by_themselves_and_are_explained() {
    let servers = [server(), server()];
    let [one, two] = &servers;
    let rack = rack(
        &[one, two],
        &["--silence", "0ms", "--metrics", "127.0.0.1:0"],
    );
    assert_eq!(ask(&rack, 300), 300);
    let status = status(&rack);
    let types: Vec<_> = status["types"].as_array().unwrap().iter().collect();
    let bytes: Vec<_> = types
        .iter()
        .map(|class| class["type"].as_u64().unwrap())
        .collect();
    assert_eq!(bytes, [0, 9]);
    for class in types {
        assert!(class["mean_us"].as_f64().unwrap() >= 20.0, "{class}");
    }
    let port = rack.addr().rsplit(':').next().unwrap().to_owned();
    let explain = |name: &str| {
        Command::new(env!("CARGO_BIN_EXE_headway"))
            .args(["rack", "explain", name, "--switch", &port])
            .env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"))
            .output()
            .expect("headway runs")
    };
    let told = String::from_utf8(explain("9").stdout).unwrap();
    assert!(
        told.starts_with("type 9 takes ") && told.contains("cores"),
        "{told}"
    );
    let unknown = explain("10");
    assert_eq!(unknown.status.code(), Some(2));
    let said = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        said.contains("no type is called '10'") && said.contains("type 9"),
        "{said}"
    );
    rack.signal(libc::SIGINT);
    let (code, said) = rack.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("Prometheus finds it at http://127.0.0.1:"),
        "{said}"
    );
}

#[test]
fn requests_beyond_the_bounds_of_an_slo_are_counted() {
    let server = server();
    // No request takes less than 20 µs, and none as long as it may.
    let slo = "class.*.latency.p50<=1us,overall.latency.max<=100s";
    let rack = rack(&[&server], &["--silence", "0ms", "--slo", slo]);
    assert_eq!(ask(&rack, 100), 100);
    let status = status(&rack);
    let bound = |bound: &str, requests: u64, exceeded: u64, met: bool| json!({ "bound": bound, "answered": requests, "exceeded": exceeded, "met": met });
    let expected = [
        bound("class.type 0.latency.p50<=1us", 50, 50, false),
        bound("class.type 9.latency.p50<=1us", 50, 50, false),
        bound("overall.latency.max<=100s", 100, 0, true),
    ];
    assert_eq!(status["slo"], json!(expected));
}

#[test]
fn prometheus_reads_the_counters_and_a_browser_the_page() {
    let server = server();
    let at = own_address().to_string();
    let _rack = rack(&[&server], &["--metrics", &at, "--no-ctl"]);
    let scraped = |path: &str| {
        let mut stream = TcpStream::connect(&at).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let text = scraped("/metrics");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(
        text.contains("\nheadway_rack_packets_total{kind=\"requests\"} 0\n"),
        "{text}"
    );
    let page = scraped("/");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    // The page has no external resources, so it names no other host.
    assert!(
        !page
            .replace("http://www.w3.org/2000/svg", "")
            .contains("://")
    );
    let told = scraped("/status");
    let (_, told) = told.split_once("\r\n\r\n").unwrap();
    let told: Value = serde_json::from_str(told).unwrap();
    assert_eq!(told["counts"]["requests"], 0);
    assert!(scraped("/nothing").starts_with("HTTP/1.1 404 "));
}

/// Killing a server loses only the requests that it holds. When it starts again, it gets requests again.
#[test]
fn a_server_killed_under_load_leaves_and_comes_back() {
    let (one, mut two) = (server(), server());
    let rack = rack(&[&one, &two], &["--policy", "round-robin"]);
    assert_eq!(ask(&rack, 200), 200);
    let at = two.url.clone();
    let passed_on = |status: &Value| status["counts"]["answered"].as_u64().unwrap() as u32;
    let before = passed_on(&status(&rack));
    two.kill();
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut asking = Asking::of(&rack);
    while status(&rack)["servers"][1]["silent"] == false {
        assert!(Instant::now() < deadline, "it does not leave");
        asking.send(20);
    }
    let mut now = status(&rack);
    while now["servers"][0]["unanswered"] != 0 {
        assert!(Instant::now() < deadline, "{now}");
        now = status(&rack);
    }
    assert!(now["counts"]["left"].as_u64() >= Some(1), "{now}");
    let answers = passed_on(&now) - before;
    assert_eq!(asking.await_answers(answers), answers);
    assert!(answers < asking.sent, "a killed server answers nothing");
    assert_eq!(ask(&rack, 200), 200, "nothing more is lost");
    let again = Serving::start_command(&[&["serve", "--listen", &at][..], &SPIN].concat());
    let deadline = Instant::now() + Duration::from_secs(60);
    while status(&rack)["servers"][1]["silent"] == true {
        assert!(Instant::now() < deadline, "it does not come back");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(ask(&rack, 200), 200);
    let questions = status(&rack)["counts"]["asked"].as_u64().unwrap();
    again.signal(libc::SIGTERM);
    let (_, said) = again.end();
    let served = super::serving::figure(&said, "served ");
    assert!(
        served > questions,
        "not only the switch's questions: {said}"
    );
}

#[test]
fn the_settings_file_is_read_and_its_faults_are_named_with_their_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rack.toml");
    let server = server();
    let text = format!(
        "listen = \"127.0.0.1:0\"\nserver = [\"{},cores=2\"]\npolicy = \"racksched\"\nno-ctl = true\n",
        server.addr()
    );
    std::fs::write(&path, &text).unwrap();
    let from_file = path.to_str().unwrap();
    let rack = Serving::start_command(&["rack", "-c", from_file]);
    assert_eq!(ask(&rack, 20), 20);
    drop(rack);
    for (text, parts) in [
        (
            "polcy = \"pallas\"",
            ["rack.toml:1", "did you mean `policy`"],
        ),
        (
            "\nserver = [\n\"10.0.0.1:1\",\n\"10.0.0.1:1\"]",
            ["rack.toml:4: server", "listed twice"],
        ),
        (
            "server = [\"10.0.0.1:1\"]\npolicy = \"darc\"",
            ["rack.toml:2: policy", "of a server"],
        ),
        (
            "server = [\"10.0.0.1:1,cores=0\"]",
            ["rack.toml:1: server", "cores=4"],
        ),
    ] {
        std::fs::write(&path, text).unwrap();
        refused(&["rack", "-c", from_file], &parts);
    }
    let missing = Path::new("/nowhere/rack.toml");
    refused(
        &["rack", "-c", missing.to_str().unwrap()],
        &["--config", "/nowhere/rack.toml"],
    );
}

#[test]
fn what_cannot_be_a_rack_is_refused_with_what_to_do() {
    let one = ["rack", "--server", "127.0.0.1:7001"];
    let with = |more: &[&'static str]| [&one[..], more].concat();
    refused(&["rack"], &["--server", "name at least one"]);
    refused(
        &with(&["--server", "127.0.0.1:7001"]),
        &["--server", "listed twice"],
    );
    refused(
        &with(&["--listen", "127.0.0.1:7001"]),
        &["--server", "the switch itself listens"],
    );
    refused(
        &with(&["--listen", "0.0.0.0:7001"]),
        &["--server", "the switch itself listens"],
    );
    refused(
        &with(&["--server", "nothing"]),
        &["--server", "write ADDR:PORT"],
    );
    refused(
        &with(&["--policy", "darc"]),
        &["--policy", "of a server", "racksched"],
    );
    refused(&with(&["--policy", "shenango"]), &["--policy", "of a host"]);
    refused(
        &with(&["--policy", "racksched,inner=darc"]),
        &["--policy", "leave it out"],
    );
    refused(
        &with(&["--policy", "palas"]),
        &["--policy", "did you mean 'pallas'"],
    );
    refused(&with(&["--types", "256"]), &["--types", "1 to 255"]);
    refused(&with(&["--silence", "50"]), &["--silence"]);
    refused(
        &with(&["--slo", "overall.latency.mean<=1ms"]),
        &["--slo", "bound p50, p90, p99, p999 or max"],
    );
    refused(
        &with(&["--slo", "class.GET.latency.p99<=1ms"]),
        &["--slo", "GET", "--workload"],
    );
    refused(
        &with(&[
            "--workload",
            "pallas-normal",
            "--slo",
            "class.shrot.latency.p99<=1ms",
        ]),
        &["--slo", "did you mean `short`"],
    );
    refused(
        &["rack", "status", "--switch", "1"],
        &["--switch", "port 1"],
    );
    // The port prevents two control planes for one switch.
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    refused(
        &["rack", "--server", "127.0.0.1:7001", "--listen", &at],
        &["--listen", "another process has the port"],
    );
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = tcp.local_addr().unwrap().to_string();
    refused(
        &[
            &one[..],
            &["--listen", "127.0.0.1:0", "--no-ctl", "--metrics", &at],
        ]
        .concat(),
        &["--metrics", "choose another port"],
    );
}

#[test]
fn json_is_all_that_standard_output_has() {
    let server = server();
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command
        .args([
            "rack",
            "--listen",
            "127.0.0.1:0",
            "--no-ctl",
            "--format",
            "json",
        ])
        .args(["--server", server.addr()])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = TestChild::start(&mut command);
    let mut said = String::new();
    let mut stderr = std::io::BufReader::new(child.stderr());
    while !said.contains("listening udp://") {
        assert!(
            std::io::BufRead::read_line(&mut stderr, &mut said).unwrap() > 0,
            "{said}"
        );
    }
    child.signal(libc::SIGTERM);
    let counts: Value = serde_json::from_reader(child.stdout()).unwrap();
    assert_eq!(child.wait().code(), Some(0));
    assert_eq!(
        (&counts["requests"], &counts["left"]),
        (&Value::from(0), &Value::from(0))
    );
}
