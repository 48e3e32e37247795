//! `serve` and `load` over real UDP: every request is answered once or counted as lost.

use super::json;
use crate::children::TestChild;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A server that is stopped when dropped.
pub(super) struct Serving {
    child: TestChild,
    pub(super) url: String,
}

impl Serving {
    pub(super) fn start(args: &[&str]) -> Self {
        Self::start_command(&[&["serve", "--listen", "udp://127.0.0.1:0"], args].concat())
    }

    /// Starts another command that prints its address.
    pub(super) fn start_command(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
        command
            .args(args)
            // The folder for control sockets of servers that tests kill.
            .env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"));
        Self::start_as(&mut command)
    }

    /// Starts a process that prints its address, as this command.
    pub(super) fn start_as(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = TestChild::start(command);
        let mut line = String::new();
        BufReader::new(child.stdout())
            .read_line(&mut line)
            .expect("it says where it listens");
        let url = line
            .trim()
            .strip_prefix("listening ")
            .unwrap_or_else(|| panic!("{command:?} says {line:?} and does not listen"))
            .to_owned();
        Self { child, url }
    }

    pub(super) fn process(&self) -> i32 {
        self.child.id()
    }

    pub(super) fn addr(&self) -> &str {
        self.url.strip_prefix("udp://").expect("a UDP address")
    }

