//! The service on a running server, asked by the load generator.

use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use headway_kv::{Kv, KvWorkload, Operation, Request, key_of, read_get};
use headway_load::{Extent, Load, ServiceTime};
use headway_net::header::{Flag, HEADER_BYTES, Header, Status, UNKNOWN};
use headway_runtime::{Layout, Server};
use headway_workload::{Class, Offered, ServiceDistribution, Workload};

fn serve(kv: Kv) -> Server {
    let server = Server::builder()
        .policy("c-fcfs")
        .class("GET", Duration::from_nanos(2_000))
        .class("SCAN", Duration::from_nanos(20_000))
        .workers(1)
        .service(kv)
        .listen_udp("127.0.0.1:0".parse().unwrap());
    server.start().unwrap()
}

/// Sends one datagram and returns the reply's status and body.
fn ask(server: &Server, class: u8, body: &[u8]) -> (Status, Vec<u8>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.local_addr().unwrap()).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let header = Header {
        class,
        flag: Flag::REQUEST,
        index: 1,
        time_ns: 0,
    };
    let mut buffer = [0; 2048];
    buffer[..HEADER_BYTES].copy_from_slice(&header.encode());
    buffer[HEADER_BYTES..][..body.len()].copy_from_slice(body);
    socket.send(&buffer[..HEADER_BYTES + body.len()]).unwrap();
    let len = socket.recv(&mut buffer).unwrap();
    let (header, payload) = Header::parse(&buffer[..len]).unwrap();
    (header.flag.status(), payload.to_vec())
}

#[test]
fn the_body_and_not_the_class_says_what_is_done() {
    let kv = Kv::filled(10, 100, 1).unwrap();
    let server = serve(kv.clone());
    let mut body = [0; 64];
    let len = Request::Get { key: &key_of(3) }.encode(&mut body).unwrap();
    let mut expected = [0; 128];
    let expected_len = kv.answer(&body[..len], &mut expected).unwrap();
    for class in [
        Operation::Get as u8,
        Operation::Scan as u8,
        Operation::Delete as u8,
        UNKNOWN,
    ] {
        let (status, reply) = ask(&server, class, &body[..len]);
        assert_eq!(status, Status::Ok);
        assert_eq!(reply, expected[..expected_len], "class {class}");
        assert_eq!(read_get(&reply).unwrap().unwrap().len(), 100);
    }
}

#[test]
fn malformed_bodies_are_bad_requests_and_values_too_long_are_too_large() {
    let kv = Kv::filled(10, 2_000, 1).unwrap();
    let server = serve(kv);
    assert_eq!(ask(&server, 0, &[]), (Status::BadRequest, Vec::new()));
    assert_eq!(
        ask(&server, 0, &[9, 9, 9]),
        (Status::BadRequest, Vec::new())
    );
    let mut body = [0; 64];
    let len = Request::Get { key: &key_of(0) }.encode(&mut body).unwrap();
    assert_eq!(
        ask(&server, 0, &body[..len]),
        (Status::TooLarge, Vec::new())
    );
}

#[test]
fn a_load_of_gets_and_scans_is_answered() {
    const KEYS: u64 = 2_000;
    let server = serve(Kv::filled(KEYS, 100, 1).unwrap());
    let class = |name, share| {
        Class::new(
            name,
            share,
            ServiceDistribution::Constant { mean_ns: 2_000 },
        )
    };
    let workload = Workload::new("kv", vec![class("GET", 0.9), class("SCAN", 0.1)]);
    let requests = KvWorkload::new(KEYS, 1)
        .with_classes(workload.class_names())
        .unwrap();
    let target = server.local_addr().unwrap();
    let mut load = Load::new(
        target,
        workload,
        Offered::Rate(2_000.0),
        Extent::Requests { count: 600 },
    );
    load.body = Arc::new(move |class, index, room| requests.body(class, index, room));
    load.service_time = ServiceTime::Reported;
    load.timeout_ns = 60_000_000_000;
    let report = load.run(|_| ControlFlow::Continue(())).unwrap();
    assert_eq!(report.delivery.answered, 600);
    assert_eq!(report.statuses.ok, 600);
    assert_eq!(report.delivery.invalid, 0);
    let [get, scan] = &report.run.classes[..] else {
        panic!("two classes");
    };
    assert!(get.count > scan.count && scan.count > 0);
    assert!(get.service_us > 0.0 && scan.service_us > 0.0);
}

#[test]
fn a_scan_says_that_it_is_long() {
    const KEYS: u64 = 20_000;
    let server = Server::builder()
        .policy("shinjuku-sq,q=5us")
        .class("GET", Duration::from_nanos(2_000))
        .class("SCAN", Duration::from_millis(2))
        .workers(1)
        .layout(Layout::Inline)
        .look_every(Duration::from_micros(2))
        .by_feedback(true)
        .service(Kv::filled(KEYS, 100, 1).unwrap())
        .listen_udp("127.0.0.1:0".parse().unwrap())
        .start()
        .unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(server.local_addr().unwrap()).unwrap();
    let (mut scan, mut get) = ([0; 64], [0; 64]);
    let count = KEYS as u32;
    let scan_len = Request::Scan { first: &[], count }.encode(&mut scan);
    let get_len = Request::Get { key: &key_of(3) }.encode(&mut get);
    let (scan, get) = (&scan[..scan_len.unwrap()], &get[..get_len.unwrap()]);
    let deadline = Instant::now() + Duration::from_secs(60);
    // A GET that comes while the SCAN runs interrupts it; nothing else would, since GETs say nothing.
    while server.stats().preemptions == 0 {
        assert!(Instant::now() < deadline, "no SCAN is interrupted");
        for (class, body) in [(Operation::Scan, scan), (Operation::Get, get)] {
            let header = Header {
                class: class as u8,
                flag: Flag::REQUEST,
                index: 1,
                time_ns: 0,
            };
            socket.send(&[&header.encode()[..], body].concat()).unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let stats = server.shutdown(Duration::from_secs(60)).unwrap();
    assert_eq!(stats.classes[Operation::Get as usize].preemptions, 0);
    assert_eq!(stats.panics, 0);
}
