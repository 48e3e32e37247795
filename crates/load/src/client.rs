//! The threads of the client: a single one that mostly sleeps, or two that spin.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use headway_machine::thread::{Responsiveness, name_current, stay_responsive};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl;

use crate::ledger::Departures;
use crate::load::Body;
use crate::receiver::ReplyReceiver;
use crate::sender::{LoadSender, Sending};

/// The time before a send that is spun, since waking takes about as long: with half of it the median send
/// is 14 µs late, with all of it 4. At 5 000 requests per second it costs less than a tenth of a core, and
/// the client as a whole an eighth.
const SPIN_NS: u64 = 20_000;

/// The longest sleep without a look at the socket, so that its buffer does not overflow.
const NAP_NS: u64 = 5_000_000;

/// How long the receiver of two threads waits for a reply before it looks whether the run is over.
const RECEIVE_WAIT: Duration = Duration::from_millis(1);

/// The results of the client's threads.
pub(crate) struct Harvest<'a> {
    pub(crate) receiver: ReplyReceiver<'a>,
    /// Sends that failed.
    pub(crate) failed: u64,
    /// Number of sends to a port without a listener.
    pub(crate) refused: u64,
    /// The scheduling that the kernel granted a sleeping client; `None` for a spinning one.
    pub(crate) responsiveness: Option<Responsiveness>,
}

/// A run's progress, for the thread that watches it.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    pub(crate) answered: AtomicU64,
}

impl Gauge {
    fn show(&self, receiver: &ReplyReceiver<'_>) {
        self.answered
            .store(receiver.answers.answered, Ordering::Relaxed);
    }
}

/// Sends and receives from one thread, asleep in between.
///
/// Replies wait in the socket until the next send, since the kernel stamps their times. Without stamps,
/// the thread wakes up for each reply.
pub(crate) fn run_on_one_thread<'a>(
    run: Sending<'a>,
    body: &'a Body,
    gauge: &Gauge,
    timeout_ns: u64,
) -> Harvest<'a> {
    name_current("headway-load");
    // 50 µs by default, by which every wake-up would be late.
    let _ = prctl::set_timerslack(1);
    let responsiveness = stay_responsive();
    let mut sender = LoadSender::new(run, body);
    let mut receiver = ReplyReceiver::new(run);
    while let Some(due_ns) = sender.next_due_ns() {
        let now_ns = run.clock.now_ns();
        if now_ns + SPIN_NS < due_ns {
            sleep(run, (due_ns - SPIN_NS - now_ns).min(NAP_NS));
            receiver.drain();
            gauge.show(&receiver);
            continue;
        }
        sender.send_due(spin_until(run, due_ns));
        receiver.drain();
    }
    gauge.show(&receiver);
    await_stragglers(run, &mut receiver, gauge, timeout_ns);
    harvest(&sender, receiver, Some(responsiveness))
}

/// Sends from one thread that spins, and receives on another.
///
/// Neither asks for a real-time priority: a spinning real-time thread would starve its core.
pub(crate) fn run_on_two_threads<'a>(
    run: Sending<'a>,
    body: &'a Body,
    gauge: &Gauge,
    timeout_ns: u64,
) -> Harvest<'a> {
    std::thread::scope(|scope| {
        let receiving = scope.spawn(move || receive_all(run, gauge, timeout_ns));
        name_current("headway-send");
        let sent = StopAtEnd(run.departures);
        let mut sender = LoadSender::new(run, body);
        while let Some(due_ns) = sender.next_due_ns() {
            sender.send_due(spin_until(run, due_ns));
        }
        drop(sent);
        let receiver = receiving.join().expect("the receiver does not panic");
        harvest(&sender, receiver, None)
    })
}

/// Tells the receiver that nothing more is sent, even when building a request panicked.
struct StopAtEnd<'a>(&'a Departures);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn receive_all<'a>(run: Sending<'a>, gauge: &Gauge, timeout_ns: u64) -> ReplyReceiver<'a> {
    name_current("headway-recv");
    let mut receiver = ReplyReceiver::new(run);
    while !run.departures.stopped() {
        wait_readable(run, RECEIVE_WAIT);
        receiver.drain();
        gauge.show(&receiver);
    }
    await_stragglers(run, &mut receiver, gauge, timeout_ns);
    receiver
}

/// After the last send: receives until every request is answered, or the time is up.
fn await_stragglers(
    run: Sending<'_>,
    receiver: &mut ReplyReceiver<'_>,
    gauge: &Gauge,
    timeout_ns: u64,
) {
    let end_ns = run.clock.now_ns() + timeout_ns;
    receiver.drain();
    while !receiver.is_complete() && run.clock.now_ns() < end_ns {
        wait_readable(run, RECEIVE_WAIT);
        receiver.drain();
        gauge.show(receiver);
    }
}

fn harvest<'a>(
    sender: &LoadSender<'_>,
    receiver: ReplyReceiver<'a>,
    responsiveness: Option<Responsiveness>,
) -> Harvest<'a> {
    Harvest {
        failed: sender.failed,
        refused: sender.refused + receiver.refused,
        responsiveness,
        receiver,
    }
}

fn spin_until(run: Sending<'_>, due_ns: u64) -> u64 {
    loop {
        let now_ns = run.clock.now_ns();
        if now_ns >= due_ns {
            return now_ns;
        }
        std::hint::spin_loop();
    }
}

fn sleep(run: Sending<'_>, duration_ns: u64) {
    if run.socket.stamped {
        std::thread::sleep(Duration::from_nanos(duration_ns));
    } else {
        wait_readable(run, Duration::from_nanos(duration_ns));
    }
}

/// Waits until a datagram can be read, or the time is up. An interrupted wait is a short one.
fn wait_readable(run: Sending<'_>, timeout: Duration) {
    let mut fds = [PollFd::new(run.socket.udp.as_fd(), PollFlags::POLLIN)];
    let _ = ppoll(&mut fds, Some(timeout.into()), None);
}
