//! The threads of the client: a single one that mostly sleeps, or two that spin.

use std::sync::atomic::{AtomicU64, Ordering};

use headway_machine::thread::{Responsiveness, name_current, stay_responsive};
use nix::sys::prctl;

use crate::ledger::Departures;
use crate::load::Body;
use crate::port::ClientPort;
use crate::receiver::ReplyReceiver;
use crate::sender::{LoadSender, Sending};

/// The time before a send that is spun, since waking takes about as long: with half of it the median send
/// is 14 µs late, with all of it 4. At 5 000 requests per second it costs less than a tenth of a core, and
/// the client as a whole an eighth.
const SPIN_NS: u64 = 20_000;

/// The longest sleep without a look at the socket, so that its buffer does not overflow.
const NAP_NS: u64 = 5_000_000;

/// How long the receiver of two threads waits for a reply before it looks whether the run is over, ns.
const RECEIVE_WAIT_NS: u64 = 1_000_000;

/// The results of the client's threads.
pub(crate) struct Harvest<'a, P: ClientPort> {
    pub(crate) receiver: ReplyReceiver<'a, P>,
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
    fn show(&self, receiver: &ReplyReceiver<'_, impl ClientPort>) {
        self.answered
            .store(receiver.answers.answered, Ordering::Relaxed);
    }
}

/// The result of a step of one of the client's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientStep {
    /// The next step is due at once.
    Again,
    /// Nothing is due for so long, ns.
    Sleeps(u64),
    /// The next step is due when a reply waits, or after so long, ns.
    Listens(u64),
    /// The run is over.
    Done,
}

/// Sends and receives from one thread, asleep in between.
///
/// Replies wait in the socket until the next send, since the kernel stamps their times. Without stamps,
/// the thread wakes up for each reply.
pub(crate) struct LoneClient<'a, P: ClientPort> {
    sender: LoadSender<'a, P>,
    receiving: ReceivingHalf<'a, P>,
    has_slept: bool,
}

impl<'a, P: ClientPort> LoneClient<'a, P> {
    pub(crate) fn new(
        run: Sending<'a, P>,
        body: &'a Body,
        gauge: &'a Gauge,
        timeout_ns: u64,
    ) -> Self {
        Self {
            sender: LoadSender::new(run, body),
            receiving: ReceivingHalf::new(run, gauge, timeout_ns),
            has_slept: false,
        }
    }

    /// Sends what is due and reads what waits.
    pub(crate) fn step(&mut self) -> ClientStep {
        if std::mem::take(&mut self.has_slept) {
            self.receiving.drain();
        }
        let run = self.receiving.run;
        let Some(due_ns) = self.sender.next_due_ns() else {
            return self.receiving.step_after_last();
        };
        let now_ns = run.clock.now_ns();
        if now_ns + SPIN_NS < due_ns {
            self.has_slept = true;
            let nap_ns = (due_ns - SPIN_NS - now_ns).min(NAP_NS);
            return if run.port.is_stamped() {
                ClientStep::Sleeps(nap_ns)
            } else {
                ClientStep::Listens(nap_ns)
            };
        }
        self.sender.send_due(spin_until(run, due_ns));
        self.receiving.receiver.drain();
        ClientStep::Again
    }

    /// What the run brought.
    pub(crate) fn harvest(self, responsiveness: Option<Responsiveness>) -> Harvest<'a, P> {
        harvest_of(&self.sender, self.receiving, responsiveness)
    }
}

/// A thread that runs a [`LoneClient`].
pub(crate) fn run_on_one_thread<'a, P: ClientPort>(
    run: Sending<'a, P>,
    body: &'a Body,
    gauge: &'a Gauge,
    timeout_ns: u64,
) -> Harvest<'a, P> {
    name_current("headway-load");
    // 50 µs by default, by which every wake-up would be late.
    let _ = prctl::set_timerslack(1);
    let responsiveness = stay_responsive();
    let mut client = LoneClient::new(run, body, gauge, timeout_ns);
    while wait_for(run, client.step()) {}
    client.harvest(Some(responsiveness))
}

