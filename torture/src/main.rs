//! `headway-torture POLICY WORKERS own|anywhere SWITCHES [ONLY]`: the same as `ways/main.c`, for code in Rust.
#![forbid(unsafe_code)]

mod libraries;
mod locks;
mod panics;
mod thread_locals;
mod ways;

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use headway::policy::Resume;
use headway::prelude::*;
use ways::{WRONG, Way};

/// Nobody waits longer for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
const IN_FLIGHT: u32 = 12;
const LONG_ROUNDS: u64 = 16;
const SHORT_ROUNDS: u64 = 1;

struct Room {
    ways: Vec<Way>,
    current: Arc<AtomicUsize>,
    next: AtomicU64,
}

impl Service for Room {
    fn handle(&self, call: &mut Call<'_>) {
        let way = &self.ways[self.current.load(Ordering::Acquire)];
        let seed = self.next.fetch_add(1, Ordering::Relaxed);
        for _ in 0..if call.class().index() == 0 {
            LONG_ROUNDS
        } else {
            SHORT_ROUNDS
        } {
            (way.run)(seed);
        }
        call.reply(b"done");
    }
}

fn all_ways() -> Vec<Way> {
    [
        thread_locals::WAYS,
        locks::WAYS,
        panics::WAYS,
        libraries::WAYS,
    ]
    .concat()
}

/// Has requests go this way until so many interruptions are over, or the time. `None` where a request was not answered.
fn go(server: &Server, client: &UdpSocket, switches: u64, limit: Duration) -> Option<u64> {
    let before = server.stats().preemptions;
    let begun = Instant::now();
    let (mut sent, mut answered, mut more) = (0, 0, true);
    while more || answered < sent {
        while more && sent - answered < IN_FLIGHT {
            // Long requests and short ones in turn: by `srpt` the short ones interrupt.
            let header = Header {
                class: (sent % 2) as u8,
                flag: Flag::REQUEST,
                index: sent,
                time_ns: 0,
            };
            client.send(&header.encode()).ok()?;
            sent += 1;
        }
        let mut answer = [0; 64];
        let heard = loop {
            match client.recv(&mut answer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {} // A child of a request ended.
                heard => break heard,
            }
        };
        // A server may refuse a request for want of room.
        let is_refusal =
            Header::parse(&answer).is_ok_and(|(header, _)| header.flag.status() == Status::Shed);
        if !heard
            .as_ref()
            .is_ok_and(|bytes| *bytes == HEADER_BYTES + 4 || is_refusal)
        {
            eprintln!(
                "not answered within {PATIENCE:?}: {heard:?}, {:?}",
                &answer[..HEADER_BYTES]
            );
            return None;
        }
        answered += 1;
        let counted = server.stats().preemptions - before;
        more = more && (answered < 2 * IN_FLIGHT || counted < switches && begun.elapsed() < limit);
    }
    Some(server.stats().preemptions - before)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, policy, workers, resume, switches, only @ ..] = &*arguments else {
        eprintln!("usage: headway-torture POLICY WORKERS own|anywhere SWITCHES [ONLY]");
        return ExitCode::FAILURE;
    };
    let limit = std::env::var("TORTURE_MS").map_or(60_000, |ms| ms.parse().expect("milliseconds"));
    let current = Arc::new(AtomicUsize::new(0));
    let server = Server::builder()
        .policy(policy)
        .class("long", Duration::from_millis(1))
        .class("short", Duration::from_micros(1))
        .workers(workers.parse().expect("a number of workers"))
        // Who interrupts for srpt has no quantum to wait for.
        .layout(if policy.starts_with("srpt") { Layout::Dedicated } else { Layout::Auto })
        .pin(Pin::Off)
        .resume(if resume == "anywhere" { Resume::Anywhere } else { Resume::OwnWorker })
        .service(Room { ways: all_ways(), current: Arc::clone(&current), next: AtomicU64::new(1) })
        .listen_udp("127.0.0.1:0".parse().expect("an address"))
        .start();
    let server = match server {
        Ok(server) => server,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let client = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    client
        .connect(server.local_addr().expect("it listens"))
        .expect("loopback");
    client.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let (mut gone, mut sum, mut all_wrong) = (0, 0, 0);
    for (number, way) in all_ways().iter().enumerate() {
        if only.first().is_some_and(|only| only != way.name) {
            continue;
        }
        current.store(number, Ordering::Release);
        WRONG.store(0, Ordering::Relaxed);
        let switches = go(
            &server,
            &client,
            switches.parse().expect("a number of switches"),
            Duration::from_millis(limit),
        );
        let wrong = WRONG.load(Ordering::Relaxed);
        let Some(switches) = switches else {
            eprintln!(
                "{}: a request was not answered, after {wrong} that were not so",
                way.name
            );
            std::process::exit(3);
        };
        println!("{} {switches} {wrong}", way.name);
        gone += 1;
        sum += switches;
        all_wrong += wrong;
    }
    let stats = server.shutdown(PATIENCE).expect("it stops");
    println!(
        "ways {gone} switches {sum} wrong {} refused {}",
        all_wrong + stats.panics,
        stats.shed
    );
    ExitCode::from(u8::from(gone == 0 || all_wrong + stats.panics > 0))
}
