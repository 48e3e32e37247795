//! The schedules of a replay, shared by its queues, its sending ends and its control.

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::waker::Waker;

/// One request of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayArrival {
    /// When it arrives, in nanoseconds after the start.
    pub at_ns: u64,
    /// Its service time, in nanoseconds.
    pub service_ns: u64,
    /// Its index in the workload, as in the wire header.
    pub index: u32,
    /// Its class, as in the wire header.
    pub class: u8,
}

/// A served or refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// From the intended arrival to the response (or refusal), in nanoseconds.
    pub latency_ns: u64,
    /// The request's service time, in nanoseconds.
    pub service_ns: u64,
    /// The request's index in the workload.
    pub index: u32,
    /// Its class in the schedule, which may differ from the classifier's.
    pub class: u8,
    /// Whether it was refused instead of served.
    pub shed: bool,
}

const NOT_STARTED: u64 = u64::MAX;

/// The state that the receive queues, the sending ends and the control share.
#[derive(Debug)]
pub(super) struct ReplayState {
    start_ns: AtomicU64,
    queues: Vec<Queue>,
    completions: Mutex<Vec<Completion>>,
}

impl ReplayState {
    /// Checks the schedules, one per receive queue. Nothing arrives before [`start`](Self::start).
    pub(super) fn new(schedules: Vec<Vec<ReplayArrival>>) -> io::Result<ReplayState> {
        let queues = schedules.into_iter().map(Queue::new);
        Ok(ReplayState {
            start_ns: AtomicU64::new(NOT_STARTED),
            queues: queues.collect::<io::Result<_>>()?,
            completions: Mutex::new(Vec::new()),
        })
    }

    pub(super) fn start(&self, start_ns: u64) {
        self.start_ns.store(start_ns, Ordering::Release);
        for queue in &self.queues {
            queue.waker.wake();
        }
    }

    pub(super) fn queues(&self) -> &[Queue] {
        &self.queues
    }

    pub(super) fn completions(&self) -> MutexGuard<'_, Vec<Completion>> {
        self.completions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn total(&self) -> usize {
        self.queues.iter().map(|queue| queue.arrivals.len()).sum()
    }

    pub(super) fn start_ns(&self) -> Option<u64> {
        Some(self.start_ns.load(Ordering::Acquire)).filter(|start_ns| *start_ns != NOT_STARTED)
    }
}

/// A schedule and the cursor of its next arrival, on cache lines of its own: thieves move other queues' cursors.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Queue {
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

    pub(super) fn waker(&self) -> &Waker {
        &self.waker
    }

    pub(super) fn taken(&self) -> usize {
        self.cursor.load(Ordering::Relaxed)
    }

    pub(super) fn remaining(&self) -> &[ReplayArrival] {
        &self.arrivals[self.taken()..]
    }

    /// Claims up to `max` arrivals due `elapsed_ns` after the start, for one caller each.
    pub(super) fn claim(&self, elapsed_ns: u64, max: usize) -> &[ReplayArrival] {
        let mut cursor = self.taken();
        loop {
            let due = due(&self.arrivals[cursor..], elapsed_ns, max);
            if due.is_empty() {
                return due;
            }
            // The schedule is read-only, so only the claim needs to be atomic.
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
