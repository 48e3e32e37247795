//! Arrivals from a schedule instead of a network.
//!
//! What a live policy does to a workload shows without the kernel's network stack, which costs several
//! microseconds a request: the same dispatcher, classifiers and workers run, fed with requests that "arrive" at
//! the times a workload generator drew. Latency counts from the intended time, so a dispatcher that is late
//! to poll is charged for it (no coordinated omission).

mod rx;
mod tx;

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use headway_machine::Clock;

pub use rx::ReplayRx;
pub use tx::ReplayTx;

use crate::datapath::{Datapath, Queues};
use crate::waker::Waker;

/// One request of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayArrival {
    /// When it arrives, in nanoseconds after the start.
    pub at_ns: u64,
    /// The work it stands for, in nanoseconds.
    pub service_ns: u64,
    /// Its place in the workload, as in the wire header.
    pub index: u32,
    /// Its class, as in the wire header.
    pub class: u8,
}

/// What became of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// From the intended arrival to the response (or refusal), in nanoseconds.
    pub latency_ns: u64,
    /// The work the request stood for, in nanoseconds.
    pub service_ns: u64,
    /// The request's place in the workload.
    pub index: u32,
    /// The class the schedule gave it, whatever the classifier made of it.
    pub class: u8,
    /// Whether it was refused instead of served.
    pub shed: bool,
}

/// A schedule to be replayed, one part per receive queue.
#[derive(Debug)]
pub struct Replay {
    shared: Arc<Shared>,
    clock: Clock,
}

impl Replay {
    /// Replays `schedules`, one per receive queue, each ordered by `at_ns`.
    ///
    /// # Errors
    ///
    /// When a schedule is out of order, or the system refuses an event descriptor.
    pub fn new(schedules: Vec<Vec<ReplayArrival>>) -> io::Result<(Replay, ReplayControl)> {
        let queues = schedules
            .into_iter()
            .map(Queue::new)
            .collect::<io::Result<_>>()?;
        let shared = Arc::new(Shared {
            start_ns: AtomicU64::new(NOT_STARTED),
            queues,
            completions: Mutex::new(Vec::new()),
        });
        let control = ReplayControl {
            shared: Arc::clone(&shared),
        };
        Ok((
            Replay {
                shared,
                clock: Clock::global(),
            },
            control,
        ))
    }
}

impl Datapath for Replay {
    type Rx = ReplayRx;
    type Tx = ReplayTx;

    fn split(self, rx_queues: usize, tx: usize) -> io::Result<Queues<ReplayRx, ReplayTx>> {
        let schedules = self.shared.queues.len();
        if rx_queues != schedules {
            let what = format!("{schedules} schedules cannot feed {rx_queues} receive queues");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let rxs = (0..rx_queues)
            .map(|queue| Arc::new(ReplayRx::new(Arc::clone(&self.shared), queue, self.clock)))
            .collect();
        let fair_share = self.shared.total() / tx.max(1);
        let txs = (0..tx)
            .map(|_| ReplayTx::new(Arc::clone(&self.shared), fair_share))
            .collect();
        Ok((rxs, txs))
    }
}

/// Starts a replay and collects what came of it.
#[derive(Debug, Clone)]
pub struct ReplayControl {
    shared: Arc<Shared>,
}

impl ReplayControl {
    /// Lets the schedules begin at `start_ns` on the scale of [`Clock::global`]; until then nothing arrives.
    pub fn start(&self, start_ns: u64) {
        self.shared.start_ns.store(start_ns, Ordering::Release);
        for queue in &self.shared.queues {
            queue.waker.wake();
        }
    }

    /// The requests of all schedules.
    pub fn total(&self) -> usize {
        self.shared.total()
    }

    /// The requests handed out so far.
    pub fn taken(&self) -> usize {
        self.shared.queues.iter().map(Queue::taken).sum()
    }

    /// What the ways out have recorded, in no particular order; each hands over its records when it is dropped, so
    /// join the threads first. Leaves nothing for a second call.
    pub fn take_completions(&self) -> Vec<Completion> {
        let mut completions = self
            .shared
            .completions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *completions)
    }
}

const NOT_STARTED: u64 = u64::MAX;

/// What the queues, the ways out and the control have in common.
#[derive(Debug)]
struct Shared {
    start_ns: AtomicU64,
    queues: Vec<Queue>,
    completions: Mutex<Vec<Completion>>,
}

impl Shared {
    fn total(&self) -> usize {
        self.queues.iter().map(|queue| queue.arrivals.len()).sum()
    }

    fn start_ns(&self) -> Option<u64> {
        Some(self.start_ns.load(Ordering::Acquire)).filter(|start_ns| *start_ns != NOT_STARTED)
    }
}

/// A schedule and how far it has been handed out. On lines of its own: thieves move other queues' cursors.
#[derive(Debug)]
#[repr(align(128))]
struct Queue {
    cursor: AtomicUsize,
    arrivals: Box<[ReplayArrival]>,
    waker: Waker,
}

impl Queue {
    fn new(arrivals: Vec<ReplayArrival>) -> io::Result<Queue> {
        if let Some(i) = arrivals
            .windows(2)
            .position(|pair| pair[0].at_ns > pair[1].at_ns)
        {
            let (before, after) = (arrivals[i].at_ns, arrivals[i + 1].at_ns);
            let what = format!(
                "arrival {} of a schedule is at {after} ns, before its predecessor at {before} ns; \
                 sort schedules by time",
                i + 1
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let arrivals = arrivals.into_boxed_slice();
        Ok(Queue {
            cursor: AtomicUsize::new(0),
            arrivals,
            waker: Waker::new()?,
        })
    }

    fn taken(&self) -> usize {
        self.cursor.load(Ordering::Relaxed)
    }

    fn remaining(&self) -> &[ReplayArrival] {
        &self.arrivals[self.taken()..]
    }

    /// Claims up to `max` arrivals due `elapsed_ns` after the start, for one caller each.
    fn claim(&self, elapsed_ns: u64, max: usize) -> &[ReplayArrival] {
        let mut cursor = self.taken();
        loop {
            let due = due(&self.arrivals[cursor..], elapsed_ns, max);
            if due.is_empty() {
                return due;
            }
            // The schedule is never written, so the claim itself is all that needs to be atomic.
            match self.cursor.compare_exchange_weak(
                cursor,
                cursor + due.len(),
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return due,
                Err(moved) => cursor = moved,
            }
        }
    }
}

fn due(arrivals: &[ReplayArrival], elapsed_ns: u64, max: usize) -> &[ReplayArrival] {
    let count = arrivals
        .iter()
        .take(max)
        .take_while(|next| next.at_ns <= elapsed_ns)
        .count();
    &arrivals[..count]
}

#[cfg(test)]
mod tests;
