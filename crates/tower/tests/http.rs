//! An axum service whose requests run in a pool, before clients that speak HTTP over TCP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::routing::get;
use headway_pool::{ClassOptions, Pool};
use headway_tower::ScheduleLayer;

const LIMIT: Duration = Duration::from_secs(60);

/// What a handler waits for in the thread that runs it.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let open = self.0.0.lock().unwrap();
        let (open, _) = self
            .0
            .1
            .wait_timeout_while(open, LIMIT, |open| !*open)
            .unwrap();
        assert!(*open, "the gate was never opened");
    }
}

/// What a handler holds over an await: its end says whether Tokio's runtime was there.
struct EndsInRuntime(mpsc::Sender<bool>);

impl Drop for EndsInRuntime {
    fn drop(&mut self) {
        let in_runtime = tokio::runtime::Handle::try_current().is_ok();
        let _ = self.0.send(in_runtime);
        tokio::spawn(async {});
    }
}

/// A server on a runtime with one thread, its pool, the gate of its reports, and how its leavers ended.
struct Server {
    address: SocketAddr,
    pool: Pool,
    gate: Gate,
    ended: mpsc::Receiver<bool>,
    _runtime: tokio::runtime::Runtime,
}

fn server() -> Server {
    let builder = Pool::builder()
        .workers(2)
        .class("point", ClassOptions::new())
        .class("leaver", ClassOptions::new());
    let report = ClassOptions::new().workers_at_most(1).queue_limit(1);
    let pool = builder.class("report", report).build().unwrap();
    let gate = Gate::default();
    let layer = ScheduleLayer::new(&pool, |request: &Request| {
        request.uri().path().trim_start_matches('/').to_owned()
    });
    let waits = gate.clone();
    let report = get(move || {
        let gate = waits.clone();
        async move {
            gate.wait();
            "report"
        }
    });
    let slept = || async {
        // A timer of Tokio's in a thread of the pool.
        tokio::time::sleep(Duration::from_millis(1)).await;
        if headway_pool::checkpoint().is_ok() {
            "inside"
        } else {
            "outside"
        }
    };
    let (ends, ended) = mpsc::channel();
    let leaver = get(move || {
        let held = EndsInRuntime(ends.clone());
        async move {
            until("its client is gone", headway_pool::cancelled);
            tokio::time::sleep(LIMIT).await;
            drop(held);
        }
    });
    let service = Router::new()
        .route("/point", get(slept))
        .route("/leaver", leaver)
        .route("/report", report)
        .layer(layer);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
        .unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(async move { axum::serve(listener, service).await });
    Server {
        address,
        pool,
        gate,
        ended,
        _runtime: runtime,
    }
}

/// A request that was sent.
fn send(address: SocketAddr, path: &str, header: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: here\r\n{header}Connection: close\r\n\r\n"
    )
    .unwrap();
    BufReader::new(stream)
}

/// The status line, the headers in lower case, the body.
fn receive(mut stream: BufReader<TcpStream>) -> (String, String, String) {
    let (mut status, mut headers, mut body) = (String::new(), String::new(), String::new());
    stream.read_line(&mut status).unwrap();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).unwrap();
        if line.trim().is_empty() {
            break;
        }
        headers.push_str(&line.to_lowercase());
    }
    stream.read_to_string(&mut body).unwrap();
    (status.trim().to_owned(), headers, body)
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::yield_now();
    }
}

#[test]
fn points_pass_reports_and_what_is_too_much_is_refused() {
    let server = server();
    let count = |name: &str| {
        let stats = server.pool.stats();
        stats
            .classes
            .iter()
            .find(|class| class.name == name)
            .unwrap()
            .counts
    };
    let runs = send(server.address, "/report", "");
    until("a report runs", || count("report").running == 1);
    let waits = send(server.address, "/report", "");
    until("a report waits", || count("report").waiting == 1);

    let (status, headers, _) = receive(send(server.address, "/report", ""));
    assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
    assert!(headers.contains("retry-after: "), "{headers}");
    let grpc = "Content-Type: application/grpc\r\n";
    let (status, headers, _) = receive(send(server.address, "/report", grpc));
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(headers.contains("grpc-status: 8"), "{headers}");
    assert_eq!(count("report").refused, 2);

    for _ in 0..20 {
        let (status, _, body) = receive(send(server.address, "/point", ""));
        assert_eq!(status, "HTTP/1.1 200 OK");
        assert_eq!(body, "inside", "a job of the pool, after an await too");
    }
    server.gate.open();
    for report in [runs, waits] {
        let (status, _, body) = receive(report);
        assert_eq!(
            (status.as_str(), body.as_str()),
            ("HTTP/1.1 200 OK", "report")
        );
    }
    let (status, _, _) = receive(send(server.address, "/nothing", ""));
    assert_eq!(
        status, "HTTP/1.1 500 Internal Server Error",
        "no class is called so"
    );
    assert!(server.pool.stats().total().add_up());
}

#[test]
fn a_client_that_goes_away_leaves_the_queue() {
    let server = server();
    let total = || server.pool.stats().total();
    let runs = send(server.address, "/report", "");
    until("a report runs", || total().running == 1);
    let waits = send(server.address, "/report", "");
    until("a report waits", || total().waiting == 1);
    drop(waits);
    until("it left", || total().cancelled == 1);
    assert_eq!(total().waiting, 0);
    server.gate.open();
    assert_eq!(receive(runs).2, "report");
}

/// A handler that runs when its client goes away ends at its next await: a thread of the pool drops it.
#[test]
fn what_a_cancelled_handler_holds_ends_within_tokio() {
    let server = server();
    let total = || server.pool.stats().total();
    let runs = send(server.address, "/leaver", "");
    until("a handler runs", || total().running == 1);
    drop(runs);
    assert!(server.ended.recv_timeout(LIMIT).unwrap());
    until("it was cancelled", || total().cancelled == 1);
    assert!(total().add_up());
}

/// In a process of its own, whose standard error shows that the second of two mistakes is not told.
#[test]
fn a_class_that_the_pool_does_not_have_is_told_once() {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "requests_of_no_class", "--ignored"])
        .args(["--nocapture", "--test-threads=1"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{said}");
    let told = said.lines().filter(|line| line.contains("ScheduleLayer"));
    let told: Vec<&str> = told.collect();
    assert_eq!(told.len(), 1, "{said}");
    assert!(told[0].contains("no class is called 'nothing'"), "{said}");
}

#[test]
#[ignore = "a process of its own, for the test above"]
fn requests_of_no_class() {
    let server = server();
    for path in ["/nothing", "/neither"] {
        let (status, _, _) = receive(send(server.address, path, ""));
        assert_eq!(status, "HTTP/1.1 500 Internal Server Error");
    }
}
