//! The open-loop client: Poisson arrivals at a rate that changes in steps. Latency counts from a request's intended send time.

use headway_machine::{Clock, thread as own_thread};
use headway_policy::Rng;
use std::error::Error;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A rate and its duration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) rate_rps: f64,
    pub(crate) length: Duration,
}

impl Step {
    pub(crate) const fn new(rate_rps: f64, length: Duration) -> Self {
        Self { rate_rps, length }
    }
}

/// A request that was answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    /// The intended send time, from the start of the run, ns.
    pub(crate) at_ns: u64,
    pub(crate) latency_ns: u64,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The start, by the clock of this machine, ns.
    pub(crate) start_ns: u64,
    pub(crate) sent: usize,
    pub(crate) answered: Vec<Answered>,
}

/// The time to wait for late answers.
const PATIENCE: Duration = Duration::from_millis(300);

/// Offers the load to a server on a port of this machine, unless it `stops`. `mark` is called at the start and after each step.
pub(crate) fn offer(
    port: u16,
    steps: &[Step],
    stops: &AtomicBool,
    mut mark: impl FnMut(),
) -> Result<Load, Box<dyn Error>> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(("127.0.0.1", port))?;
    socket.set_read_timeout(Some(Duration::from_millis(20)))?;
    let schedule = schedule(steps);
    let clock = Clock::global();
    let ended = Arc::new(AtomicBool::new(false));
    let start_ns = clock.now_ns() + 20_000_000;
    let receiver = {
        let (socket, ended) = (socket.try_clone()?, Arc::clone(&ended));
        thread::spawn(move || receive(&socket, start_ns, &ended))
    };
    own_thread::stay_responsive();
    let mut ends_ns = 0;
    let mut ends: Vec<u64> = steps
        .iter()
        .map(|step| {
            ends_ns += step.length.as_nanos() as u64;
            ends_ns
        })
        .collect();
    ends.reverse();
    mark();
    let mut rng = Rng::new(3);
    for &at_ns in &schedule {
        while ends.last().is_some_and(|&end_ns| end_ns <= at_ns) {
            ends.pop();
            mark();
        }
        let due_ns = start_ns + at_ns;
        let left_ns = due_ns.saturating_sub(clock.now_ns());
        if left_ns > 10_000 {
            thread::sleep(Duration::from_nanos(left_ns));
        }
        if stops.load(Ordering::Relaxed) {
            return Err("a signal ended the run".into());
        }
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&at_ns.to_le_bytes());
        bytes[8..].copy_from_slice(&rng.next_u64().to_le_bytes());
        // Datagrams that the kernel drops count as unanswered.
        let _ = socket.send(&bytes);
    }
    ends.iter().for_each(|_| mark());
    thread::sleep(PATIENCE);
    ended.store(true, Ordering::Release);
    let answered = receiver.join().expect("it does not panic");
    Ok(Load {
        start_ns,
        sent: schedule.len(),
        answered,
    })
}

/// The intended send times, ns from the start.
fn schedule(steps: &[Step]) -> Vec<u64> {
    let mut rng = Rng::new(1);
    let (mut from_s, mut times) = (0.0, Vec::new());
    for step in steps {
        let end_s = from_s + step.length.as_secs_f64();
        let mut at_s = from_s;
        loop {
            let uniform = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
            at_s -= (1.0 - uniform).ln() / step.rate_rps;
            if at_s >= end_s {
                break;
            }
            times.push((at_s * 1e9) as u64);
        }
        from_s = end_s;
    }
    times
}

fn receive(socket: &UdpSocket, start_ns: u64, ended: &AtomicBool) -> Vec<Answered> {
    own_thread::stay_responsive();
    let clock = Clock::global();
    let mut answered = Vec::new();
    let mut bytes = [0; 16];
    while !ended.load(Ordering::Acquire) {
        if socket
            .recv(&mut bytes)
            .is_ok_and(|length| length == bytes.len())
        {
            let at_ns = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
            let latency_ns = clock.now_ns().saturating_sub(start_ns + at_ns);
            answered.push(Answered { at_ns, latency_ns });
        }
    }
    answered
}
