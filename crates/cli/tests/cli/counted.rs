//! Every datagram that a served process takes in is in exactly one count of its closing line, whenever SIGTERM comes: under every policy of the registry.
//!
//! `HEADWAY_COUNTS` says how many servers each policy gets. A failure prints the command that draws the same servers again.

use std::collections::HashSet;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headway_net::header::{Flag, Header};
use headway_policy::server::systems::NAMES;

use super::serving::{Serving, assert_all_counted, figure};

/// Servers of each policy, unless `HEADWAY_COUNTS` says otherwise.
const SERVERS: u64 = 2;
const SEED: u64 = 0x51_67e4;
/// A long's time, ns: a worker serves two thousand of them a second.
const LONG_NS: u32 = 500_000;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a whole number"))
}

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)) % bound
    }
}

/// What comes to a server, and when it is told to stop.
#[derive(Debug)]
struct SignalledServer {
    policy: &'static str,
    workers: u64,
    drain: &'static str,
    /// Of so many datagrams one is a long, is no request, or does not fit into a buffer.
    long_in: u64,
    odd_in: u64,
    /// Pauses between bursts of 16 datagrams.
    pause: Duration,
    /// When the signal comes, after the first datagram.
    signal: Duration,
}

impl SignalledServer {
    fn draw(policy: &'static str, draws: &mut Draws) -> Self {
        Self {
            policy,
            workers: 1 + draws.below(3),
            drain: ["0s", "1ms", "60s"][draws.below(3) as usize],
            long_in: [1, 4, 50][draws.below(3) as usize],
            odd_in: [5, 1_000_000][draws.below(2) as usize],
            pause: Duration::from_micros([0, 100, 2_000][draws.below(3) as usize]),
            signal: Duration::from_micros(draws.below(60_000)),
        }
    }

    fn run(&self) {
        let workers = self.workers.to_string();
        let server = Serving::start(&[
            "--app",
            "spin",
            "--policy",
            self.policy,
            "--workers",
            &workers,
            "--drain",
            self.drain,
            "--pin",
            "off",
        ]);
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server.addr()).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let ended = AtomicBool::new(false);
        let (sent, heard, (status, said)) = std::thread::scope(|scope| {
            let sender = scope.spawn(|| self.send_until(&socket, &ended));
            let listener = scope.spawn(|| heard_until(&socket, &ended));
            std::thread::sleep(self.signal);
            server.signal(libc::SIGTERM);
            let ends = server.end();
            ended.store(true, Ordering::Release);
            (sender.join().unwrap(), listener.join().unwrap(), ends)
        });
        assert_eq!(status, Some(0), "{self:?}: {said}");
        assert_all_counted(&said);
        let received = figure(&said, "received ");
        assert!(received <= sent, "{self:?}: {sent} sent, {said}");
        assert!(
            heard <= figure(&said, "answered "),
            "{self:?}: {heard} heard, {said}"
        );
    }

    /// Sends until the server has ended: it stops in the middle of what comes. Once it is gone the kernel refuses datagrams.
    fn send_until(&self, socket: &UdpSocket, ended: &AtomicBool) -> u64 {
        let mut sent = 0;
        for index in 0u32.. {
            if ended.load(Ordering::Acquire) {
                break;
            }
            let of = |every: u64| u64::from(index) % every == every - 1;
            let header = Header {
                class: 0,
                flag: Flag::REQUEST,
                index,
                time_ns: if of(self.long_in) { LONG_NS } else { 1_000 },
            };
            let mut bytes = header.encode().to_vec();
            match index % 2 {
                0 if of(self.odd_in) => bytes.truncate(3),
                1 if of(self.odd_in) => bytes.resize(3_000, 0),
                _ => {}
            }
            sent += u64::from(socket.send(&bytes).is_ok());
            if index % 16 == 15 {
                std::thread::sleep(self.pause);
            }
        }
        sent
    }
}

/// How many responses came until the server had ended and nothing more came. None answers a request that was answered before.
fn heard_until(socket: &UdpSocket, ended: &AtomicBool) -> u64 {
    let (mut heard, mut buffer) = (HashSet::new(), [0; 4_096]);
    loop {
        let is_over = ended.load(Ordering::Acquire);
        match socket.recv(&mut buffer) {
            Ok(len) => {
                let (header, _) = Header::parse(&buffer[..len]).expect("a header");
                assert!(heard.insert(header.index), "{} came twice", header.index);
            }
            Err(_) if is_over => return heard.len() as u64,
            Err(_) => {}
        }
    }
}

#[test]
fn a_signal_at_any_moment_leaves_every_datagram_in_one_count() {
    let seed = number("HEADWAY_COUNTS_SEED").unwrap_or(SEED);
    let servers = number("HEADWAY_COUNTS").unwrap_or(SERVERS);
    println!(
        "repeat it: HEADWAY_COUNTS_SEED={seed} HEADWAY_COUNTS={servers} cargo test -p headway-cli --test cli counted"
    );
    let mut draws = Draws(seed);
    for policy in NAMES.iter().copied() {
        for _ in 0..servers {
            SignalledServer::draw(policy, &mut draws).run();
        }
    }
}
