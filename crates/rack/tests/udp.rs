//! The switch on loopback before real servers: what clients see.

mod common;

use common::{Dynamic, ROOM, header, policy, request};
use headway_net::header::{CloneRole, HEADER_BYTES, Status};
use headway_rack::{PacketCounts, ServerAddresses, SwitchLimits, UdpSwitch};
use headway_runtime::{Pin, Server};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);
/// Longer than any of these tests waits for something that comes.
const FOREVER: Duration = Duration::from_secs(60);

/// A server of one worker that answers with its number and what it was asked.
fn server(number: u8) -> Server {
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
        .listen_udp(LOOPBACK)
        .start()
        .expect("a server")
}

/// A switch before `count` servers, in a thread of its own.
struct LiveRack {
    servers: Vec<Option<Server>>,
    at: SocketAddr,
    stopped: Arc<AtomicBool>,
    thread: JoinHandle<(PacketCounts, usize)>,
    stopper: headway_rack::SwitchStopper,
}

impl LiveRack {
    fn start(spec: &str, count: u8, answer_ns: u64) -> Self {
        let servers: Vec<_> = (0..count).map(|number| Some(server(number))).collect();
        let addresses = servers
            .iter()
            .flatten()
            .map(|server| server.local_addr().unwrap());
        let addresses: Vec<SocketAddr> = addresses.collect();
        let limits = SwitchLimits {
            held: ROOM,
            answer_ns,
            ..SwitchLimits::new(2)
        };
        let mut switch = UdpSwitch::bind(
            LOOPBACK,
            Dynamic(policy(spec, servers.len())),
            ServerAddresses::new(&addresses).unwrap(),
            limits,
        )
        .unwrap();
        let stopped = Arc::new(AtomicBool::new(false));
        let stopper = switch.stopper(&stopped);
        let at = switch.local_addr();
        let flag = Arc::clone(&stopped);
        let thread = std::thread::spawn(move || {
            switch.run(&flag);
            (*switch.switch().counts(), switch.switch().under_way())
        });
        Self {
            servers,
            at,
            stopped,
            thread,
            stopper,
        }
    }

    fn client(&self) -> UdpSocket {
        let socket = UdpSocket::bind(LOOPBACK).unwrap();
        socket.connect(self.at).unwrap();
        socket.set_read_timeout(Some(FOREVER)).unwrap();
        socket
    }

    /// What the switch counted, and the requests that it has left.
    fn stop(self) -> (PacketCounts, usize) {
        self.stopper.stop();
        assert!(self.stopped.load(Ordering::Acquire));
        self.thread.join().unwrap()
    }
}

/// Asks so often, `window` requests at a time, and returns how often each server answered.
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
            let len = client.recv(&mut buffer).expect("an answer");
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
        let rack = LiveRack::start(spec, 3, 5_000_000_000);
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

/// A server of one worker answers in the order in which it is asked, so its answers tell the order of both ways.
#[test]
fn packets_keep_their_order_both_ways() {
    let rack = LiveRack::start("round-robin", 3, 5_000_000_000);
    let client = rack.client();
    let (mut last, mut buffer) = ([None; 3], [0; 64]);
    for first in (0..3000u32).step_by(30) {
        for index in first..first + 30 {
            client.send(&request(0, index, b"")).unwrap();
        }
        for _ in 0..30 {
            let length = client.recv(&mut buffer).expect("an answer");
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
    let mut rack = LiveRack::start("round-robin", 2, 50_000_000);
    let client = rack.client();
    assert_eq!(ask(&client, 100, 2), [50, 50, 0, 0]);
    let dead = rack.servers[1].take().unwrap();
    dead.shutdown(Duration::from_secs(5)).unwrap();
    for index in 0..100 {
        client.send(&request(0, index, b"")).unwrap();
        std::thread::sleep(Duration::from_micros(200));
    }
    let mut buffer = [0; 64];
    for _ in 0..50 {
        let len = client
            .recv(&mut buffer)
            .expect("an answer of the other server");
        assert_eq!(buffer[HEADER_BYTES..len], [0]);
    }
    // The switch forgets what was lost, and says how much that was.
    std::thread::sleep(Duration::from_millis(500));
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
    );
    let error = refused.err().expect("the port is taken").to_string();
    assert!(error.contains("another process has the port"), "{error}");
}
