//! Algorithm 5.3: watches the wait queue, interrupts longs whose worker has something else to do.

use super::{Flags, Params};
use crate::LONG;
use headway_policy::role::{Monitor, Preempt, Queues};
use headway_policy::{Job, WorkerId};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

pub(super) struct TimerCore {
    params: Params,
    flags: Arc<Flags>,
    /// Per worker the long under way: its assignment, when its quantum is over.
    longs: Vec<Option<(u64, u64)>>,
    next_look_ns: u64,
    /// The wait queue's producer index at the last look.
    produced: u64,
}

impl TimerCore {
    pub(super) fn new(workers: usize, params: Params, flags: Arc<Flags>) -> Self {
        let never = params.thresh_wqd_ns == 0;
        Self {
            params,
            flags,
            longs: vec![None; workers],
            next_look_ns: if never {
                u64::MAX
            } else {
                params.thresh_wqd_ns
            },
            produced: 0,
        }
    }

    fn quantum_ns(&self, worker: usize) -> u64 {
        let factor = match self.flags.check_wait_queue.load(Relaxed) {
            true => self.params.congested_factor,
            false => self.params.factor,
        };
        match self.flags.short_ns[worker].load(Relaxed) {
            0 => self.params.first_quantum_ns,
            short_ns => factor * short_ns,
        }
    }

    fn look_at_wait_queue<Q: Queues>(&mut self, now_ns: u64, queues: &Q) {
        if now_ns >= self.next_look_ns {
            let (consumed, produced) = queues.shared_counters();
            let congested = consumed < self.produced;
            self.flags.check_wait_queue.store(congested, Relaxed);
            self.produced = produced;
            self.next_look_ns = now_ns + self.params.thresh_wqd_ns;
        }
    }
}

impl Monitor for TimerCore {
    fn started(&mut self, now_ns: u64, worker: WorkerId, job: &Job, epoch: u64) {
        let until_ns = now_ns + self.quantum_ns(worker.index());
        self.longs[worker.index()] = (job.class.0 == LONG).then_some((epoch, until_ns));
    }

    fn stopped(&mut self, _now_ns: u64, worker: WorkerId, _epoch: u64) {
        self.longs[worker.index()] = None;
    }

    fn poll<Q: Queues>(&mut self, now_ns: u64, _: usize, queues: &Q) -> Option<Preempt> {
        self.look_at_wait_queue(now_ns, queues);
        for index in 0..self.longs.len() {
            let worker = WorkerId(index as u16);
            match self.longs[index] {
                Some((epoch, until_ns)) if until_ns <= now_ns => {
                    if queues.len(worker) > 0 {
                        self.longs[index] = None;
                        return Some(Preempt { worker, epoch });
                    }
                    self.longs[index] = Some((epoch, now_ns + self.quantum_ns(index)));
                }
                _ => {}
            }
        }
        None
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let longs = self.longs.iter().flatten().map(|&(_, until_ns)| until_ns);
        longs.chain([self.next_look_ns]).min()
    }
}
