//! What part of a long's time goes into looks for arrivals, where only a system call tells what waits: over UDP, with the usual interval between looks, beside the
//! same server that looks once a second. And what a thread costs that waits for arrivals instead, to say so in a word of memory.
//!
//! Times are those that the thread had a core for. The servers take turns, a long each, and each turn's times are compared with one another: other work on the
//! machine slows all of them. A server that looks five times as often as usual shows that looks are seen at all.

mod common;

use std::hint::black_box;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::backlog::{turn_ns, work};
use common::median;
use headway_machine::Clock;
use headway_machine::thread::CpuClock;
use headway_net::datapath::Datapath;
use headway_net::header::{Flag, Header};
use headway_net::udp::UdpDatapath;
use headway_runtime::{Idle, Layout, Pin, Server};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

const ROUNDS: usize = 21;
const TURNS: usize = 600;
/// A long's work: 80 looks at the usual interval.
const LONG_NS: f64 = 2e6;
/// The bound: looks take no more of a long's time.
const MOST_PERCENT: f64 = 2.0;
const NEVER: Duration = Duration::from_secs(1);
const OFTEN: Duration = Duration::from_micros(5);

/// A server on loopback whose longs say how long they had a core.
struct LookedServer {
    server: Server,
    client: UdpSocket,
}

impl LookedServer {
    /// Under `synergy` or, where no `look_every` is given, as usual.
    fn start(policy: &str, look_every: Option<Duration>, turns: u64) -> Self {
        let layout = if policy == "synergy" {
            Layout::Inline
        } else {
            Layout::Auto
        };
        let builder = Server::builder()
            .policy(policy)
            .class("short", Duration::from_micros(1))
            .class("long", Duration::from_millis(2))
            .workers(1)
            .layout(layout)
            .idle(Idle::Park)
            .pin(Pin::Off);
        let builder = match look_every {
            Some(every) => builder.look_every(every),
            None => builder,
        };
        // SAFETY: the handlers of this bench keep nothing of their thread's over a checkpoint.
        #[expect(unsafe_code, reason = "synergy asks for it")]
        let builder = unsafe { builder.plain_fibers() };
        let server = builder
            .handler(move |call| {
                if call.class().0 == 0 {
                    return call.reply_in_place();
                }
                let clock = CpuClock::of_current();
                let begun_ns = clock.read_ns().expect("threads have an account");
                work(turns);
                let took_ns = clock.read_ns().expect("threads have an account") - begun_ns;
                call.reply(&took_ns.to_le_bytes());
            })
            .listen_udp("127.0.0.1:0".parse().expect("an address"))
            .start()
            .expect("the server starts");
        let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = server.local_addr().expect("it listens");
        client.connect(address).expect("it is reached");
        let server = Self { server, client };
        // A quantum is two services of a short.
        (0..32).for_each(|_| {
            server.ask(0);
        });
        server
    }

    /// The payload of the response to a request of this class.
    fn ask(&self, class: u8) -> Vec<u8> {
        let header = Header {
            class,
            flag: Flag::REQUEST,
            index: 0,
            time_ns: 0,
        };
        self.client.send(&header.encode()).expect("it is sent");
        let mut buffer = [0; 64];
        let length = self.client.recv(&mut buffer).expect("it is answered");
        let (_, payload) = Header::parse(&buffer[..length]).expect("a response");
        payload.to_vec()
    }

    /// For how long a long had a core, ns.
    fn long_ns(&self) -> f64 {
        let bytes = self.ask(1).try_into().expect("eight bytes");
        u64::from_le_bytes(bytes) as f64
    }

    /// The slices of its longs that were renewed, each.
    fn renewals(self) -> f64 {
        let stats = self.server.shutdown(Duration::from_secs(10));
        let stats = stats.expect("the server stops");
        let long = &stats.classes[1];
        long.renewals as f64 / long.answered as f64
    }
}

