//! The paths from the client to the servers.

use crate::net::{Host, enter_namespace, host_mac, ifindex, shell, switch_mac};
use headway_machine::Clock;
use headway_net::header::{Header, Status};
use headway_policy::ClassHint;
use headway_policy::rack::{Cloning, Demand, Grouping, RackLayout, Shaper, Turns};
use headway_rack::{PortSwitch, ServerAddresses, SwitchLimits, SwitchStopper, UdpSwitch};
use headway_xdp::{Mode, Neighbour, XdpMode, XdpSwitch, XdpSwitchConfig, tables_of};
use headway_xsk::{LinkedHost, MacAddress, XskUdpPort};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

const CLIENT: u8 = 2;
const SERVERS: [u8; 4] = [10, 11, 12, 13];
const PORT: u16 = 6000;
/// Client and servers of the switch on a device's packets, which has a single device.
const BEHIND_DEVICE: u8 = 20;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    /// A wire from the client to one server.
    Wire,
    /// The kernel forwards to one server.
    Forwarding,
    /// The kernel's own balancer: each flow to the next server.
    Nftables,
    XdpNat,
    XdpDirect,
    /// A program that only relays, to one server.
    Relay,
    UserSpace,
    AfXdp,
}

pub(crate) const PATHS: [Path; 8] = [
    Path::Wire,
    Path::Forwarding,
    Path::Nftables,
    Path::XdpNat,
    Path::XdpDirect,
    Path::Relay,
    Path::UserSpace,
    Path::AfXdp,
];

impl Path {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Path::Wire => "a wire",
            Path::Forwarding => "the kernel's forwarding, no balancer",
            Path::Nftables => "nftables, numgen, DNAT",
            Path::XdpNat => "XDP, full translation",
            Path::XdpDirect => "XDP, direct",
            Path::Relay => "a bare UDP relay",
            Path::UserSpace => "the user-space switch",
            Path::AfXdp => "the same by AF_XDP, one device",
        }
    }
}

/// A path that is open until this is dropped.
pub(crate) struct Open {
    /// The address that the client sends to.
    pub(crate) address: SocketAddr,
    pub(crate) path: Path,
    _switch: Option<XdpSwitch>,
    _thread: Option<Running>,
}

/// A thread that ends when this is dropped.
struct Running {
    stopped: Arc<AtomicBool>,
    wake: Option<SwitchStopper>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        if let Some(stopper) = &self.wake {
            stopper.stop();
        }
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// The namespaces and their wires. This thread is in the switch's.
pub(crate) struct Rack {
    wired: Ends,
    behind_device: Ends,
    /// The hosts, which live as long as this.
    _hosts: Vec<Sender<()>>,
}

/// A client and the servers that it asks.
pub(crate) struct Ends {
    pub(crate) client: UdpSocket,
    servers: Vec<UdpSocket>,
}

impl Ends {
    fn new(client: UdpSocket, servers: Vec<UdpSocket>) -> Self {
        for socket in servers.iter().chain([&client]) {
            socket.set_nonblocking(true).expect("a socket");
        }
        Self { client, servers }
    }

    /// Answers the requests that wait at servers.
    pub(crate) fn serve(&self) {
        let mut buffer = [0; 64];
        for socket in &self.servers {
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let (header, _) = Header::parse(&buffer[..length]).expect("a header");
                let response = header.response(Status::Ok, 1_000).encode();
                socket.send_to(&response, from).expect("sent");
            }
        }
    }
}

/// An address of the wire behind the device.
fn behind(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 80, 0, host], port))
}

fn at(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 77, 0, host], port))
}

fn stay_on_cpu(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu).expect("a processor's number");
    sched_setaffinity(Pid::from_raw(0), &set).expect("the processor");
}

/// A host that binds a socket in its namespace and hands it out.
fn host(number: u8, port: u16) -> (Host<()>, std::sync::mpsc::Receiver<UdpSocket>, Sender<()>) {
    let ((give, socket), (live, end)) = (channel(), channel());
    let host = Host::start(number, move || {
        let any = SocketAddr::from(([0, 0, 0, 0], port));
        let socket = UdpSocket::bind(any).expect("the port");
        give.send(socket).expect("the bench waits");
        // Until the bench ends.
        let _: Result<(), _> = end.recv();
    });
    (host, socket, live)
}

