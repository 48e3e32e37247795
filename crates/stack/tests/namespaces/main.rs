//! An application's sockets, over lanes and a data plane on `AF_XDP`, against Linux's own stack in another network namespace, also over a network that loses,
//! reorders and duplicates packets. They need root; otherwise the tests print why they are skipped.

mod bad_network;
mod bad_wire;
mod beside_linux;
mod clients;
#[path = "../../examples/thread_sockets.rs"]
#[allow(dead_code, reason = "the example's `main` is not called")]
mod example;
mod hosted;
mod killed_daemon;
#[path = "../../../xdp/tests/common/net.rs"]
mod net;
mod roles;
mod services;

use bad_network::{BadCounts, BadNetwork};
use headway_dataplane::plane::{DataPlane, PlaneCounts};
use headway_machine::thread::uninterrupted;
use headway_rings::lane::{LANE_BYTES, LaneEnds};
use headway_rings::mapping::SharedMapping;
use headway_stack::{
    NetStack, OsThreads, StackConfig, TcpListener, TcpStream, ThreadParking, UdpSocket,
};
use headway_xsk::{HostAddress, MacAddress};
use net::{Host, enter_namespace, missing, shell};
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, socket};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4};
use std::os::unix::fs::MetadataExt as _;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant};

/// Linux.
const PEER: u8 = 2;
/// The data plane and its application.
const PLANE: u8 = 3;
const PEER_IP: Ipv4Addr = Ipv4Addr::new(10, 77, 0, PEER);
const OWN_IP: Ipv4Addr = Ipv4Addr::new(10, 77, 3, 9);
const KTHREADS: usize = 3;

type Stack = NetStack<OneCore>;

/// System threads in the role of an application with one core at a time, which its kthreads take in turn.
#[derive(Clone)]
struct OneCore(Arc<AtomicUsize>);

impl ThreadParking for OneCore {
    type Section = ();

    fn waker(&self) -> Waker {
        OsThreads.waker()
    }

    fn park(&self, timeout: Option<Duration>) {
        OsThreads.park(timeout);
    }

    fn enter_section(&self) {}

