//! UDP echo over a veth pair in three ways: by bare `AF_XDP` frames, by an application behind a host's daemon that swaps addresses in its lanes, and by one
//! that uses its stack's sockets in user-space threads. It measures round trips one after the other, and requests per second with 64 under way. The client is
//! the same each time, on the kernel's UDP in another namespace, and spins on a core. Where there are three cores the daemon has one of its own, and the
//! application has one; else both share one. In turn, as root: `cargo run --release -p headway-stack --example hosted_echo`.
#![expect(
    unsafe_code,
    reason = "threads in user space move between kthreads by a promise"
)]

#[path = "../../xdp/tests/common/net.rs"]
mod net;

use headway_host::client::{ClientOptions, HostClient};
use headway_host::daemon::{AppNetwork, AppRule, DaemonSettings, HostDaemon};
use headway_kthread::CoreSource;
use headway_machine::Clock;
use headway_policy::host::AppKind;
use headway_rings::lane::{LaneEnds, MOST_PACKET_BYTES, Taken};
use headway_stack::{NetStack, UdpSocket as StackSocket, Uthreads};
use headway_threads::{Migration, Runtime};
use headway_xsk::{HostAddress, MacAddress, XskPort};
use net::{Host, enter_namespace, missing, shell};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
const TRIPS: usize = 10_000;
const WINDOW: usize = 64;
const SPAN: Duration = Duration::from_millis(700);
/// The most requests that a kthread answers before it announces the answers.
const BURST: usize = 64;
const REQUEST: [u8; 64] = [7; 64];
const ROLE: &str = "HEADWAY_ECHO_ROLE";
/// The time that a kthread polls an empty lane before it gives its core back. On the daemon's core it gives it back at once.
const PATIENCE: Duration = Duration::from_micros(2);

#[derive(Clone, Copy, PartialEq, Eq)]
enum EchoPath {
    Bare,
    Lanes,
    Sockets,
}

const PATHS: [(EchoPath, &str); 3] = [
    (EchoPath::Bare, "bare"),
    (EchoPath::Lanes, "lanes"),
    (EchoPath::Sockets, "sockets"),
];

struct EchoResult {
    median: Duration,
    rate: f64,
    /// Requests without an answer for 2 ms, ÷ those with one.
    lost: f64,
}

fn main() -> ExitCode {
    if let Ok(told) = std::env::var(ROLE) {
        play(&told);
    } else if let Some(why) = missing() {
        eprintln!("the echo cannot run here: {why}");
        return ExitCode::from(2);
    } else if !std::thread::spawn(compare).join().expect("it runs") {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Whether no signal ended it. It ends between two measurements, so that nothing of them is left.
fn compare() -> bool {
    let stops = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stops)).expect("it may be handled");
    }
    println!(
        "{} cores; path, p50 of a round trip in µs (÷ bare), requests/s of {WINDOW} under way (÷ bare), share lost: medians of {ROUNDS} rounds in turn",
        cores()
    );
    let mut results = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (at, (path, name)) in PATHS.into_iter().enumerate() {
            if stops.load(Ordering::Relaxed) {
                return false;
            }
            let round = std::thread::spawn(move || measure(path, name));
            results[at].push(round.join().expect("a round"));
        }
    }
    let medians = results.map(|results| {
        let median = |value: fn(&EchoResult) -> f64| {
            let mut values: Vec<f64> = results.iter().map(value).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let trip = median(|one| one.median.as_secs_f64() * 1e6);
        (trip, median(|one| one.rate), median(|one| one.lost))
    });
    let (bare_trip, bare_rate, _) = medians[0];
    for ((_, name), (trip, rate, lost)) in PATHS.into_iter().zip(medians) {
        println!(
            "{name}, {trip:.2} ({:.2}), {rate:.0} ({:.2}), {lost:.4}",
            trip / bare_trip,
            rate / bare_rate
        );
    }
    true
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The core on which the client spins.
fn client_core() -> usize {
    if cores() >= 3 { 2 } else { 0 }
}

fn pin(core: usize) {
    let mut set = nix::sched::CpuSet::new();
    set.set(core).expect("a core");
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).expect("the core");
}

/// An application, killed at the end.
struct EchoProcess(Child);

