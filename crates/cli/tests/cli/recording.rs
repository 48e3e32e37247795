//! A new user's steps with `serve` and `load`: look at the chosen settings, load a custom service, record a trace.

use super::serving::{Serving, count, figure};
use super::{headway, json};
use crate::children::TestChild;
use headway_machine::thread::uninterrupted;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// The number of rows of a trace by class.
fn classes(trace: &Path) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(trace).unwrap();
    let mut rows = text.lines();
    assert_eq!(rows.next(), Some("time,class,service"));
    let mut classes = BTreeMap::new();
    for row in rows {
        let class = row.split(',').nth(1).expect(row);
        *classes.entry(class.to_owned()).or_default() += 1;
    }
    classes
}

fn stop(server: Serving) -> String {
    server.signal(libc::SIGTERM);
    let (status, said) = server.end();
    assert_eq!(status, Some(0), "{said}");
    said
}

#[test]
fn a_server_says_what_it_chose_and_what_it_does_and_records_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let (served, sent) = (
        folder.path().join("served.csv"),
        folder.path().join("sent.csv"),
    );
    let (served_text, sent_text) = (served.to_str().unwrap(), sent.to_str().unwrap());
    let server = Serving::start(&[
        "--policy",
        "darc,window=100",
        "--workers",
        "2",
        "--workload",
        "shenango-bimodal",
        "--stats",
        "50ms",
        "--record",
        served_text,
    ]);
    let run = json(&[
        "load",
        &server.url,
        "--workload",
        "shenango-bimodal",
        "--rate",
        "2k",
        "--duration",
        "500ms",
        "--record",
        sent_text,
        "--format",
        "json",
    ]);
    assert!(!served.exists(), "it is there when it is complete");
    let said = stop(server);
    for part in [
        "policy darc,",
        ",window=100,",
        "2 workers",
        "requests run to their end",
        "classes by type: 0 short, 1 long",
        "s short: ",
        "queued or running",
        "may steal",
        ", p99 ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let recorded = figure(&said, "recorded ");
    assert_eq!(classes(&served).values().sum::<u64>(), recorded);
    assert!(recorded > 0 && recorded <= count(&run, "sent"), "{said}");
    assert!(classes(&sent).values().sum::<u64>() <= count(&run, "answered"));
    for trace in [served_text, sent_text] {
        let fitted = headway(&["fit", trace]);
        assert!(fitted.status.success(), "{fitted:?}");
        let simulated = headway(&["sim", "--workload", trace, "--policy", "c-fcfs"]);
        assert!(simulated.status.success(), "{simulated:?}");
    }
}

#[test]
fn a_record_that_cannot_be_written_is_told_and_the_server_serves_on() {
    let server = Serving::start(&[
        "--app",
        "echo",
        "--policy",
        "c-fcfs",
        "--workers",
        "1",
        "--record",
        "/dev/full",
    ]);
    let run = json(&[
        "load",
        &server.url,
        "--workload",
        "fixed-1us",
        "--rate",
        "1k",
        "--requests",
        "100",
        "--format",
        "json",
    ]);
    assert!(count(&run, "answered") > 0);
    server.signal(libc::SIGTERM);
    let (status, said) = server.end();
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("cannot write --record: /dev/full"), "{said}");
    figure(&said, "received ");
}

#[test]
fn classes_of_a_workload_in_another_order_than_the_servers_are_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let class = |name: &str, share: f64| {
        format!(
            "[[class]]\nname = \"{name}\"\nshare = {share}\nservice = {{ dist = \"constant\", mean = \"5us\" }}\n"
        )
    };
    for (app, rare, often, map) in [
        ("spin", "long", "short", Some("long=1,short=0")),
        // The store's operations have fixed type bytes.
        ("kv", "SCAN", "GET", None),
    ] {
        let (workload, served) = (file("w.toml"), file("served.csv"));
        std::fs::write(
            &workload,
            format!("name = \"w\"\n{}{}", class(rare, 0.1), class(often, 0.9)),
        )
        .unwrap();
        let mut serve = vec![
            "--app",
            app,
            "--policy",
            "c-fcfs",
            "--workers",
            "1",
            "--record",
            served.to_str().unwrap(),
        ];
        if app == "kv" {
            serve.extend(["--keys", "100"]);
        }
        let server = Serving::start(&serve);
        let mut load = vec![
            "load",
            &server.url,
            "--workload",
            workload.to_str().unwrap(),
            "--rate",
            "1k",
            "--requests",
            "300",
            "--timeout",
            "5s",
        ];
        match map {
            Some(map) => load.extend(["--map", map]),
            None => load.extend(["--app", app, "--keys", "100", "--scan-entries", "3"]),
        }
        let output = headway(&load);
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(
            shown.contains(&format!("classes by type: 0 {often}, 1 {rare}")),
            "{shown}"
        );
        let said = stop(server);
        let classes = classes(&served);
        assert!(
            classes[often] > 3 * classes[rare],
            "{app}: {classes:?}, {said}"
        );
    }
}