    fn kthread(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn is_polled_after(&self) -> bool {
        false
    }
}

fn in_namespaces(test: &str, body: impl FnOnce() + Send + 'static) {
    if let Some(why) = cannot() {
        assert!(std::env::var_os("HEADWAY_XDP_REQUIRED").is_none(), "{why}");
        println!("SKIPPED {test}: {why}");
        return;
    }
    let body = std::thread::spawn(body);
    let deadline = Instant::now() + Duration::from_secs(180);
    while !body.is_finished() {
        assert!(
            Instant::now() < deadline,
            "{test} is not over after 3 minutes"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    if let Err(panic) = body.join() {
        resume_unwind(panic);
    }
}

/// Whether a client is not installed; if so, prints which package has it.
fn lacks(client: &str, package: &str) -> bool {
    let found = std::process::Command::new("which").arg(client).output();
    let lacks = !found.is_ok_and(|output| output.status.success());
    if lacks {
        println!("SKIPPED {client}: apt-get install {package}");
    }
    lacks
}

fn cannot() -> Option<String> {
    let own = std::fs::metadata("/proc/self").expect("/proc");
    if own.uid() != 0 {
        return Some("attaching an XDP program needs root".into());
    }
    let lacking = headway_xsk::missing();
    let needs = missing().map(str::to_owned);
    needs.or_else(|| (!lacking.is_empty()).then(|| lacking.join("; ")))
}

/// The network between the data plane and its application.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quality {
    Good,
    Bad,
}

/// The counts of a run.
#[derive(Debug)]
struct RunCounts {
    plane: PlaneCounts,
    bad: [BadCounts; 2],
}

/// Runs an application beside Linux: each has a namespace, and this thread's namespace routes between them.
fn between<A: Send + 'static, L: Send + 'static>(
    quality: Quality,
    application: impl FnOnce(&Arc<Stack>) -> A + Send + 'static,
    linux: impl FnOnce() -> L + Send + 'static,
) -> (A, L, RunCounts) {
    enter_namespace();
    let peer = Host::start(PEER, linux);
    let plane = Host::start(PLANE, move || with_plane(quality, application));
    for host in [peer.wire(), plane.wire()] {
        shell(&format!("ethtool -K {host} tx off gro off"));
    }
    shell(
        "ip address add 10.77.0.1/24 dev p2; ip address add 10.77.3.1/24 dev p3
         echo 1 > /proc/sys/net/ipv4/ip_forward",
    );
    shell(&format!(
        "nsenter --net=/proc/{}/task/{}/ns/net ip route add 10.77.3.0/24 via 10.77.0.1",
        std::process::id(),
        peer.task()
    ));
    peer.begin();
    plane.begin();
    let (result, counts) = plane.end();
    (result, peer.end(), counts)
}

/// Runs an application in this namespace, behind `e0`, with a data plane that gives the only core to one kthread after the other.
fn with_plane<A>(quality: Quality, application: impl FnOnce(&Arc<Stack>) -> A) -> (A, RunCounts) {
    let memory = || Arc::new(SharedMapping::anonymous(KTHREADS * LANE_BYTES).expect("memory"));
    let of_plane = memory();
    let own = match quality {
        Quality::Good => Arc::clone(&of_plane),
        Quality::Bad => memory(),
    };
    let mut network = BadNetwork::between(&of_plane, &own, KTHREADS);
    let address = HostAddress {
        mac: MacAddress([2, 0, 0, 0, 9, 9]),
        ip: OWN_IP,
    };
    let mut plane = DataPlane::open("e0").expect("AF_XDP");
    let attached = plane.attach(address, &of_plane, KTHREADS).expect("room");
    let number = attached.expect("the lanes fit");
    let lanes = (0..KTHREADS).map(|kthread| LaneEnds::of_application(&own, kthread * LANE_BYTES));
    let lanes = lanes.collect::<Option<Vec<_>>>().expect("the lanes fit");
    let config = StackConfig {
        gateway: Some(Ipv4Addr::new(10, 77, 3, 1)),
        buffer_bytes: 256 << 10,
        ..StackConfig::new(address.mac.0, OWN_IP, 24, [7, 8])
    };
    let core = Arc::new(AtomicUsize::new(0));
    let stack = NetStack::new(&config, lanes, OneCore(Arc::clone(&core)));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let turning = scope.spawn(|| {
            let mut turns = 0usize;
            while !stop.load(Ordering::Relaxed) {
                // The previous kthread keeps its core until the next one has begun.
                let kthread = turns / 500 % KTHREADS;
                let before = (kthread + KTHREADS - 1) % KTHREADS;
                plane.set_active(number, 1 << kthread | 1 << before);
                core.store(kthread, Ordering::Relaxed);
                let findings = plane.turn();
                assert!(findings.broken.is_empty() && findings.to_wake.is_empty());
                if findings.frames == 0 {
                    std::thread::sleep(Duration::from_micros(20));
                }
                turns += 1;
            }
            plane.counts()
        });
        let carrying = scope.spawn(|| {
            while quality == Quality::Bad && !stop.load(Ordering::Relaxed) {
                if !network.turn() {
                    std::thread::sleep(Duration::from_micros(20));
                }
            }
            network.counts
        });
        let polling = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if !stack.poll() {
                    std::thread::sleep(Duration::from_micros(20));
                }
            }
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| application(&stack)));
        // The stack retransmits lost packets of the last write.
        let flushed = ended.is_err() || stack.flush(Duration::from_secs(60));
        stop.store(true, Ordering::Relaxed);
        polling.join().expect("it polls");
        let counts = RunCounts {
            plane: turning.join().expect("it turns"),
            bad: carrying.join().expect("it carries"),
        };
        assert!(flushed, "Linux acknowledges everything within a minute");
        match ended {
            Ok(result) => (result, counts),
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Bytes that differ from every shift and repetition of themselves.
fn pattern(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

/// Each side sends its bytes to the other while it receives: the application accepts.
fn exchange(quality: Quality, length: usize) -> RunCounts {
    let application = move |stack: &Arc<Stack>| {
        let listener = TcpListener::bind(stack, 80, 4).expect("the port");
        let stream = listener.accept().expect("a connection");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (&stream).write_all(&pattern(length, 1)).expect("written");
                stream.shutdown(Shutdown::Write);
            });
            let mut received = Vec::new();
            (&stream).read_to_end(&mut received).expect("to the end");
            assert!(received == pattern(length, 2), "what Linux sent, exactly");
        });
    };
    let linux = move || {
        let stream = connected();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (&stream).write_all(&pattern(length, 2)).expect("written");
                stream.shutdown(Shutdown::Write).expect("it is open");
            });
            let mut received = Vec::new();
            (&stream).read_to_end(&mut received).expect("to the end");
            assert!(
                received == pattern(length, 1),
                "what the application sent, exactly"
            );
        });
    };
    between(quality, application, linux).2
}

