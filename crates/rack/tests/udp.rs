//! The switch before real servers, from the clients' side. On loopback by UDP, and by `AF_XDP` between network namespaces, as root.

mod common;
#[path = "../../xdp/tests/common/net.rs"]
mod net;

use common::{Dynamic, ROOM, header, policy, request};
use headway_machine::Clock;
use headway_machine::thread::uninterrupted;
use headway_net::header::{CloneRole, HEADER_BYTES, Status};
use headway_rack::{
    PacketCounts, PacketPort, PortSwitch, ServerAddresses, SwitchLimits, SwitchStopper,
    SwitchTables, UdpPort, UdpSwitch,
};
use headway_runtime::{Pin, Server};
use headway_xsk::{LinkedHost, MacAddress, XskUdpPort};
use net::{Host, enter_namespace, host_mac, shell};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
/// The host of servers and clients behind the switch's device.
const HOST: u8 = 2;
/// The addresses of servers and clients in that host.
const SERVERS: SocketAddr = address([10, 77, 0, HOST], 0);
const CLIENTS: SocketAddr = address([10, 77, 0, 99], 0);
/// A timeout longer than any expected answer takes.
const FOREVER: Duration = Duration::from_secs(60);
/// The time after which a switch forgets a request, ns.
const ANSWER_NS: u64 = FOREVER.as_nanos() as u64;
/// The times of the given clocks, ns. Only the test that a clock belongs to moves it.
static TIMES_NS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

fn given_ns<const TEST: usize>() -> u64 {
    TIMES_NS[TEST].load(Ordering::Acquire)
}

const fn address([a, b, c, d]: [u8; 4], port: u16) -> SocketAddr {
    let ip = std::net::Ipv4Addr::new(a, b, c, d);
    SocketAddr::new(std::net::IpAddr::V4(ip), port)
}

/// The kind of port of the switch, and the addresses of clients and servers.
#[derive(Clone)]
enum Place {
    Loopback,
    /// As on loopback, and the switch has this unspecified address.
    AllAddresses(SocketAddr),
    /// The switch has a device in another namespace, which this handle enters.
    Device(Arc<std::fs::File>),
}

impl Place {
    fn servers(&self) -> SocketAddr {
        match self {
            Self::Loopback | Self::AllAddresses(_) => LOOPBACK,
            Self::Device(_) => SERVERS,
        }
    }

    fn clients(&self) -> SocketAddr {
        match self {
            Self::Loopback | Self::AllAddresses(_) => LOOPBACK,
            Self::Device(_) => CLIENTS,
        }
    }
}

/// Runs a test in a host behind a switch's device; prints the reason where that is impossible. Such tests run one at a time, since each spins.
fn behind_device(test: &'static str, body: impl FnOnce(&Place) + Send + 'static) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = cannot() {
        assert!(std::env::var_os("HEADWAY_XDP_REQUIRED").is_none(), "{why}");
        println!("SKIPPED {test} by AF_XDP: {why}");
        return;
    }
    let test = std::thread::spawn(|| {
        enter_namespace();
        let task = nix::unistd::gettid();
        let space = format!("/proc/{}/task/{task}/ns/net", std::process::id());
        let space = std::fs::File::open(space).expect("this namespace");
        let host = Host::start(HOST, move || {
            shell(
                "ip address add 10.77.0.99/24 dev e0
                 ip neigh add 10.77.0.1 lladdr 02:00:00:00:08:02 dev e0 || true",
            );
            body(&Place::Device(Arc::new(space)));
        });
        assert_eq!(host.wire(), "p2");
        shell("ip address add 10.77.0.1/24 dev p2");
        host.begin();
        host.end();
    });
    if let Err(panic) = test.join() {
        std::panic::resume_unwind(panic);
    }
}

fn cannot() -> Option<String> {
    let own = std::fs::metadata("/proc/self").expect("/proc");
    if own.uid() != 0 {
        return Some("attaching an XDP program needs root".into());
    }
    let lacking = headway_xsk::missing();
    let needs = net::missing().map(str::to_owned);
    needs.or_else(|| (!lacking.is_empty()).then(|| lacking.join("; ")))
}