impl Rack {
    pub(crate) fn build() -> Self {
        enter_namespace();
        shell("echo 1 > /proc/sys/net/ipv4/ip_forward; ip address add 10.77.0.1/32 dev lo");
        let mut hosts = Vec::new();
        let mut wire = |number, port| {
            let (host, socket, live) = host(number, port);
            host.wire();
            let mac = host_mac(number).map(|byte| format!("{byte:02x}")).join(":");
            shell(&format!(
                "ip route add 10.77.0.{number} dev p{number}; ip neigh add 10.77.0.{number} lladdr {mac} dev p{number}"
            ));
            let id = host.task();
            host.begin();
            hosts.push(live);
            (socket.recv().expect("the host's socket"), id)
        };
        let servers: Vec<_> = SERVERS.map(|number| wire(number, PORT)).into();
        let (client, client_id) = wire(CLIENT, 9000);
        // The wire past the switch, to the first server.
        let switch = switch_mac(CLIENT)
            .map(|byte| format!("{byte:02x}"))
            .join(":");
        let (own, server_id) = (std::process::id(), servers[0].1);
        shell(&format!(
            "nsenter --net=/proc/{own}/task/{client_id}/ns/net sh -ec '
                ip link add d0 type veth peer name d0 netns {server_id}
                ip address add 10.78.0.2/24 dev d0; ip link set dev d0 up; ethtool -K d0 gro on tx off
                ip neigh add 10.77.0.10 lladdr {switch} dev e0'
             nsenter --net=/proc/{own}/task/{server_id}/ns/net sh -ec '
                ip address add 10.78.0.10/24 dev d0; ip link set dev d0 up; ethtool -K d0 gro on tx off'"
        ));
        shell(
            "nft -f - <<'END'
table ip balance {
  chain to_servers {
    type nat hook prerouting priority dstnat;
    ip daddr 10.77.0.1 udp dport 7778 dnat to numgen inc mod 4 map { 0 : 10.77.0.10, 1 : 10.77.0.11, 2 : 10.77.0.12, 3 : 10.77.0.13 } : 6000
  }
}
END",
        );
        let servers: Vec<_> = servers.into_iter().map(|(socket, _)| socket).collect();
        let (behind_device, live) = behind_device();
        hosts.push(live);
        stay_on_cpu(0);
        Self {
            wired: Ends::new(client, servers),
            behind_device,
            _hosts: hosts,
        }
    }

    /// The client and the servers of a path.
    pub(crate) fn ends(&self, path: Path) -> &Ends {
        match path {
            Path::AfXdp => &self.behind_device,
            _ => &self.wired,
        }
    }

    /// Opens a path and starts everything that it needs.
    pub(crate) fn open(&self, path: Path, object: &[u8]) -> Open {
        let (address, switch, thread) = match path {
            Path::Wire => (SocketAddr::from(([10, 78, 0, 10], PORT)), None, None),
            Path::Forwarding => (at(SERVERS[0], PORT), None, None),
            Path::Nftables => (at(1, 7778), None, None),
            Path::XdpNat => (at(1, 7777), Some(attach(object, Mode::Nat)), None),
            Path::XdpDirect => (at(1, 7777), Some(attach(object, Mode::Direct)), None),
            Path::Relay => (at(1, 7780), None, Some(relay())),
            Path::UserSpace => (at(1, 7779), None, Some(user_space())),
            Path::AfXdp => (behind(1, 7781), None, Some(af_xdp())),
        };
        Open {
            address,
            path,
            _switch: switch,
            _thread: thread,
        }
    }
}

fn shaper() -> Shaper {
    let demand = Demand::declared(&[ClassHint::new(1e4, 1.0)]);
    let layout = RackLayout::new(&[1; 4], 1).updated(&[4], &[None]);
    let mut shaper = Shaper::new(1, 4, Turns::Even, Cloning::Off, 1);
    shaper.install(&Grouping::new(&[0], &demand), &layout, &demand);
    shaper
}

fn attach(object: &[u8], mode: Mode) -> XdpSwitch {
    let config = XdpSwitchConfig {
        own_ip4: Some([10, 77, 0, 1].into()),
        own_ip6: None,
        port: 7777,
        types: 1,
        mode,
        cloning: Cloning::Off,
        overflows: false,
        unfinished_checksums: false,
        answer: Duration::from_secs(5),
    };
    let neighbours = SERVERS.map(|number| Neighbour {
        address: at(number, PORT),
        mac: host_mac(number),
        ifindex: ifindex(&format!("p{number}")),
        own_mac: switch_mac(number),
    });
    let mut switch = XdpSwitch::load(object, &config).expect("the program loads");
    let tables = tables_of(&shaper(), 1, &[0], &neighbours).expect("they fit");
    switch.publish(&tables).expect("published");
    for number in SERVERS.into_iter().chain([CLIENT]) {
        let interface = format!("p{number}");
        switch
            .attach(&interface, XdpMode::Driver)
            .expect("attached");
    }
    switch
}

