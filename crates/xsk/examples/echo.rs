//! Echo over a veth pair by the kernel's UDP, by a server's `AF_XDP` datapath, and by bare `AF_XDP` frames. It measures round trips one after the other, and
//! requests per second with 64 under way. The client is the same each time, on the kernel's UDP in another namespace. In turn, as root: `cargo run --release -p
//! headway-xsk --example echo`.

#[path = "../../xdp/tests/common/net.rs"]
mod net;

use headway_net::datapath::{Datapath, DatapathEnds};
use headway_net::pool::SlotPool;
use headway_net::udp::{Steering, UdpDatapath};
use headway_xsk::{HostAddress, MacAddress, XskConfig, XskDatapath, XskPort};
use net::{Host, enter_namespace, shell};
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const TRIPS: usize = 20_000;
const WINDOW: usize = 64;
const SPAN: Duration = Duration::from_millis(700);
const REQUEST: [u8; 64] = [7; 64];

fn main() {
    let run = std::thread::spawn(compare);
    run.join().expect("it runs");
}

#[derive(Clone, Copy)]
enum Path {
    Kernel,
    Server,
    Bare,
}

struct EchoResult {
    median: Duration,
    rate: f64,
}

fn compare() {
    println!(
        "path, p50 of a round trip in µs, requests/s of {WINDOW} under way: medians of {ROUNDS} rounds in turn"
    );
    let paths = [
        (Path::Kernel, "kernel UDP"),
        (Path::Server, "server on AF_XDP"),
        (Path::Bare, "bare AF_XDP"),
    ];
    let mut trips = [const { Vec::new() }; 3];
    let mut rates = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        for (at, (path, _)) in paths.into_iter().enumerate() {
            let result = std::thread::spawn(move || measure(path))
                .join()
                .expect("a round");
            trips[at].push(result.median.as_secs_f64() * 1e6);
            rates[at].push(result.rate);
        }
    }
    let median = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    for (at, (_, name)) in paths.iter().enumerate() {
        println!(
            "{name}, {:.2}, {:.0}",
            median(&mut trips[at]),
            median(&mut rates[at])
        );
    }
}

fn pin(core: usize) {
    let mut set = nix::sched::CpuSet::new();
    set.set(core).expect("a core");
    nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set).expect("the core");
}

fn measure(path: Path) -> EchoResult {
    enter_namespace();
    // The bare echo answers for a host of its own behind the device.
    let to = if matches!(path, Path::Bare) {
        "10.77.0.9:7000"
    } else {
        "10.77.0.1:7000"
    };
    let client = Host::start(2, move || {
        shell("ip neigh add 10.77.0.9 lladdr 02:00:00:00:09:09 dev e0");
        ask(to)
    });
    client.wire();
    shell(
        "ip address add 10.77.0.1/24 dev p2; ip neigh add 10.77.0.2 lladdr 02:00:00:00:07:02 dev p2",
    );
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (ready, wait) = std::sync::mpsc::channel();
        let told = &stop;
        scope.spawn(move || {
            pin(1);
            match path {
                Path::Kernel => serve(
                    UdpDatapath::bind("10.77.0.1:7000".parse().expect("an address"))
                        .expect("the port"),
                    &ready,
                    told,
                ),
                Path::Server => {
                    let config = XskConfig {
                        device: "p2".into(),
                        port: 7000,
                        steering: Steering::Flow,
                    };
                    serve(XskDatapath::open(config).expect("AF_XDP"), &ready, told);
                }
                Path::Bare => bare(&ready, told),
            }
        });
        wait.recv().expect("the echo is ready");
        client.begin();
        let result = client.end();
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// A server's loop: poll, answer each request from its buffer.
fn serve(datapath: impl Datapath, ready: &std::sync::mpsc::Sender<()>, stop: &AtomicBool) {
    let DatapathEnds { rxs, mut txs } = Box::new(datapath).split(1, 1).expect("a queue");
    let (pool, mut free) = SlotPool::new(256).expect("buffers");
    let mut scratch = rxs[0].scratch();
    let mut out = Vec::with_capacity(64);
    ready.send(()).expect("it waits");
    while !stop.load(Ordering::Relaxed) {
        rxs[0].poll(0, &mut scratch, &pool, &mut free, &mut out, 64);
        for mut slot in out.drain(..) {
            // The kernel drops a response for which it has no room.
            let _ = txs[0].send(&pool, &mut slot, 0);
            free.give(slot);
        }
    }
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
        for frame in &mut frames[..count] {
            let (to, from) = frame[..12].split_at_mut(6);
            to.swap_with_slice(from);
            let (from, to) = frame[26..34].split_at_mut(4);
            from.swap_with_slice(to);
            let (from, to) = frame[34..38].split_at_mut(2);
            from.swap_with_slice(to);
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

fn ask(to: &str) -> EchoResult {
    pin(0);
    let socket = UdpSocket::bind("10.77.0.2:0").expect("a port");
    socket.connect(to).expect("an address");
    socket
        .set_nonblocking(true)
        .expect("a socket that does not wait");
    let mut buffer = [0; 128];
    let mut one = || {
        let begun = Instant::now();
        socket.send(&REQUEST).expect("sent");
        while socket.recv(&mut buffer).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(5),
                "nothing comes back"
            );
        }
        begun.elapsed()
    };
    for _ in 0..1000 {
        one();
    }
    let mut trips: Vec<Duration> = (0..TRIPS).map(|_| one()).collect();
    trips.sort();
    let begun = Instant::now();
    let (mut under_way, mut answered, mut last) = (0, 0u64, begun);
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
        if last.elapsed() > Duration::from_millis(50) {
            under_way = 0;
            last = Instant::now();
        }
    }
    EchoResult {
        median: trips[trips.len() / 2],
        rate: answered as f64 / begun.elapsed().as_secs_f64(),
    }
}