/// A server of one worker that answers with its number and the request's body.
fn server(number: u8, at: SocketAddr) -> Server {
    Server::builder()
        .policy("c-fcfs")
        .class("short", Duration::from_micros(1))
        .class("long", Duration::from_micros(100))
        .workers(1)
        .pin(Pin::Off)
        .handler(move |call| {
            let answer = [&[number], call.payload()].concat();
            call.reply(&answer);
        })
        .listen_udp(at)
        .start()
        .expect("a server")
}

/// A switch's counts, and the requests that it still has.
type Ended = (PacketCounts, usize);

/// The message of a switch's thread once it has its port.
struct Begun {
    at: SocketAddr,
    stopper: SwitchStopper,
}

/// The arguments of a switch's thread.
struct SwitchPlan {
    policy: Dynamic,
    servers: Vec<SocketAddr>,
    limits: SwitchLimits,
    clock: Clock,
    tables: Arc<SwitchTables>,
    stopped: Arc<AtomicBool>,
}

impl SwitchPlan {
    fn run(self, place: &Place, begun: &Sender<Begun>) -> Ended {
        match place {
            Place::Loopback => self.run_on(UdpPort::bind(LOOPBACK).unwrap(), begun),
            Place::AllAddresses(listen) => self.run_on(UdpPort::bind(*listen).unwrap(), begun),
            Place::Device(space) => {
                nix::sched::setns(space, nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
                let port = XskUdpPort::open("p2", 7000).expect("AF_XDP");
                let host = LinkedHost {
                    ip: SERVERS.ip(),
                    mac: MacAddress(host_mac(HOST)),
                };
                port.named_hosts().set(vec![host]);
                self.run_on(port, begun)
            }
        }
    }

    fn run_on(self, port: impl PacketPort, begun: &Sender<Begun>) -> Ended {
        let servers = ServerAddresses::new(&self.servers).unwrap();
        let mut switch = PortSwitch::on(port, self.policy, servers, self.limits, self.clock)
            .with_tables(self.tables);
        let has_begun = Begun {
            at: switch.local_addr(),
            stopper: switch.stopper(&self.stopped),
        };
        begun.send(has_begun).expect("the test waits");
        switch.run(&self.stopped);
        let lost = switch.lost();
        let has_all = switch.local_addr().ip().is_unspecified();
        assert_eq!(lost.other_source, has_all.then_some(0));
        assert_eq!((lost.unsent, lost.rejected.unwrap_or(0)), (0, 0));
        (*switch.switch().counts(), switch.switch().under_way())
    }
}

/// A switch before `count` servers, in a thread of its own.
struct LiveRack {
    servers: Vec<Option<Server>>,
    place: Place,
    at: SocketAddr,
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<Ended>,
    stopper: SwitchStopper,
    /// Has the switch's report.
    tables: Arc<SwitchTables>,
}

impl LiveRack {
    fn start(place: &Place, spec: &str, count: u8, clock: Clock) -> Self {
        let servers = (0..count).map(|number| Some(server(number, place.servers())));
        let servers: Vec<_> = servers.collect();
        let addresses = servers.iter().flatten();
        let addresses = addresses.map(|server| server.local_addr().unwrap());
        let stopped = Arc::new(AtomicBool::new(false));
        let tables = Arc::new(SwitchTables::new(2));
        let plan = SwitchPlan {
            policy: Dynamic(policy(spec, servers.len())),
            servers: addresses.collect(),
            limits: SwitchLimits {
                held: ROOM,
                answer_ns: ANSWER_NS,
                ..SwitchLimits::new(2)
            },
            clock,
            tables: Arc::clone(&tables),
            stopped: Arc::clone(&stopped),
        };
        let (begun, has_begun) = channel();
        let there = place.clone();
        let thread = std::thread::spawn(move || plan.run(&there, &begun));
        let Begun { at, stopper } = has_begun.recv().expect("the switch begins");
        Self {
            servers,
            place: place.clone(),
            at,
            stopped,
            thread,
            stopper,
            tables,
        }
    }

