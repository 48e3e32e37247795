//! Tardis: nobody dispatches. Workers take batches from the global queue, then steal, and a timer
//! of their own interrupts them; what it interrupts is back in the global queue.

use super::{StealAmount, Stealing};
use crate::server::Job;
use crate::server::role::{Local, Next, Queues, Slicing, WithoutHearing};

/// Batches of N from the shared queue into the own one; the own one first, others' last.
#[derive(Clone, Debug)]
pub struct Batches {
    batch: usize,
    slice_ns: u64,
    thief: Stealing,
}

impl Batches {
    /// Takes `batch` requests at a time and runs each for at most `slice_ns`, both above 0.
    /// `seed` must differ from worker to worker.
    #[must_use]
    pub fn new(batch: usize, slice_ns: u64, seed: u64) -> Self {
        Self {
            batch,
            slice_ns,
            thief: Stealing::new(StealAmount::Half, seed),
        }
    }
}

impl Local for Batches {
    const STEALS: bool = true;

    fn next<Q: Queues>(&mut self, now_ns: u64, queues: &mut Q) -> Next {
        if queues.len(queues.me()) == 0 {
            for _ in 0..self.batch {
                let Some(job) = queues.pop_shared(0) else {
                    break;
                };
                queues.push(job);
            }
        }
        match self.thief.next(now_ns, queues) {
            Next::Run { job, .. } => Next::Run {
                job,
                slice_ns: Some(self.slice_ns),
            },
            other => other,
        }
    }

    fn yielded<Q: Queues>(&mut self, _now_ns: u64, _job: &Job, _queues: &mut Q) -> bool {
        false
    }

    fn finished<Q: Queues>(&mut self, _now_ns: u64, _job: &Job, _cpu_ns: u64, _queues: &mut Q) {}

    fn adopt(&mut self, fresh: &Self) {
        self.batch = fresh.batch;
        self.slice_ns = fresh.slice_ns;
    }
}

impl WithoutHearing for Batches {}

impl Slicing for Batches {
    const SLICES: bool = true;
    const RENEWS_ALONE: bool = false;

    fn renew<Q: Queues>(&mut self, _now_ns: u64, queues: &Q) -> Option<u64> {
        let (popped, pushed) = queues.shared_counters(0);
        let alone = popped == pushed && queues.len(queues.me()) == 0;
        alone.then_some(self.slice_ns)
    }
}