/// Sends from one thread that spins, and receives on another.
///
/// Neither asks for a real-time priority: a spinning real-time thread would starve its core.
pub(crate) fn run_on_two_threads<'a, P: ClientPort>(
    run: Sending<'a, P>,
    body: &'a Body,
    gauge: &'a Gauge,
    timeout_ns: u64,
) -> Harvest<'a, P>
where
    P::In: Send,
{
    std::thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            name_current("headway-recv");
            let mut receiving = ReceivingHalf::new(run, gauge, timeout_ns);
            while wait_for(run, receiving.step()) {}
            receiving
        });
        name_current("headway-send");
        let sent = StopAtEnd(run.departures);
        let mut sender = LoadSender::new(run, body);
        while let Some(due_ns) = sender.next_due_ns() {
            sender.send_due(spin_until(run, due_ns));
        }
        drop(sent);
        let receiving = receiving.join().expect("the receiver does not panic");
        harvest_of(&sender, receiving, None)
    })
}

/// Tells the receiver that nothing more is sent, even when building a request panicked.
struct StopAtEnd<'a>(&'a Departures);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// The receiving half of a client.
pub(crate) struct ReceivingHalf<'a, P: ClientPort> {
    run: Sending<'a, P>,
    receiver: ReplyReceiver<'a, P>,
    gauge: &'a Gauge,
    timeout_ns: u64,
    /// When the wait for stragglers ends; `None` until the last send.
    end_ns: Option<u64>,
}

impl<'a, P: ClientPort> ReceivingHalf<'a, P> {
    pub(crate) fn new(run: Sending<'a, P>, gauge: &'a Gauge, timeout_ns: u64) -> Self {
        Self {
            receiver: ReplyReceiver::new(run),
            run,
            gauge,
            timeout_ns,
            end_ns: None,
        }
    }

    /// The step of a receiver with a thread of its own.
    pub(crate) fn step(&mut self) -> ClientStep {
        if self.run.departures.stopped() {
            return self.step_after_last();
        }
        self.drain();
        ClientStep::Listens(RECEIVE_WAIT_NS)
    }

    /// After the last send: receives until every request is answered, or the time is up.
    fn step_after_last(&mut self) -> ClientStep {
        let end_ns = *self
            .end_ns
            .get_or_insert_with(|| self.run.clock.now_ns() + self.timeout_ns);
        self.drain();
        if self.receiver.is_complete() || self.run.clock.now_ns() >= end_ns {
            return ClientStep::Done;
        }
        ClientStep::Listens(RECEIVE_WAIT_NS)
    }

    fn drain(&mut self) {
        self.receiver.drain();
        self.gauge.show(&self.receiver);
    }
}

/// What both halves of a client brought.
pub(crate) fn harvest_of<'a, P: ClientPort>(
    sender: &LoadSender<'_, P>,
    receiving: ReceivingHalf<'a, P>,
    responsiveness: Option<Responsiveness>,
) -> Harvest<'a, P> {
    let receiver = receiving.receiver;
    Harvest {
        failed: sender.failed,
        refused: sender.refused + receiver.refused,
        responsiveness,
        receiver,
    }
}

pub(crate) fn spin_until(run: Sending<'_, impl ClientPort>, due_ns: u64) -> u64 {
    loop {
        let now_ns = run.clock.now_ns();
        if now_ns >= due_ns {
            return now_ns;
        }
        std::hint::spin_loop();
    }
}

/// Waits as a step asked for; returns whether another step follows.
pub(crate) fn wait_for(run: Sending<'_, impl ClientPort>, step: ClientStep) -> bool {
    match step {
        ClientStep::Again => {}
        ClientStep::Sleeps(ns) => run.port.sleep(ns),
        ClientStep::Listens(ns) => run.port.wait_readable(ns),
        ClientStep::Done => return false,
    }
    true
}