/// A connection of Linux to the application, once that listens.
fn connected() -> std::net::TcpStream {
    let to = SocketAddrV4::new(OWN_IP, 80).into();
    for _ in 0..50 {
        match std::net::TcpStream::connect_timeout(&to, Duration::from_secs(2)) {
            Ok(stream) => return stream,
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
    panic!("the application never listens");
}

#[test]
fn tcp_with_linux_is_exact_both_ways() {
    in_namespaces("TCP of an application", || {
        let counts = exchange(Quality::Good, 8 << 20).plane;
        assert_eq!((counts.spoofed, counts.invalid), (0, 0), "{counts:?}");
    });
}

#[test]
fn tcp_with_linux_is_exact_when_packets_are_lost_reordered_and_duplicated() {
    in_namespaces("TCP over a bad network", || {
        // Some 1500 packets and their acknowledgements: some of them get lost.
        let counts = exchange(Quality::Bad, 1 << 20).bad;
        counts.into_iter().for_each(BadCounts::assert_bad);
    });
}

#[test]
fn an_application_connects_to_linux() {
    in_namespaces("an application's connection to Linux", || {
        let listening = Arc::new(AtomicBool::new(false));
        let listens = Arc::clone(&listening);
        let application = move |stack: &Arc<Stack>| {
            while !listens.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let patience = Duration::from_secs(60);
            for round in 0..20 {
                let to = SocketAddrV4::new(PEER_IP, 8080);
                let stream = TcpStream::connect(stack, to, patience).expect("connected");
                (&stream)
                    .write_all(&pattern(10_000, round))
                    .expect("written");
                stream.shutdown(Shutdown::Write);
                let mut back = Vec::new();
                (&stream).read_to_end(&mut back).expect("to the end");
                assert!(back == pattern(10_000, round), "round {round}");
            }
            let closed = SocketAddrV4::new(PEER_IP, 8081);
            let refused = TcpStream::connect(stack, closed, patience).expect_err("nobody listens");
            assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        };
        let linux = move || {
            let listener = std::net::TcpListener::bind((PEER_IP, 8080)).expect("the port");
            listening.store(true, Ordering::Relaxed);
            for _ in 0..20 {
                let (mut stream, _) = listener.accept().expect("a connection");
                let mut received = Vec::new();
                stream.read_to_end(&mut received).expect("to the end");
                stream.write_all(&received).expect("written");
            }
        };
        between(Quality::Bad, application, linux);
    });
}

/// Sends an echo request with so many bytes, until the answer comes back the same.
fn ping(size: usize) {
    let (family, kind) = (AddressFamily::Inet, SockType::Raw);
    let socket = socket(family, kind, SockFlag::SOCK_CLOEXEC, SockProtocol::Icmp).expect("root");
    // A raw socket sends and receives by the same calls.
    let socket = std::net::UdpSocket::from(socket);
    let second = Some(Duration::from_secs(1));
    socket.set_read_timeout(second).expect("a timeout");
    socket.connect((OWN_IP, 1)).expect("an address");
    let message = |kind: u8| {
        let mut message = vec![kind, 0, 0, 0, 0x12, 0x34, 0, 1];
        message.extend(pattern(size, 5));
        let words = message
            .chunks(2)
            .map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |low| u32::from(*low)));
        let sum: u32 = words.sum();
        let sum = (sum & 0xFFFF) + (sum >> 16);
        let sum = !((sum & 0xFFFF) + (sum >> 16)) as u16;
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        message
    };
    for _ in 0..60 {
        socket.send(&message(8)).expect("sent");
        let mut buffer = [0; 2000];
        // The IP header comes with it.
        if let Ok(bytes) = uninterrupted(|| socket.recv(&mut buffer)) {
            assert_eq!(buffer[20..bytes], message(0));
            return;
        }
    }
    panic!("no answer to a ping of {size} bytes");
}

