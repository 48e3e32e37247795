//! Answers that a client forges in the name of the server that was asked, with the right index: no plane of the switch passes them on, since they come
//! by another interface than the server's.

mod common;

use common::net::*;
use common::settings::{settings, tables_over};
use common::*;
use headway_machine::Clock;
use headway_net::header::{Flag, HEADER_BYTES, Header, Status};
use headway_policy::ClassHint;
use headway_policy::rack::systems::{self, RackSystem, RackVisit};
use headway_policy::rack::{RackShape, ServerId, Switch};
use headway_rack::{
    PacketCounts, ServerAddresses, ServerInterfaces, SwitchLimits, SwitchStopper, UdpSwitch,
};
use headway_xdp::{Mode, Neighbour, XdpMode, XdpSwitch, XdpSwitchConfig, interface_to};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

const CLIENT: u8 = 2;
const SERVER: u8 = 10;
const REQUESTS: usize = 200;

fn at(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 77, 0, host], port))
}

const SWITCH_PORT: u16 = 7777;
const SERVICE_PORT: u16 = 6000;

fn bound(at: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(at).expect("the port");
    let patience = Some(Duration::from_secs(60));
    socket.set_read_timeout(patience).expect("a timeout");
    socket
}

/// Sends requests, forges the answer of each, and returns the bodies of the answers that it gets.
fn ask_and_forge(asked: &Receiver<Header>, forged: &Sender<()>) -> Vec<Vec<u8>> {
    shell(&format!("ip address add 10.77.0.{SERVER}/32 dev lo"));
    let (client, thief) = (bound(at(CLIENT, 9000)), bound(at(SERVER, SERVICE_PORT)));
    let switch = at(1, SWITCH_PORT);
    for index in 0..REQUESTS as u32 {
        let header = Header {
            class: 0,
            flag: Flag::REQUEST,
            index,
            time_ns: 0,
        };
        client.send_to(&header.encode(), switch).expect("sent");
        let asked = asked.recv().expect("the server tells");
        let answer = asked.response(Status::Ok, 1_000).encode();
        let answer = [&answer[..], b"forged"].concat();
        thief.send_to(&answer, switch).expect("sent");
        let handed_back = Header {
            flag: Flag::REQUEST.with_bounced(true),
            ..asked
        };
        let handed_back = handed_back.encode();
        thief.send_to(&handed_back, switch).expect("sent");
        forged.send(()).expect("the server waits");
    }
    let mut buffer = [0; 64];
    let mut answer = |_| {
        let length = client.recv(&mut buffer).expect("an answer to each request");
        buffer[HEADER_BYTES..length].to_vec()
    };
    (0..REQUESTS).map(&mut answer).collect()
}

/// Tells that it listens, then each request that it gets, and answers it when the forged answer is on its way.
fn serve(listens: &Sender<()>, asked: &Sender<Header>, forged: &Receiver<()>) {
    let socket = bound(at(SERVER, SERVICE_PORT));
    listens.send(()).expect("the test waits");
    let mut buffer = [0; 64];
    for _ in 0..REQUESTS {
        let (length, from) = socket.recv_from(&mut buffer).expect("a request");
        let (header, _) = Header::parse(&buffer[..length]).expect("a header");
        asked.send(header).expect("the client waits");
        forged.recv().expect("the client forges");
        let answer = header.response(Status::Ok, 1_000).encode();
        let answer = [&answer[..], b"genuine"].concat();
        socket.send_to(&answer, from).expect("sent");
    }
}

/// Counts of the switch: answers passed on, and packets dropped for their side.
type Counted = (u64, u64);

