//! VLAN tags that senders leave to hardware: between veth pairs they then lie beside the packet, and none may be lost on the way.

mod common;

use common::net::*;
use common::settings::{settings, tables_over};
use common::vlan::{leave_tags_to_hardware, put_into_vlan};
use common::*;
use headway_net::header::{Flag, Header, Status};
use headway_xdp::{
    HiddenTags, Mode, Neighbour, SwitchPins, XdpCounts, XdpMode, XdpSwitch, XdpSwitchConfig,
    takes_redirected,
};
use std::net::{SocketAddr, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const CLIENT: u8 = 2;
const SERVER: u8 = 10;
const REQUESTS: u64 = 20;
const SERVICE_PORT: u16 = 6000;

fn at(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 77, 0, host], port))
}

fn bound(at: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(at).expect("the port");
    let patience = Some(Duration::from_secs(60));
    socket.set_read_timeout(patience).expect("a timeout");
    socket
}

/// Sends requests at each order, which says whether they are answered.
fn ask(orders: &Receiver<bool>, done: &Sender<()>) {
    let socket = bound(at(CLIENT, 9000));
    let mut buffer = [0; 64];
    for answered in orders {
        for index in 0..REQUESTS as u32 {
            let header = Header {
                class: 0,
                flag: Flag::REQUEST,
                index,
                time_ns: 0,
            };
            socket.send_to(&header.encode(), at(1, 7777)).expect("sent");
            if answered {
                let length = socket.recv(&mut buffer).expect("an answer in the VLAN");
                let (answer, _) = Header::parse(&buffer[..length]).expect("a header");
                assert_eq!(answer.index, index);
            }
        }
        done.send(()).expect("the test waits");
    }
}

/// Answers so many requests.
fn serve(requests: u64, ready: &Sender<()>) {
    let socket = bound(at(SERVER, SERVICE_PORT));
    ready.send(()).expect("the test waits");
    let mut buffer = [0; 64];
    for _ in 0..requests {
        let (length, from) = socket.recv_from(&mut buffer).expect("a request");
        let (header, _) = Header::parse(&buffer[..length]).expect("a header");
        let answer = header.response(Status::Ok, 1_000).encode();
        socket.send_to(&answer, from).expect("sent");
    }
}

/// Client and server in VLAN 5, and the switch between them.
struct Vlan {
    client: Host<()>,
    server: Host<()>,
    orders: Sender<bool>,
    done: Receiver<()>,
}

impl Vlan {
    /// The server gets so many requests.
    fn start(requests: u64) -> Self {
        enter_namespace();
        let ((orders, wait), (tell, done), (ready, listens)) = (channel(), channel(), channel());
        let client = Host::start(CLIENT, move || ask(&wait, &tell));
        let server = Host::start(SERVER, move || serve(requests, &ready));
        client.wire();
        server.wire();
        for host in [&client, &server] {
            put_into_vlan(host.task());
        }
        client.begin();
        server.begin();
        listens.recv().expect("the server has its port");
        Self {
            client,
            server,
            orders,
            done,
        }
    }

    /// Whether the senders leave their tags to hardware.
    fn offload(&self, client: bool, server: bool) {
        leave_tags_to_hardware(self.client.task(), client);
        leave_tags_to_hardware(self.server.task(), server);
    }

    fn ask(&self, answered: bool) {
        self.orders.send(answered).expect("the client waits");
        self.done.recv().expect("the client asks");
    }

    fn end(self) {
        drop(self.orders);
        self.client.end();
        self.server.end();
    }
}

fn config() -> XdpSwitchConfig {
    XdpSwitchConfig {
        own_ip4: Some([10, 77, 0, 1].into()),
        own_ip6: None,
        ..settings(Mode::Nat)
    }
}

/// A switch with tables, before it is attached.
fn switch(object: &[u8]) -> XdpSwitch {
    let mut switch = XdpSwitch::load(object, &config()).expect("the program loads");
    let server = Neighbour {
        address: at(SERVER, SERVICE_PORT),
        mac: host_mac(SERVER),
        ifindex: ifindex(&format!("p{SERVER}")),
        own_mac: switch_mac(SERVER),
    };
    switch
        .publish(&tables_over(&[1], &[server]))
        .expect("published");
    switch
}