    fn client(&self) -> UdpSocket {
        self.client_of(self.at)
    }

    /// A client that asks the switch at this address, and hears no other.
    fn client_of(&self, asked: SocketAddr) -> UdpSocket {
        let socket = UdpSocket::bind(self.place.clients()).unwrap();
        socket.connect(asked).unwrap();
        socket.set_read_timeout(Some(FOREVER)).unwrap();
        socket
    }

    /// The switch's counts, and the requests that it still has.
    fn stop(self) -> Ended {
        self.stopper.stop();
        assert!(self.stopped.load(Ordering::Acquire));
        self.thread.join().unwrap()
    }
}

/// Sends `requests` requests, `window` at a time, and returns each server's number of answers.
fn ask(client: &UdpSocket, requests: u32, window: u32) -> [u32; 4] {
    let mut by_server = [0; 4];
    let mut buffer = [0; 64];
    for first in (0..requests).step_by(window as usize) {
        for index in first..first + window {
            client
                .send(&request((index % 2) as u8, index, &index.to_le_bytes()))
                .unwrap();
        }
        let mut answered = vec![false; window as usize];
        for _ in 0..window {
            let len = received(client, &mut buffer);
            let answer = header(&buffer[..len]);
            let place = (answer.index - first) as usize;
            assert!(
                !std::mem::replace(&mut answered[place], true),
                "answered twice"
            );
            assert_eq!(answer.flag.status(), Status::Ok);
            assert_eq!(answer.flag.clone_role(), CloneRole::None);
            assert_eq!(answer.class, (answer.index % 2) as u8);
            assert_eq!(buffer[HEADER_BYTES + 1..len], answer.index.to_le_bytes());
            by_server[usize::from(buffer[HEADER_BYTES])] += 1;
        }
    }
    by_server
}

#[test]
fn every_request_is_answered_once_whatever_the_policy() {
    answer_once(&Place::Loopback);
}

#[test]
fn every_request_is_answered_once_whatever_the_policy_by_af_xdp() {
    behind_device("every request", answer_once);
}

fn answer_once(place: &Place) {
    for spec in [
        "random",
        "round-robin",
        "racksched",
        "r2p2",
        "draconis",
        "netclone",
        "horus",
        "pallas",
    ] {
        let rack = LiveRack::start(place, spec, 3, Clock::global());
        let (one, two) = (rack.client(), rack.client());
        let other = std::thread::spawn(move || ask(&two, 400, 4));
        let mine = ask(&one, 400, 4);
        let theirs = other.join().unwrap();
        if spec == "round-robin" {
            let split: Vec<u32> = mine.iter().zip(theirs).map(|(a, b)| a + b).collect();
            assert_eq!(split, [267, 267, 266, 0], "exact turns");
        }
        let (counts, _) = rack.stop();
        assert_eq!((counts.requests, counts.answered), (800, 800), "{spec}");
        assert_eq!(
            (counts.dropped(), counts.shed, counts.expired),
            (0, 0, 0),
            "{spec}"
        );
        assert!(counts.filtered <= counts.cloned, "{spec}");
        assert_eq!(counts.cloned > 0, spec == "netclone", "{spec}");
    }
}

#[test]
fn packets_keep_their_order_both_ways() {
    keep_order(&Place::Loopback);
}

#[test]
fn packets_keep_their_order_both_ways_by_af_xdp() {
    behind_device("order", keep_order);
}

/// The kernel's routes would have each answer come from 127.0.0.1.
#[test]
fn an_answer_comes_from_the_address_that_was_asked() {
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let place = Place::AllAddresses(listen.parse().unwrap());
        let rack = LiveRack::start(&place, "round-robin", 2, Clock::global());
        let clients: Vec<UdpSocket> = [1, 2, 1, 3]
            .into_iter()
            .map(|host| rack.client_of(SocketAddr::from(([127, 0, 0, host], rack.at.port()))))
            .collect();
        for client in &clients {
            assert_eq!(ask(client, 64, 16), [32, 32, 0, 0], "{listen}");
        }
        let (counts, _) = rack.stop();
        assert_eq!((counts.requests, counts.answered), (256, 256), "{listen}");
    }
}