/// The attack, on a switch in this thread's namespace. `start` starts it, and returns a function that ends it.
fn attacked<End: FnOnce() -> Counted>(start: impl FnOnce() -> End) {
    enter_namespace();
    let ((tell, asked), (forged, wait), (ready, listens)) = (channel(), channel(), channel());
    let client = Host::start(CLIENT, move || ask_and_forge(&asked, &forged));
    let server = Host::start(SERVER, move || serve(&ready, &tell, &wait));
    for interface in [client.wire(), server.wire()] {
        let number = &interface[1..];
        // Where the kernel looks for the way back itself, it drops what is forged.
        shell(&format!(
            "ip route add 10.77.0.{number} dev {interface}
             echo 0 > /proc/sys/net/ipv4/conf/{interface}/rp_filter"
        ));
    }
    shell(
        "ip address add 10.77.0.1/32 dev lo
         echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter",
    );
    let end = start();
    server.begin();
    // What comes to a port that nobody has is dropped.
    listens.recv().expect("the server listens");
    client.begin();
    let bodies = client.end();
    server.end();
    let genuine = bodies.iter().filter(|body| *body == b"genuine").count();
    assert_eq!(genuine, REQUESTS, "the others are forged");
    assert_eq!(end(), (REQUESTS as u64, 2 * REQUESTS as u64));
}

/// Runs a test in a thread, and so in namespaces that end with it; prints the reason where that is impossible.
fn in_namespaces(test: &str, body: impl FnOnce() + Send + 'static) {
    if let Some(why) = missing() {
        println!("SKIPPED {test}: {why}");
        return;
    }
    if let Err(panic) = std::thread::spawn(body).join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn the_switch_in_the_kernel_hears_servers_on_their_side_alone() {
    let test = "forged answers to the switch in the kernel";
    let Some(objects) = objects(test) else {
        return;
    };
    in_namespaces(test, move || {
        attacked(|| {
            let config = XdpSwitchConfig {
                own_ip4: Some([10, 77, 0, 1].into()),
                own_ip6: None,
                ..settings(Mode::Nat)
            };
            let mut switch = XdpSwitch::load(&objects.rack, &config).expect("the program loads");
            let server = Neighbour {
                address: at(SERVER, SERVICE_PORT),
                mac: host_mac(SERVER),
                ifindex: ifindex(&format!("p{SERVER}")),
                own_mac: switch_mac(SERVER),
            };
            let tables = tables_over(&[1], &[server]);
            switch.publish(&tables).expect("published");
            for host in [CLIENT, SERVER] {
                let interface = format!("p{host}");
                switch
                    .attach(&interface, XdpMode::Driver)
                    .expect("attached");
            }
            move || {
                let counts = switch.registers().expect("registers").counts;
                (counts.answered, counts.wrong_side)
            }
        });
    });
}

/// Starts the switch in user space under any policy.
struct Starter;

impl RackVisit for Starter {
    type Output = (SwitchStopper, JoinHandle<PacketCounts>);

    fn visit<S: Switch + Send + 'static>(self, system: RackSystem<S>) -> Self::Output {
        let servers = [at(SERVER, SERVICE_PORT)];
        let interfaces = ServerInterfaces::unknown(1);
        let leads = interface_to(servers[0].ip()).expect("a route");
        interfaces.set(ServerId(0), leads.expect("another machine"));
        let mut switch = UdpSwitch::bind(
            at(1, SWITCH_PORT),
            system.switch,
            ServerAddresses::new(&servers).expect("a server"),
            SwitchLimits::new(1),
            Clock::global(),
        )
        .expect("the switch's port")
        .hearing_servers_by(Arc::new(interfaces));
        let stopped = Arc::new(AtomicBool::new(false));
        let stopper = switch.stopper(&stopped);
        let running = std::thread::spawn(move || {
            switch.run(&stopped);
            *switch.switch().counts()
        });
        (stopper, running)
    }
}

#[test]
fn the_switch_in_user_space_hears_servers_on_their_side_alone() {
    in_namespaces("forged answers to the switch in user space", || {
        attacked(|| {
            let shape = RackShape {
                cores: vec![1],
                types: vec![ClassHint::new(1e4, 1.0)],
                room: 0,
                seed: 1,
            };
            let policy = "round-robin".parse().expect("a policy");
            let started = systems::with(&policy, &shape, Starter).expect("a switch");
            let (stopper, running) = started;
            move || {
                stopper.stop();
                let counts = running.join().expect("the switch");
                (counts.answered, counts.wrong_side)
            }
        });
    });
}