/// Requests, answers, and packets with a tag beside them.
fn counted(switch: &XdpSwitch) -> [u64; 3] {
    let XdpCounts {
        requests,
        answered,
        hidden_tag,
        ..
    } = switch.registers().expect("registers").counts;
    [requests, answered, hidden_tag]
}

fn await_counts(switch: &XdpSwitch, expected: [u64; 3]) {
    let begun = Instant::now();
    while counted(switch) != expected {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{:?} {expected:?}",
            counted(switch)
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether this kernel tells of tags beside packets; prints that it does not.
fn tells_of_tags(test: &str) -> bool {
    let tells = takes_redirected("lo").is_some();
    if !tells {
        println!("SKIPPED {test}: it needs Linux 6.3");
    }
    tells
}

/// Runs a test in a thread, and so in namespaces that end with it; prints the reason where that is impossible.
fn in_namespaces(test: &str, body: impl FnOnce(Vec<u8>) + Send + 'static) {
    let Some(objects) = objects(test) else {
        return;
    };
    if !tells_of_tags(test) {
        return;
    }
    if let Some(why) = missing() {
        println!("SKIPPED {test}: {why}");
        return;
    }
    if let Err(panic) = std::thread::spawn(move || body(objects.rack)).join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn in_the_driver_packets_with_a_tag_beside_them_are_dropped_and_counted() {
    in_namespaces("tags beside packets in the driver", |object| {
        let vlan = Vlan::start(3 * REQUESTS);
        let mut switch = switch(&object);
        for host in [CLIENT, SERVER] {
            let tags = switch.attach(&format!("p{host}"), XdpMode::Default);
            assert_eq!(tags.expect("attached"), HiddenTags::Dropped);
        }
        // A tag in the packet goes both ways with it.
        vlan.offload(false, false);
        vlan.ask(true);
        await_counts(&switch, [REQUESTS, REQUESTS, 0]);
        vlan.offload(true, false);
        vlan.ask(false);
        await_counts(&switch, [REQUESTS, REQUESTS, REQUESTS]);
        vlan.offload(false, true);
        vlan.ask(false);
        await_counts(&switch, [2 * REQUESTS, REQUESTS, 2 * REQUESTS]);
        vlan.offload(false, false);
        vlan.ask(true);
        await_counts(&switch, [3 * REQUESTS, 2 * REQUESTS, 2 * REQUESTS]);
        vlan.end();
    });
}

#[test]
fn behind_the_driver_tags_beside_packets_go_with_them() {
    in_namespaces("tags beside packets behind the driver", |object| {
        let vlan = Vlan::start(2 * REQUESTS);
        let mut switch = switch(&object);
        for host in [CLIENT, SERVER] {
            let tags = switch.attach(&format!("p{host}"), XdpMode::Skb);
            assert_eq!(tags.expect("attached"), HiddenTags::Unseen);
        }
        vlan.offload(false, false);
        vlan.ask(true);
        vlan.offload(true, true);
        vlan.ask(true);
        await_counts(&switch, [2 * REQUESTS, 2 * REQUESTS, 0]);
        vlan.end();
    });
}

/// The program that looks beside packets would find other things there.
#[test]
fn where_a_pinned_attachment_runs_decides_which_program_it_gets() {
    in_namespaces("pinned attachments and tags", |object| {
        enter_namespace();
        shell("ip link add pa type veth peer name pb");
        for (mode, tags) in [
            (XdpMode::Skb, HiddenTags::Unseen),
            (XdpMode::Driver, HiddenTags::Dropped),
        ] {
            let pins = || SwitchPins::take(at(1, 7777), Duration::from_secs(60)).expect("pins");
            let load = || XdpSwitch::load_pinned(&object, &config(), pins()).expect("loaded");
            let mut first = load();
            assert_eq!(first.attach("pa", mode).expect("attached"), tags);
            drop(first);
            let mut again = load();
            let in_its_place = again.attach("pa", XdpMode::Default);
            assert_eq!(in_its_place.expect("in its place"), tags);
            again.unpin();
        }
    });
}