fn main() {
    let turns = (LONG_NS / turn_ns()) as u64;
    let start = |policy, every| LookedServer::start(policy, every, turns);
    let blind = start("synergy", Some(NEVER));
    let (usual, often) = (start("synergy", None), start("synergy", Some(OFTEN)));
    let whole = start("d-fcfs", None);
    let mut extra: [Vec<f64>; 3] = Default::default();
    let servers = [&blind, &usual, &often, &whole];
    for turn in 0..TURNS {
        let mut long_ns = [0.0; 4];
        // None of them always comes first.
        for at in 0..servers.len() {
            let at = (turn + at) % servers.len();
            long_ns[at] = servers[at].long_ns();
        }
        for (percent, own_ns) in extra.iter_mut().zip(&long_ns[1..]) {
            percent.push((own_ns - long_ns[0]) / own_ns * 100.0);
        }
    }
    let [looks, often, whole] = &mut extra;
    println!("looks over UDP, medians of {TURNS} turns, and their middle halves");
    let looked = row("looks, of a long's time", looks);
    println!("  {:5.2} × its bound", looked / MOST_PERCENT);
    row("the same, each 5 µs", often);
    println!();
    row("a long under d-fcfs, which interrupts nobody", whole);
    println!();
    println!(
        "  slices renewed in a long                       {:6.0}",
        usual.renewals()
    );
    let mut asks: Vec<f64> = (0..ROUNDS).map(|_| look_ns()).collect();
    println!(
        "  a look                                         {:6.0} ns",
        median(&mut asks)
    );
    let mut waits: Vec<f64> = (0..ROUNDS).map(|_| waiting_ns()).collect();
    println!(
        "  an arrival told by a thread that waits for it  {:6.0} ns of its core",
        median(&mut waits)
    );
}

/// Prints the median of what a server's longs took more than those of one that does not look, in percent, and returns it.
fn row(name: &str, percent: &mut [f64]) -> f64 {
    let middle = median(percent);
    let (low, high) = (percent[TURNS / 4], percent[TURNS * 3 / 4]);
    print!("  {name:<46} {middle:6.2} % [{low:.2}, {high:.2}]");
    middle
}

/// One question of what waits at a socket, ns.
fn look_ns() -> f64 {
    const LOOKS: u64 = 10_000;
    let datapath = UdpDatapath::bind("127.0.0.1:0".parse().expect("an address"));
    let datapath = Box::new(datapath.expect("a socket"));
    let ends = datapath.split(1, 1).expect("it has a queue");
    let rx = &ends.rxs[0];
    let clock = Clock::global();
    let begun_ns = clock.now_ns();
    (0..LOOKS).for_each(|_| {
        black_box(rx.backlog_hint());
    });
    (clock.now_ns() - begun_ns) as f64 / LOOKS as f64
}

/// What a thread takes for each arrival that it waits for, in order to raise a word in memory, ns of a core. Arrivals are 50 µs apart.
fn waiting_ns() -> f64 {
    const ARRIVALS: u64 = 400;
    const GAP_NS: u64 = 50_000;
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    receiver.set_nonblocking(true).expect("a socket has a mode");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let address = receiver.local_addr().expect("it is bound");
    sender.connect(address).expect("it is reached");
    let (word, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let clock = CpuClock::of_current();
            let begun_ns = clock.read_ns().expect("threads have an account");
            let mut buffer = [0; 64];
            while !ended.load(Ordering::Acquire) {
                let mut ready = [PollFd::new(receiver.as_fd(), PollFlags::POLLIN)];
                let _ = poll(&mut ready, PollTimeout::from(10u8));
                word.fetch_add(1, Ordering::Release);
                while receiver.recv(&mut buffer).is_ok() {}
            }
            clock.read_ns().expect("threads have an account") - begun_ns
        });
        let clock = Clock::global();
        let mut due_ns = clock.now_ns();
        for _ in 0..ARRIVALS {
            due_ns += GAP_NS;
            while clock.now_ns() < due_ns {
                std::hint::spin_loop();
            }
            sender.send(&[0; 10]).expect("it is sent");
        }
        ended.store(true, Ordering::Release);
        let took_ns = waiter.join().expect("a bench does not panic");
        took_ns as f64 / word.load(Ordering::Acquire) as f64
    })
}