impl Drop for EchoProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn measure(path: EchoPath, name: &str) -> EchoResult {
    enter_namespace();
    let client = Host::start(2, move || {
        let mac = if path == EchoPath::Bare {
            "02:00:00:00:09:09"
        } else {
            "02:00:0a:4d:00:09"
        };
        shell(&format!("ip neigh add 10.77.0.9 lladdr {mac} dev e0"));
        ask()
    });
    client.wire();
    if path == EchoPath::Bare {
        let stop = AtomicBool::new(false);
        return std::thread::scope(|scope| {
            let (ready, wait) = std::sync::mpsc::channel();
            let told = &stop;
            scope.spawn(move || {
                pin(1);
                bare(&ready, told);
            });
            wait.recv().expect("the echo is ready");
            client.begin();
            let result = client.end();
            stop.store(true, Ordering::Relaxed);
            result
        });
    }
    let folder = tempfile::tempdir().expect("a place");
    let socket = folder.path().join("host.sock");
    let daemon = HostDaemon::start(settings(&socket), Clock::global()).expect("a daemon");
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.env(ROLE, format!("{name}:{}", socket.display()));
    let app = EchoProcess(command.spawn().expect("an application"));
    client.begin();
    let result = client.end();
    drop(app);
    daemon.stop();
    result
}

fn settings(socket: &Path) -> DaemonSettings {
    let has_three = cores() >= 3;
    DaemonSettings {
        socket: socket.into(),
        policy: "shenango".parse().expect("a policy"),
        apps: vec![AppRule {
            name: "echo".into(),
            guaranteed: 1,
            most: Some(1),
            kind: AppKind::Latency,
            users: Vec::new(),
            groups: Vec::new(),
            network: Some(AppNetwork {
                ip: [10, 77, 0, 9].into(),
                prefix: 24,
                gateway: None,
                mac: None,
            }),
        }],
        // The daemon takes core 0 for itself if there are enough cores.
        cores: Some(vec![1]),
        shares: Some(!has_three),
        tick_ns: 100_000,
        device: Some("p2".into()),
        sysfs: "/sys".into(),
    }
}

fn play(told: &str) {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL).expect("it is permitted");
    let (role, socket) = told.split_once(':').expect("a role and a socket");
    let options = ClientOptions {
        network: true,
        at_signal: headway_threads::STOP_AT_SIGNAL,
        ..ClientOptions::new("echo", 1)
    };
    let client = HostClient::register(socket, &options).expect("the daemon has a place");
    match role {
        "lanes" => echo_frames(&client),
        _ => echo_datagrams(Arc::new(client)),
    }
}

fn swap(frame: &mut [u8]) {
    let (to, from) = frame[..12].split_at_mut(6);
    to.swap_with_slice(from);
    let (from, to) = frame[26..34].split_at_mut(4);
    from.swap_with_slice(to);
    let (from, to) = frame[34..38].split_at_mut(2);
    from.swap_with_slice(to);
}

/// One kthread, which swaps addresses and ports.
fn echo_frames(client: &HostClient) {
    let lanes = client.network().expect("it asked for one").take_lanes();
    let mut lanes = lanes.expect("nobody took them");
    let LaneEnds { sender, receiver } = &mut lanes[0];
    let mut buffer = [0; MOST_PACKET_BYTES];
    let mut grant = client.enter(0);
    let mut idle_since = Instant::now();
    loop {
        let mut count = 0;
        while count < BURST
            && let Ok(Taken::Packet(length)) = receiver.receive(&mut buffer)
        {
            count += 1;
            if length >= 42 {
                swap(&mut buffer[..length]);
                let _ = sender.send(&buffer[..length]);
            }
        }
        let is_revoked = client.orders(0).is_revoked(grant);
        let gives_way = count < BURST && client.is_daemons_core(0);
        if count > 0 && !gives_way {
            client.packets_sent();
            idle_since = Instant::now();
        }
        if is_revoked || gives_way || idle_since.elapsed() > PATIENCE {
            let mut finds_nothing = || receiver.has_packet() != Ok(true);
            grant = client.leave(0, grant, &mut finds_nothing);
            idle_since = Instant::now();
        }
    }
}