#[test]
fn linux_pings_an_application_and_hears_of_ports_that_nobody_has() {
    in_namespaces("ping of an application", || {
        let application = |stack: &Arc<Stack>| {
            let listener = TcpListener::bind(stack, 80, 1).expect("the port");
            drop(listener.accept().expect("a connection"));
        };
        let linux = || {
            for size in [0, 56, 1400] {
                ping(size);
            }
            let socket = std::net::UdpSocket::bind((PEER_IP, 0)).expect("a port");
            let timeout = Some(Duration::from_secs(60));
            socket.set_read_timeout(timeout).expect("a timeout");
            socket.connect((OWN_IP, 9)).expect("an address");
            socket.send(b"anybody?").expect("sent");
            let refused = uninterrupted(|| socket.recv(&mut [0; 8])).expect_err("nobody");
            assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
            drop(connected());
        };
        between(Quality::Good, application, linux);
    });
}

#[test]
fn datagrams_with_linux_are_counted_exactly() {
    in_namespaces("UDP of an application", || {
        const COUNT: u32 = 500;
        let application = |stack: &Arc<Stack>| {
            let socket = UdpSocket::bind(stack, 53).expect("the port");
            // A connection shows that the port is open.
            let listener = TcpListener::bind(stack, 80, 1).expect("the port");
            drop(listener.accept().expect("a connection"));
            let mut buffer = [0; 2000];
            for number in 0..COUNT {
                let (bytes, from) = socket.recv_from(&mut buffer).expect("a datagram");
                assert_eq!(buffer[..bytes], pattern(bytes, number));
                socket.send_to(&buffer[..bytes], from).expect("sent");
            }
        };
        let linux = || {
            let socket = std::net::UdpSocket::bind((PEER_IP, 0)).expect("a port");
            let timeout = Some(Duration::from_secs(60));
            socket.set_read_timeout(timeout).expect("a timeout");
            drop(connected());
            let mut buffer = [0; 2000];
            for number in 0..COUNT {
                let datagram = pattern(1 + number as usize * 2, number);
                socket.send_to(&datagram, (OWN_IP, 53)).expect("sent");
                let received = uninterrupted(|| socket.recv(&mut buffer)).ok();
                assert_eq!(received, Some(datagram.len()), "datagram {number}");
                assert_eq!(buffer[..datagram.len()], datagram);
            }
        };
        let (_, _, counts) = between(Quality::Good, application, linux);
        let PlaneCounts {
            sent, unsent, full, ..
        } = counts.plane;
        assert!(sent >= u64::from(COUNT), "{counts:?}");
        assert_eq!((unsent, full), (0, 0), "{counts:?}");
    });
}

/// Answers one request of HTTP/1.0: any path, always the same body.
fn respond<T: ThreadParking>(stream: &TcpStream<T>, body: &[u8]) {
    let mut request: Vec<u8> = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        match stream.receive(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(bytes) => request.extend(&buffer[..bytes]),
        }
    }
    let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
    let _ = (&mut &*stream).write_all(head.as_bytes());
    let _ = (&mut &*stream).write_all(body);
}

#[test]
fn curl_gets_pages_of_an_application_over_a_bad_network() {
    in_namespaces("curl", || {
        if lacks("curl", "curl") {
            return;
        }
        const REQUESTS: usize = 8;
        let body = || {
            let bytes = pattern(200_000, 3);
            bytes
                .iter()
                .map(|byte| b'a' + byte % 26)
                .collect::<Vec<u8>>()
        };
        let application = move |stack: &Arc<Stack>| {
            let listener = TcpListener::bind(stack, 80, 8).expect("the port");
            let body = body();
            // A connection shows that the application listens.
            std::thread::scope(|scope| {
                for _ in 0..=REQUESTS {
                    let stream = listener.accept().expect("a connection");
                    let body = &body;
                    scope.spawn(move || respond(&stream, body));
                }
            });
        };
        let linux = move || {
            drop(connected());
            for _ in 0..REQUESTS / 4 {
                let get = "curl -sS --max-time 60 http://10.77.3.9/page";
                let all = shell(&format!(
                    "cd $(mktemp -d); for n in 1 2 3 4; do {get} > $n & done; wait; cat 1 2 3 4; rm -r $PWD"
                ));
                assert!(all.as_bytes() == body().repeat(4), "the page, four times");
            }
        };
        between(Quality::Bad, application, linux);
    });
}
