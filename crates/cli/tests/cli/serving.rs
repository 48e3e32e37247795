//! `serve` and `load` over real UDP: every request sent is answered once or counted lost.

use super::json;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that is stopped when dropped.
pub(super) struct Serving {
    child: Child,
    pub(super) url: String,
}

impl Serving {
    pub(super) fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_headway"))
            .args(["serve", "--listen", "udp://127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("headway starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it says where it listens");
        let url = line
            .trim()
            .strip_prefix("listening ")
            .expect(&line)
            .to_owned();
        Self { child, url }
    }

    pub(super) fn addr(&self) -> &str {
        self.url.strip_prefix("udp://").expect("a UDP address")
    }

    fn load(&self, rate: &str, duration: &str) -> serde_json::Value {
        let run = json(&[
            "load",
            &self.url,
            "--workload",
            "shenango-bimodal",
            "--rate",
            rate,
            "--duration",
            duration,
            "--timeout",
            "2s",
            "--format",
            "json",
        ]);
        assert_eq!(run["level"], "live");
        assert_eq!(
            count(&run, "answered") + count(&run, "lost"),
            count(&run, "sent")
        );
        assert_eq!(count(&run, "duplicates"), 0);
        assert_eq!(count(&run, "invalid"), 0);
        run
    }

    pub(super) fn signal(&self, signal: i32) {
        // SAFETY: kill has no memory effects; the process is our child and not yet waited for.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    /// Waits for the end: exit status and what it said.
    pub(super) fn end(mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.child.try_wait().expect("it is our child").is_none() {
            assert!(Instant::now() < deadline, "the server does not stop");
            std::thread::sleep(Duration::from_millis(20));
        }
        let status = self.child.wait().expect("it has ended").code();
        let mut said = String::new();
        std::io::Read::read_to_string(
            &mut self.child.stderr.take().expect("it is piped"),
            &mut said,
        )
        .unwrap();
        (status, said)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn count(run: &serde_json::Value, field: &str) -> u64 {
    run[field]
        .as_u64()
        .unwrap_or_else(|| panic!("no {field} in {run}"))
}

pub(super) fn figure(said: &str, what: &str) -> u64 {
    let rest = said
        .split(what)
        .nth(1)
        .unwrap_or_else(|| panic!("no {what} in {said}"));
    rest.trim()
        .split(|c: char| !c.is_ascii_digit())
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap()
}

#[test]
fn every_request_is_answered_or_counted_lost() {
    for policy in ["c-fcfs", "darc", "d-fcfs", "work-stealing"] {
        let server = Serving::start(&[
            "--policy",
            policy,
            "--workers",
            "2",
            "--workload",
            "shenango-bimodal",
        ]);
        let run = server.load("2k", "500ms");
        assert!(count(&run, "sent") > 500, "{policy}");
        server.signal(libc::SIGTERM);
        let (_, said) = server.end();
        let dropped = figure(&said, "dropped by the kernel ");
        assert!(
            count(&run, "lost") <= dropped,
            "{policy}: {said}but the client says {run}"
        );
    }
}

#[test]
fn sigterm_under_load_loses_nothing_accepted() {
    let server = Serving::start(&[
        "--policy",
        "darc",
        "--workers",
        "2",
        "--workload",
        "shenango-bimodal",
    ]);
    let url = server.url.clone();
    let load = std::thread::spawn(move || {
        json(&[
            "load",
            &url,
            "--workload",
            "shenango-bimodal",
            "--rate",
            "2k",
            "--duration",
            "1s",
            "--format",
            "json",
        ])
    });
    std::thread::sleep(Duration::from_millis(500));
    server.signal(libc::SIGTERM);
    let (status, said) = server.end();
    let run = load.join().unwrap();
    assert_eq!(status, Some(0), "{said}");
    // What the server took, it answered: served, shed or refused because it was stopping.
    let kinds = ["answered ", "shed ", "malformed ", "too large ", "refused "];
    let told: u64 = kinds.iter().map(|kind| figure(&said, kind)).sum();
    assert!(told > 0, "{said}");
    assert_eq!(figure(&said, "received "), told, "{said}");
    assert_eq!(figure(&said, "abandoned "), 0, "{said}");
    assert!(count(&run, "answered") >= figure(&said, "answered "));
    assert_eq!(
        count(&run, "answered") + count(&run, "lost"),
        count(&run, "sent")
    );
    assert_eq!(count(&run, "duplicates"), 0);
}

#[test]
fn a_client_that_dies_leaves_the_server_serving() {
    let server = Serving::start(&[
        "--policy",
        "darc",
        "--workers",
        "2",
        "--workload",
        "shenango-bimodal",
    ]);
    let mut client = Command::new(env!("CARGO_BIN_EXE_headway"))
        .args([
            "load",
            &server.url,
            "--workload",
            "shenango-bimodal",
            "--rate",
            "2k",
            "--duration",
            "30s",
        ])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(300));
    client.kill().unwrap();
    client.wait().unwrap();
    assert!(count(&server.load("1k", "300ms"), "answered") > 0);
}

#[test]
fn a_burst_of_garbage_is_counted_and_leaves_the_server_serving() {
    let server = Serving::start(&[
        "--policy",
        "darc",
        "--workers",
        "1",
        "--workload",
        "shenango-bimodal",
    ]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    const SHORT: u64 = 200;
    for length in 0..SHORT as usize {
        // Up to nine bytes: too short for a header, so there is nobody to answer.
        socket
            .send_to(&vec![0xA5; length % 10], server.addr())
            .unwrap();
    }
    // A response: answering it could set two servers talking to each other for ever.
    socket
        .send_to(&[0, 0b100, 0, 0, 0, 1, 0, 0, 0, 0], server.addr())
        .unwrap();
    socket
        .set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    assert!(socket.recv(&mut [0; 64]).is_err(), "garbage was answered");
    assert!(count(&server.load("1k", "300ms"), "answered") > 0);
    server.signal(libc::SIGTERM);
    let (status, said) = server.end();
    assert_eq!(status, Some(0));
    let (malformed, dropped) = (
        figure(&said, "malformed "),
        figure(&said, "dropped by the kernel "),
    );
    let garbage = SHORT + 1;
    assert!(
        malformed <= garbage && garbage <= malformed + dropped,
        "{garbage} were sent: {said}"
    );
}

#[test]
fn a_resident_size_that_stays_small() {
    let server = Serving::start(&[
        "--policy",
        "darc",
        "--workers",
        "2",
        "--workload",
        "shenango-bimodal",
    ]);
    server.load("2k", "500ms");
    let statm = std::fs::read_to_string(format!("/proc/{}/statm", server.child.id())).unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    let (resident, pool) = (pages * 4096, (3 * 1024 + 4096) * 2048);
    assert!(
        resident <= (64 << 20) + pool,
        "{resident} bytes are resident"
    );
}
