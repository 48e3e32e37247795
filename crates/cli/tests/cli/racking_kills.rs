//! Two hundred processes of a rack are killed, servers and switches, while a client asks and requests are cloned: half of them around the switch in user space,
//! half around the one in the kernel.

use super::agents::{KEY, key_file};
use super::racking_xdp::net::{Host, enter_namespace, shell};
use super::racking_xdp::{CLIENT, LISTEN, await_status, in_namespaces, status, wire_to};
use super::serving::{Serving, count};
use headway_net::header::{Flag, Header};
use serde_json::Value;
use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

const KILLS: usize = 100;
const SERVERS: [u8; 3] = [10, 11, 12];
const INTERFACES: &str = "p2,p10,p11,p12";
const AGENTS: &str = "10.77.0.1:7101";
/// Requests that are sent at once before each kill.
const BURST: u32 = 12;
const TYPES: &str = r#"
[[class]]
name = "short"
share = 0.9
service = { dist = "constant", mean = "100us" }
[[class]]
name = "long"
share = 0.1
service = { dist = "constant", mean = "1ms" }
"#;
const SEED: u64 = 20_261_126;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Plane {
    UserSpace,
    Kernel,
}

/// What happened to a client's requests since it was last told to count anew.
#[derive(Clone, Copy, Default, Debug)]
struct Asked {
    sent: u64,
    answered: u64,
}

enum Order {
    Burst,
    /// All that is still under way is lost with the switch.
    CountAnew,
    Tell,
}

/// Sends bursts by order, and checks that each answer is to a request of its own that has none yet.
fn client(orders: &Receiver<Order>, told: &Sender<Asked>) {
    let socket = UdpSocket::bind("10.77.0.2:0").expect("a socket");
    socket.connect(LISTEN).expect("connected");
    let patience = Some(Duration::from_millis(1));
    socket.set_read_timeout(patience).expect("a timeout");
    let mut asked = Asked::default();
    // The type of each request by its index, until it is answered.
    let (mut waiting, mut next) = (HashMap::new(), SEED as u32);
    let mut buffer = [0; 64];
    loop {
        match orders.recv_timeout(Duration::from_micros(100)) {
            Ok(Order::Burst) => {
                for _ in 0..BURST {
                    let class = (next % 4 == 0).into();
                    let header = Header {
                        class,
                        flag: Flag::REQUEST,
                        index: next,
                        time_ns: if class == 0 { 20_000 } else { 1_000_000 },
                    };
                    // A switch that is not there refuses it.
                    if socket.send(&header.encode()).is_ok() {
                        asked.sent += 1;
                        waiting.insert(next, class);
                    }
                    next = next.wrapping_add(7919);
                }
            }
            Ok(Order::CountAnew) => (asked, waiting) = Default::default(),
            Ok(Order::Tell) => told.send(asked).expect("the test waits"),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
        }
        while let Ok(length) = socket.recv(&mut buffer) {
            let (header, _) = Header::parse(&buffer[..length]).expect("a whole header");
            assert!(header.flag.is_response());
            let class = waiting.remove(&header.index);
            assert_eq!(
                class,
                Some(header.class),
                "another's answer, or a second one"
            );
            asked.answered += 1;
        }
    }
}

/// A server with an agent. Each message kills its process and starts another one.
fn server(number: u8, key: &str, kills: &Receiver<()>, listens: &Sender<()>) {
    let listen = format!("udp://10.77.0.{number}:6000");
    let serve = ["serve", "--listen", &listen, "--app", "spin", "--no-ctl"];
    let worker = ["--workers", "4", "--pin", "off", "--policy", "c-fcfs"];
    let joins = ["--rack", AGENTS, "--rack-key", key];
    let args = [&serve[..], &worker, &joins].concat();
    let mut serving = Serving::start_command(&args);
    listens.send(()).expect("the test waits");
    for () in kills {
        serving.kill();
        serving = Serving::start_command(&args);
        listens.send(()).expect("the test waits");
    }
}

struct KilledServer {
    host: Host<()>,
    kills: Sender<()>,
    listens: Receiver<()>,
}

impl KilledServer {
    fn start(number: u8, key: String) -> Self {
        let ((kills, to_kill), (up, listens)) = (channel(), channel());
        let host = Host::start(number, move || server(number, &key, &to_kill, &up));
        Self {
            host,
            kills,
            listens,
        }
    }

    fn kill(&self) {
        self.kills.send(()).expect("the server's host runs");
        self.listens.recv().expect("the server starts again");
    }
}

/// A client, three servers and the wires between them and the switch.
struct KilledRack {
    plane: Plane,
    servers: Vec<KilledServer>,
    client: Host<()>,
    orders: Sender<Order>,
    told: Receiver<Asked>,
    key: String,
    workload: String,
    ctl: String,
    _folder: tempfile::TempDir,
}