/// Waits for a datagram, and repeats a wait that the system interrupted.
fn received(client: &UdpSocket, buffer: &mut [u8]) -> usize {
    uninterrupted(|| client.recv(buffer)).expect("an answer")
}

/// A server of one worker answers in the order in which it is asked, so its answers tell the order of both ways.
fn keep_order(place: &Place) {
    let rack = LiveRack::start(place, "round-robin", 3, Clock::global());
    let client = rack.client();
    let (mut last, mut buffer) = ([None; 3], [0; 64]);
    for first in (0..3000u32).step_by(30) {
        for index in first..first + 30 {
            client.send(&request(0, index, b"")).unwrap();
        }
        for _ in 0..30 {
            let length = received(&client, &mut buffer);
            let server = usize::from(buffer[HEADER_BYTES..length][0]);
            let index = header(&buffer[..length]).index;
            assert!(last[server] < Some(index), "{index} after {last:?}");
            last[server] = Some(index);
        }
    }
    assert_eq!(rack.stop().0.answered, 3000);
}

#[test]
fn a_server_that_dies_takes_only_what_it_was_sent() {
    lose_only_what_it_held::<0>(&Place::Loopback);
}

#[test]
fn a_server_that_dies_takes_only_what_it_was_sent_by_af_xdp() {
    behind_device("a server that dies", lose_only_what_it_held::<1>);
}

/// The switch's time stands still until the test moves it, so no request expires because its server waits for a core.
fn lose_only_what_it_held<const TEST: usize>(place: &Place) {
    let clock = Clock::given(given_ns::<TEST>);
    let mut rack = LiveRack::start(place, "round-robin", 2, clock);
    let client = rack.client();
    assert_eq!(ask(&client, 100, 2), [50, 50, 0, 0]);
    let dead = rack.servers[1].take().unwrap();
    dead.shutdown(Duration::from_secs(5)).unwrap();
    let mut buffer = [0; 64];
    for index in 0..100 {
        client.send(&request(0, index, b"")).unwrap();
        // Every other request goes to the dead server.
        if index % 2 == 0 {
            let len = received(&client, &mut buffer);
            assert_eq!(buffer[HEADER_BYTES..len], [0]);
        }
    }
    // The switch forgets the lost requests, and counts them.
    TIMES_NS[TEST].fetch_add(ANSWER_NS, Ordering::AcqRel);
    let end = Instant::now() + FOREVER;
    while rack.tables.report().counts.expired < 50 {
        assert!(Instant::now() < end, "{:?}", rack.tables.report());
        TIMES_NS[TEST].fetch_add(1_000_000, Ordering::AcqRel);
        std::thread::sleep(Duration::from_micros(100));
    }
    let (counts, left) = rack.stop();
    assert_eq!((counts.expired, left), (50, 0));
    assert_eq!((counts.requests, counts.answered), (200, 150));
}

#[test]
fn a_port_in_use_is_refused_with_what_to_do() {
    let taken = UdpSocket::bind(LOOPBACK).unwrap();
    let servers = ServerAddresses::new(&["127.0.0.1:9".parse().unwrap()]).unwrap();
    let at = taken.local_addr().unwrap();
    let refused = UdpSwitch::bind(
        at,
        Dynamic(policy("random", 1)),
        servers,
        SwitchLimits::new(2),
        Clock::global(),
    );
    let error = refused.err().expect("the port is taken").to_string();
    assert!(error.contains("another process has the port"), "{error}");
}