/// Sockets of the stack, in a thread in user space.
fn echo_datagrams(client: Arc<HostClient>) {
    let stack = NetStack::of_host(&client, 256 << 10, Uthreads).expect("packets");
    // SAFETY: neither these threads nor the stack use thread-local variables of `std`, and the stack holds its lock in sections only.
    let migration = unsafe { Migration::allow() };
    let runtime = Runtime::builder().source(client, migration);
    let runtime = runtime.packets(Arc::<NetStack<Uthreads>>::clone(&stack));
    let runtime = runtime.stack_bytes(256 << 10).start().expect("threads");
    runtime.run(move || {
        let socket = StackSocket::bind(&stack, 7000).expect("the port");
        let mut buffer = [0; 2000];
        loop {
            let (bytes, from) = socket.recv_from(&mut buffer).expect("a datagram");
            socket.send_to(&buffer[..bytes], from).expect("sent");
        }
    });
}

/// The cheapest echo: it swaps addresses and ports, with one call per burst.
fn bare(ready: &std::sync::mpsc::Sender<()>, stop: &AtomicBool) {
    let mut port = XskPort::open("p2").expect("AF_XDP");
    let host = HostAddress {
        mac: MacAddress([2, 0, 0, 0, 9, 9]),
        ip: [10, 77, 0, 9].into(),
    };
    port.add_host(host).expect("room");
    ready.send(()).expect("it waits");
    let mut frames: Vec<Vec<u8>> = (0..64).map(|_| Vec::with_capacity(2048)).collect();
    while !stop.load(Ordering::Relaxed) {
        let mut count = 0;
        port.receive(64, |frame| {
            frames[count].clear();
            frames[count].extend(frame);
            count += 1;
        });
        for frame in frames[..count].iter_mut().filter(|frame| frame.len() >= 42) {
            swap(frame);
            let _ = port.send(|room| {
                room.get_mut(..frame.len())?.copy_from_slice(frame);
                Some(frame.len())
            });
        }
        if count > 0 {
            let _ = port.flush();
        }
    }
}

fn ask() -> EchoResult {
    pin(client_core());
    let socket = UdpSocket::bind("10.77.0.2:0").expect("a port");
    socket.connect("10.77.0.9:7000").expect("an address");
    socket
        .set_nonblocking(true)
        .expect("a socket that does not wait");
    let mut buffer = [0; 128];
    let answers_within = |patience: Duration, buffer: &mut [u8]| {
        let begun = Instant::now();
        // A refusal of a port that is not open yet is an error as well.
        let _ = socket.send(&REQUEST);
        while socket.recv(buffer).is_err() {
            if begun.elapsed() > patience {
                return None;
            }
        }
        Some(begun.elapsed())
    };
    let begun = Instant::now();
    while answers_within(Duration::from_millis(20), &mut buffer).is_none() {
        assert!(begun.elapsed() < Duration::from_secs(10), "nobody answers");
    }
    std::thread::sleep(Duration::from_millis(50));
    while socket.recv(&mut buffer).is_ok() {}
    let mut one = || {
        let trip = answers_within(Duration::from_secs(5), &mut buffer);
        trip.expect("an answer")
    };
    for _ in 0..1000 {
        one();
    }
    let mut trips: Vec<Duration> = (0..TRIPS).map(|_| one()).collect();
    trips.sort();
    let begun = Instant::now();
    let (mut under_way, mut answered, mut lost, mut last) = (0, 0u64, 0, begun);
    while begun.elapsed() < SPAN {
        while under_way < WINDOW && socket.send(&REQUEST).is_ok() {
            under_way += 1;
        }
        while socket.recv(&mut buffer).is_ok() {
            under_way = under_way.saturating_sub(1);
            answered += 1;
            last = Instant::now();
        }
        // Lost requests give their place in the window back.
        if last.elapsed() > Duration::from_millis(2) {
            lost += under_way;
            under_way = 0;
            last = Instant::now();
        }
    }
    EchoResult {
        median: trips[trips.len() / 2],
        rate: answered as f64 / begun.elapsed().as_secs_f64(),
        lost: lost as f64 / (answered as f64).max(1.0),
    }
}