/// Runs `work` on the second CPU, in this thread's namespace.
fn run(
    stopped: &Arc<AtomicBool>,
    wake: Option<SwitchStopper>,
    work: impl FnOnce(&AtomicBool) + Send + 'static,
) -> Running {
    let flag = Arc::clone(stopped);
    let thread = std::thread::spawn(move || {
        stay_on_cpu(1);
        work(&flag);
    });
    Running {
        stopped: Arc::clone(stopped),
        wake,
        thread: Some(thread),
    }
}

fn user_space() -> Running {
    let servers = ServerAddresses::new(&SERVERS.map(|number| at(number, PORT))).expect("servers");
    let mut switch = UdpSwitch::bind(
        at(1, 7779),
        shaper(),
        servers,
        SwitchLimits::new(1),
        Clock::global(),
    )
    .expect("the port");
    let stopped = Arc::default();
    let stopper = switch.stopper(&stopped);
    run(&stopped, Some(stopper), move |stopped| switch.run(stopped))
}

/// A host with the client and all servers, and the device that leads there.
fn behind_device() -> (Ends, Sender<()>) {
    let ((give, sockets), (live, end)) = (channel(), channel());
    let host = Host::start(BEHIND_DEVICE, move || {
        let ports = [9000].into_iter().chain((0..).map(|number| PORT + number));
        let bind = |port| UdpSocket::bind(behind(BEHIND_DEVICE, port)).expect("the port");
        let bound: Vec<_> = ports.take(1 + SERVERS.len()).map(bind).collect();
        give.send(bound).expect("the bench waits");
        // Until the bench ends.
        let _: Result<(), _> = end.recv();
    });
    let device = host.wire();
    let text = |mac: [u8; 6]| mac.map(|byte| format!("{byte:02x}")).join(":");
    let (own, id) = (std::process::id(), host.task());
    shell(&format!(
        "ip address add 10.80.0.1/24 dev {device}
         nsenter --net=/proc/{own}/task/{id}/ns/net sh -ec '
            ip address add 10.80.0.{BEHIND_DEVICE}/24 dev e0
            ip neigh add 10.80.0.1 lladdr {} dev e0'",
        text(switch_mac(BEHIND_DEVICE)),
    ));
    host.begin();
    let mut bound: Vec<_> = sockets.recv().expect("the host's sockets");
    let client = bound.remove(0);
    (Ends::new(client, bound), live)
}

fn af_xdp() -> Running {
    let servers: Vec<_> = (0..SERVERS.len() as u16)
        .map(|number| behind(BEHIND_DEVICE, PORT + number))
        .collect();
    let port = XskUdpPort::open(&format!("p{BEHIND_DEVICE}"), 7781).expect("the device's port");
    port.named_hosts().set(vec![LinkedHost {
        ip: servers[0].ip(),
        mac: MacAddress(host_mac(BEHIND_DEVICE)),
    }]);
    let servers = ServerAddresses::new(&servers).expect("servers");
    let mut switch = PortSwitch::on(
        port,
        shaper(),
        servers,
        SwitchLimits::new(1),
        Clock::global(),
    );
    let stopped = Arc::default();
    let stopper = switch.stopper(&stopped);
    run(&stopped, Some(stopper), move |stopped| switch.run(stopped))
}

/// To the first server and back: the minimum for a program between two sockets. It polls for packets without blocking, as the switch does.
fn relay() -> Running {
    let socket = UdpSocket::bind(at(1, 7780)).expect("the port");
    socket.set_nonblocking(true).expect("a socket");
    run(&Arc::default(), None, move |stopped| {
        let (server, mut client) = (at(SERVERS[0], PORT), at(CLIENT, 9000));
        let mut buffer = [0; 2048];
        while !stopped.load(Ordering::Acquire) {
            let Ok((length, from)) = socket.recv_from(&mut buffer) else {
                continue;
            };
            let to = if from == server {
                client
            } else {
                client = from;
                server
            };
            socket.send_to(&buffer[..length], to).expect("sent");
        }
    })
}
