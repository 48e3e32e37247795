//! Processor sharing on one worker, by slices the worker ends itself (Tiny Quanta).

use crate::server::Job;
use crate::server::role::{Local, Next, Queues, Slicing, WithoutHearing};

/// Goes round the own queue, a slice each; a slice is renewed while nothing else waits there.
#[derive(Clone, Copy, Debug)]
pub struct RoundRobin {
    slice_ns: u64,
}

impl RoundRobin {
    /// Slices of `slice_ns`, above 0.
    #[must_use]
    pub fn new(slice_ns: u64) -> Self {
        Self { slice_ns }
    }
}

impl Local for RoundRobin {
    const STEALS: bool = false;

    #[inline]
    fn next<Q: Queues>(&mut self, _now_ns: u64, queues: &mut Q) -> Next {
        let slice_ns = Some(self.slice_ns);
        queues
            .pop()
            .map_or(Next::Idle, |job| Next::Run { job, slice_ns })
    }

    #[inline]
    fn yielded<Q: Queues>(&mut self, _now_ns: u64, job: &Job, queues: &mut Q) -> bool {
        queues.push(job.id);
        true
    }

    fn finished<Q: Queues>(&mut self, _now_ns: u64, _job: &Job, _cpu_ns: u64, _queues: &mut Q) {}

    fn adopt(&mut self, fresh: &Self) {
        self.slice_ns = fresh.slice_ns;
    }
}

impl WithoutHearing for RoundRobin {}

impl Slicing for RoundRobin {
    const SLICES: bool = true;
    const RENEWS_ALONE: bool = true;

    #[inline]
    fn renew<Q: Queues>(&mut self, _now_ns: u64, queues: &Q) -> Option<u64> {
        (queues.len(queues.me()) == 0).then_some(self.slice_ns)
    }
}