impl KilledRack {
    fn new(plane: Plane) -> Self {
        enter_namespace();
        let folder = tempfile::tempdir().expect("a folder");
        let key = key_file(folder.path(), "key", KEY, 0o600);
        let key = key.to_str().expect("a plain path").to_owned();
        let servers = SERVERS.map(|number| KilledServer::start(number, key.clone()));
        let ((orders, to_do), (tells, told)) = (channel(), channel());
        let client = Host::start(CLIENT, move || client(&to_do, &tells));
        // Servers send to the switch's address, which is on none of the wires.
        shell("ip address add 10.77.0.1/32 dev lo; sysctl -qw net.ipv4.conf.all.rp_filter=0");
        wire_to(
            &servers
                .iter()
                .map(|server| &server.host)
                .collect::<Vec<_>>(),
        );
        wire_to(&[&client]);
        client.begin();
        for server in &servers {
            server.host.begin();
            server.listens.recv().expect("the server starts");
        }
        let workload = folder.path().join("types.toml");
        std::fs::write(&workload, TYPES).expect("the workload");
        let ctl = folder.path().join("rack");
        Self {
            plane,
            servers: servers.into(),
            client,
            orders,
            told,
            key,
            workload: workload.to_str().expect("a plain path").to_owned(),
            ctl: ctl.to_str().expect("a plain path").to_owned(),
            _folder: folder,
        }
    }

    fn start_switch(&self) -> Serving {
        let named = SERVERS.map(|number| format!("10.77.0.{number}:6000,cores=4"));
        let named = named.iter().flat_map(|server| ["--server", server]);
        let rack = ["rack", "--listen", LISTEN, "--ctl", &self.ctl];
        // Two groups, one of which gets the clones of the other's bursts: a second long request within a window is one.
        let policy = "pallas,clone=any,overflow=off,adapt=off,window=200us";
        let policy = ["--policy", policy, "--workload", &self.workload];
        let agents = ["--agents", AGENTS, "--agent-key", &self.key];
        let xdp: &[&str] = match self.plane {
            Plane::UserSpace => &[],
            Plane::Kernel => &["--xdp", INTERFACES],
        };
        let mut args = [&rack[..], &policy, &agents, xdp].concat();
        args.extend(named);
        Serving::start_command(&args)
    }

    fn order(&self, order: Order) {
        self.orders.send(order).expect("the client runs");
    }

    fn asked(&self) -> Asked {
        self.order(Order::Tell);
        self.told.recv().expect("the client runs")
    }

    /// Waits until every copy of a request has come to its one end, and the client has what the switch sent it.
    fn all_is_counted(&self) -> Value {
        await_status(&self.ctl, "all is counted once", |status| {
            let asked = self.asked();
            let counted = |name: &str| count(&status["counts"], name);
            let ends = [
                "answered",
                "filtered",
                "copies_refused",
                "shed",
                "expired",
                "lost",
            ];
            let ends: u64 = ends.into_iter().map(counted).sum();
            counted("requests") == asked.sent
                && counted("answered") + counted("shed") == asked.answered
                && counted("requests") + counted("cloned") == ends
        })
    }

    fn end(self) {
        drop(self.orders);
        self.client.end();
        for server in self.servers {
            drop(server.kills);
            server.host.end();
        }
    }
}

/// A small random generator with the same kills in every run.
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 33) as usize
}

fn kill_and_count(plane: Plane) {
    let rack = KilledRack::new(plane);
    let mut switch = rack.start_switch();
    let (mut state, mut switches, mut servers) = (SEED, 0, 0);
    // Of all switches in user space, each of which counts for itself.
    let mut cloned = 0;
    for round in 0..KILLS {
        rack.order(Order::Burst);
        // Some of the burst is under way, some was answered.
        std::thread::sleep(Duration::from_micros(next(&mut state) as u64 % 3_000));
        if round % 10 != 4 {
            rack.servers[next(&mut state) % SERVERS.len()].kill();
            servers += 1;
            continue;
        }
        if plane == Plane::UserSpace {
            cloned += count(&status(&rack.ctl)["counts"], "cloned");
        }
        switch.kill();
        // These requests reach a switch in the kernel, and none in user space.
        rack.order(Order::Burst);
        rack.asked();
        switch = rack.start_switch();
        if plane == Plane::UserSpace {
            rack.order(Order::CountAnew);
        }
        switches += 1;
    }
    assert_eq!((switches, servers), (KILLS / 10, KILLS - KILLS / 10));
    rack.order(Order::Burst);
    let last = rack.all_is_counted();
    let counts = &last["counts"];
    for fate in ["spoofed", "wrong_side", "truncated", "too_long"] {
        assert_eq!(counts[fate], 0, "{last}");
    }
    cloned += count(counts, "cloned");
    assert!(cloned > 0, "{last}");
    let expired = count(counts, "expired");
    let held = expired > 0 || plane == Plane::UserSpace;
    assert!(held, "killed servers had some: {last}");
    switch.signal(libc::SIGTERM);
    let (code, said) = switch.end();
    assert_eq!(code, Some(0), "{said}");
    rack.end();
}

#[test]
fn a_hundred_kills_around_a_switch_in_user_space_leave_each_request_in_one_count() {
    in_namespaces("kills around headway rack", || {
        kill_and_count(Plane::UserSpace);
    });
}

#[test]
fn a_hundred_kills_around_a_switch_in_the_kernel_leave_each_request_in_one_count() {
    in_namespaces("kills around headway rack --xdp", || {
        kill_and_count(Plane::Kernel);
    });
}
