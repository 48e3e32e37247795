//! Arrivals from a schedule instead of a network.
//!
//! A replay shows a live policy's effect without the kernel's network stack, which costs several microseconds a
//! request: the same dispatcher, classifiers and workers run, and requests "arrive" at the times that a workload
//! generator drew. Latency counts from the intended time, so a dispatcher that is late to poll is charged for it (no
//! coordinated omission).

mod rx;
mod schedule;
mod tx;

use std::io;
use std::sync::Arc;

use headway_machine::Clock;

pub use rx::ReplayRx;
pub use schedule::{Completion, ReplayArrival};
pub use tx::ReplayTx;

use crate::datapath::{Datapath, DatapathEnds, Rx, Tx};
use schedule::{Queue, ReplayState};

/// A schedule to be replayed, one part per receive queue.
#[derive(Debug)]
pub struct Replay {
    shared: Arc<ReplayState>,
    clock: Clock,
}

impl Replay {
    /// Replays `schedules`, one per receive queue, each ordered by `at_ns`.
    ///
    /// # Errors
    ///
    /// When a schedule is out of order, or the system refuses an event descriptor.
    pub fn new(schedules: Vec<Vec<ReplayArrival>>) -> io::Result<(Replay, ReplayControl)> {
        let shared = Arc::new(ReplayState::new(schedules)?);
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
    fn split(self: Box<Self>, rx_queues: usize, tx: usize) -> io::Result<DatapathEnds> {
        let schedules = self.shared.queues().len();
        if rx_queues != schedules {
            let what = format!("{schedules} schedules cannot feed {rx_queues} receive queues");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let rxs = (0..rx_queues)
            .map(|queue| {
                let rx = ReplayRx::new(Arc::clone(&self.shared), queue, self.clock);
                Arc::new(rx) as Arc<dyn Rx>
            })
            .collect();
        let fair_share = self.shared.total() / tx.max(1);
        let txs = (0..tx)
            .map(|_| {
                let tx = ReplayTx::new(Arc::clone(&self.shared), fair_share);
                Box::new(tx) as Box<dyn Tx>
            })
            .collect();
        Ok(DatapathEnds { rxs, txs })
    }
}

/// Starts a replay and collects its completions.
#[derive(Debug, Clone)]
pub struct ReplayControl {
    shared: Arc<ReplayState>,
}

impl ReplayControl {
    /// Lets the schedules begin at `start_ns` on the scale of [`Clock::global`]; until then nothing arrives.
    pub fn start(&self, start_ns: u64) {
        self.shared.start(start_ns);
    }

    /// The requests of all schedules.
    pub fn total(&self) -> usize {
        self.shared.total()
    }

    /// The requests handed out so far.
    pub fn taken(&self) -> usize {
        self.shared.queues().iter().map(Queue::taken).sum()
    }

    /// Takes the records of the sending ends, in no particular order. Each end hands over its records when it is dropped,
    /// so join the threads first. A second call finds none.
    pub fn take_completions(&self) -> Vec<Completion> {
        std::mem::take(&mut *self.shared.completions())
    }
}

#[cfg(test)]
mod tests;