#[test]
fn any_service_is_sent_bodies_from_files_with_keys_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let body = folder.path().join("lookup");
    std::fs::write(&body, "get user:{key:6}\r\n").unwrap();
    let service = UdpSocket::bind("127.0.0.1:0").unwrap();
    service
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut client = Command::new(env!("CARGO_BIN_EXE_headway"));
    client
        .args(["load", &format!("udp://{}", service.local_addr().unwrap())])
        .args([
            "--workload",
            "fixed-1us",
            "--rate",
            "1k",
            "--requests",
            "50",
            "--timeout",
            "1ms",
        ])
        .args([
            "--map",
            "request=9",
            "--keys",
            "1000",
            "--key-choice",
            "zipf:0.99",
        ])
        .args(["--body-file", body.to_str().unwrap()])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut client = TestChild::start(&mut client);
    let mut keys = Vec::new();
    for _ in 0..50 {
        let mut datagram = [0; 100];
        let len = uninterrupted(|| service.recv(&mut datagram)).unwrap();
        assert_eq!(datagram[0], 9, "its type");
        let text = std::str::from_utf8(&datagram[10..len]).unwrap();
        let key = text
            .strip_prefix("get user:")
            .and_then(|text| text.strip_suffix("\r\n"));
        let key = key.unwrap_or_else(|| panic!("{text:?}"));
        assert_eq!(key.len(), 6);
        keys.push(key.parse::<u64>().unwrap());
    }
    client.wait();
    assert!(keys.iter().all(|&key| key < 1_000));
    keys.sort_unstable();
    keys.dedup();
    assert!(keys.len() > 1, "{keys:?}");
}

#[test]
fn spin_works_for_nobody_longer_than_it_may() {
    let server = Serving::start(&[
        "--policy",
        "c-fcfs",
        "--workers",
        "1",
        "--workload",
        "shenango-bimodal",
        "--max-spin",
        "1ms",
    ]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.addr()).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let status_of = |time_ns: u32| {
        let mut request = vec![0, 0, 0, 0, 0, 1];
        request.extend(time_ns.to_be_bytes());
        socket.send(&request).unwrap();
        let mut reply = [0; 64];
        uninterrupted(|| socket.recv(&mut reply)).unwrap();
        reply[1] >> 3 & 7
    };
    const OK: u8 = 0;
    const BAD_REQUEST: u8 = 5;
    assert_eq!(status_of(900_000), OK);
    assert_eq!(status_of(u32::MAX), BAD_REQUEST);
    stop(server);
}

#[test]
fn a_record_that_meets_the_limit_of_files_ends_as_on_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record.csv");
    let mut command = Command::new("sh");
    command
        .args(["-c", "ulimit -f 2; exec \"$@\"", "sh"])
        .arg(env!("CARGO_BIN_EXE_headway"))
        .args(["serve", "--listen", "udp://127.0.0.1:0", "--app", "echo"])
        .args(["--workers", "1", "--policy", "c-fcfs", "--record"])
        .arg(&record)
        .env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"));
    let server = Serving::start_as(&mut command);
    server.load("2k", "500ms");
    server.signal(libc::SIGTERM);
    let (status, said) = server.end();
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.contains("received ") && said.contains("error: "),
        "{said}"
    );
    assert!(said.contains("File too large"), "{said}");
    assert!(!record.exists());
}