    pub(super) fn load(&self, rate: &str, duration: &str) -> serde_json::Value {
        let run = json(&[
            "load",
            &self.url,
            "--workload",
            "shenango-bimodal",
            "--rate",
            rate,
            "--duration",
            duration,
            // It ends once all are answered: only lost requests take this time.
            "--timeout",
            "60s",
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

    /// Waits until a count of a server is as high as this.
    pub(super) fn await_count(&self, name: &str, least: u64) {
        let port = self.addr().rsplit(':').next().expect("a port");
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let output = Command::new(env!("CARGO_BIN_EXE_headway"))
                .args(["ctl", "status", "--format", "json", "--server", port])
                .env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"))
                .output()
                .expect("headway runs");
            let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            if count(&status, name) >= least {
                return;
            }
            assert!(Instant::now() < deadline, "{status}");
        }
    }

    pub(super) fn signal(&self, signal: i32) {
        self.child.signal(signal);
    }

    /// Has the process stand still, and returns when none of its threads runs.
    pub(super) fn stand_still(&self) {
        self.signal(libc::SIGSTOP);
        let deadline = Instant::now() + Duration::from_secs(60);
        let tasks = format!("/proc/{}/task", self.process());
        let runs = |task: std::io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(task.expect("a thread").path().join("stat"));
            // The state comes behind the name, which may have blanks.
            let state = stat
                .ok()
                .and_then(|stat| Some(stat.rsplit_once(") ")?.1.starts_with('T')));
            state == Some(false)
        };
        while std::fs::read_dir(&tasks).expect("its threads").any(runs) {
            assert!(Instant::now() < deadline, "it does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Kills the server, as a failure of the machine would.
    pub(super) fn kill(&mut self) {
        self.child.kill();
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            if let Some(status) = self.child.ended() {
                return status;
            }
            assert!(Instant::now() < deadline, "the server does not stop");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end, and returns exit status and output.
    pub(super) fn end(mut self) -> (Option<i32>, String) {
        let status = self.wait().code();
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr(), &mut said).unwrap();
        (status, said)
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

/// Every received request is in one count of the server's closing line, and every answered one in one status.
pub(super) fn assert_all_counted(said: &str) {
    let sum = |kinds: &[&str]| kinds.iter().map(|kind| figure(said, kind)).sum::<u64>();
    let answered = ["served ", "shed ", "too large ", "refused "];
    assert_eq!(sum(&["answered ", "unsent "]), sum(&answered), "{said}");
    let kinds = ["answered ", "unsent ", "malformed ", "abandoned "];
    assert_eq!(figure(said, "received "), sum(&kinds), "{said}");
}

/// A request to the spin service that takes this long.
fn request(index: u32, service_ns: u32) -> [u8; 10] {
    let mut bytes = [0; 10];
    bytes[2..6].copy_from_slice(&index.to_be_bytes());
    bytes[6..].copy_from_slice(&service_ns.to_be_bytes());
    bytes
}

/// More work than the test has time for: 400 requests of 0.4 s for one worker. It has taken in some of them without beginning them.
fn overloaded(policy: &str, drain: &str) -> (Serving, UdpSocket) {
    let server = Serving::start(&[
        "--policy",
        policy,
        "--workers",
        "1",
        "--drain",
        drain,
        "--max-spin",
        "1s",
    ]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.addr()).unwrap();
    // While the first request runs, all others reach the socket. Whoever receives then takes in a whole batch.
    socket.send(&request(0, 900_000_000)).unwrap();
    for index in 1..400 {
        socket.send(&request(index, 400_000_000)).unwrap();
    }
    server.await_count("received", 2);
    (server, socket)
}

#[test]
fn a_drain_ends_at_its_deadline() {
    for policy in ["c-fcfs", "d-fcfs", "concord"] {
        // `end` waits for one minute, but all of the work would take two and a half.
        let (server, _socket) = overloaded(policy, "100ms");
        server.signal(libc::SIGTERM);
        let (status, said) = server.end();
        assert_eq!(status, Some(0), "{policy}: {said}");
        assert_all_counted(&said);
        // Under d-fcfs, requests wait in the kernel. A worker that holds a batch of one has no request to abandon, and refuses the rest.
        let left = figure(&said, "abandoned ") + figure(&said, "refused ");
        assert!(left > 0, "{policy}: {said}");
    }
}

#[test]
fn a_second_signal_ends_the_server_at_once() {
    for (first, second) in [
        (libc::SIGTERM, libc::SIGTERM),
        (libc::SIGTERM, libc::SIGINT),
        (libc::SIGINT, libc::SIGTERM),
    ] {
        let (mut server, socket) = overloaded("c-fcfs", "1000s");
        server.signal(first);
        // The order of two pending signals is undefined, and a signal soon after the first counts as the same stop. The test therefore
        // sends the second after a refusal, and repeats it until the server ends.
        await_refusal(&socket);
        let deadline = Instant::now() + Duration::from_secs(60);
        while server.child.ended().is_none() {
            assert!(
                Instant::now() < deadline,
                "a second signal does not end the server"
            );
            server.signal(second);
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(server.wait().signal(), Some(second));
    }
}

/// Sends requests until the stopping server refuses one.
fn await_refusal(socket: &UdpSocket) {
    let mut response = [0; 64];
    socket
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < deadline, "the server refuses nothing");
        socket.send(&request(1000, 0)).unwrap();
        // The flag of a response whose status is "draining".
        if socket.recv(&mut response).is_ok() && response[1] == 0b0010_0100 {
            return;
        }
    }
}

#[test]
fn signals_that_mean_nothing_leave_the_server_serving() {
    for signal in [libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2] {
        let mut server = Serving::start(&["--policy", "c-fcfs", "--workers", "1"]);
        let stderr = server.child.stderr();
        let mut lines = BufReader::new(stderr).lines();
        server.signal(signal);
        let refused = |line: &String| line.contains("is ignored");
        let line = lines.find_map(|line| line.ok().filter(refused));
        assert!(line.is_some(), "{signal} is refused with a word");
        assert!(count(&server.load("1k", "100ms"), "answered") > 0);
        server.signal(libc::SIGTERM);
        assert_eq!(server.wait().code(), Some(0));
    }
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
            "2s",
            "--timeout",
            "5s",
            "--format",
            "json",
        ])
    });
    server.await_count("answered", 500);
    server.signal(libc::SIGTERM);
    let (status, said) = server.end();
    let run = load.join().unwrap();
    assert_eq!(status, Some(0), "{said}");
    // The server answered every request that it took: served, shed, or refused because it was stopping.
    assert_all_counted(&said);
    assert!(figure(&said, "served ") > 0, "{said}");
    assert_eq!(figure(&said, "abandoned "), 0, "{said}");
    assert_eq!(
        count(&run, "answered"),
        figure(&said, "answered "),
        "client and server mean the same by it: {said}"
    );
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
    let mut client = Command::new(env!("CARGO_BIN_EXE_headway"));
    client
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
        .stdout(Stdio::null());
    let mut client = TestChild::start(&mut client);
    server.await_count("answered", 300);
    client.kill();
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
        // Up to nine bytes are too short for a header, so the server cannot answer.
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
