//! Algorithm 5.2: what a worker runs next, and the average of its shorts.

use super::{Flags, Params};
use crate::LONG;
use headway_policy::locals::Fifo;
use headway_policy::role::{Local, Next, Queues, Steal};
use headway_policy::{Job, WorkerId};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(super) struct Worker {
    pub(super) me: usize,
    pub(super) params: Params,
    pub(super) flags: Arc<Flags>,
}

impl Worker {
    /// Algorithm 5.2, lines 10–15.
    fn steal<Q: Queues>(&self, queues: &mut Q) -> Steal {
        for i in 1..queues.workers() {
            let victim = WorkerId(((self.me + i) % queues.workers()) as u16);
            let waiting = queues.len(victim);
            if waiting > self.params.steal_threshold {
                match queues.try_steal(victim, waiting.div_ceil(2)) {
                    Steal::Empty => {}
                    taken => return taken,
                }
            }
        }
        Steal::Empty
    }
}

impl Local for Worker {
    const STEALS: bool = true;

    fn next<Q: Queues>(&mut self, now_ns: u64, queues: &mut Q) -> Next {
        let first = self.flags.check_wait_queue.load(Relaxed);
        let resumed = if first { queues.pop_shared() } else { None };
        let own = resumed.or_else(|| queues.pop());
        if let Some(job) = own.or_else(|| queues.pop_shared()) {
            let slice_ns = None;
            return Next::Run { job, slice_ns };
        }
        match self.steal(queues) {
            Steal::Batch(_) => Fifo.next(now_ns, queues),
            Steal::Retry => Next::Retry,
            Steal::Empty => Next::Idle,
        }
    }

    fn yielded<Q: Queues>(&mut self, _: u64, job: &Job, _: u64, queues: &mut Q) -> bool {
        queues.push_shared(job.id);
        true
    }

    fn finished(&mut self, _now_ns: u64, job: &Job, cpu_ns: u64) {
        if job.class.0 != LONG {
            let average = &self.flags.short_ns[self.me];
            let next_ns = match average.load(Relaxed) {
                0 => cpu_ns,
                before_ns => (7 * before_ns + cpu_ns) / 8,
            };
            average.store(next_ns, Relaxed);
        }
    }
}
