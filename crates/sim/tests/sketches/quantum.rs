//! The quantum as Shinjuku and Concord have it: interrupted when it is over and something waits,
//! renewed in full otherwise.

use crate::Sight;
use headway_policy::role::{Monitor, Preempt, Queues};
use headway_policy::{Job, WorkerId};

pub(crate) struct Quantum {
    quantum_ns: u64,
    /// Per worker the assignment under way and when its quantum is over.
    running: Vec<Option<(u64, u64)>>,
}

impl Quantum {
    pub(crate) fn new(workers: usize, quantum_ns: u64) -> Self {
        Self {
            quantum_ns,
            running: vec![None; workers],
        }
    }

    /// Something waits that could run instead, at the ingress or at the worker itself.
    pub(crate) fn is_due(sight: &Sight) -> bool {
        sight.waiting + sight.own > 0
    }
}

impl Monitor for Quantum {
    fn started(&mut self, now_ns: u64, worker: WorkerId, _job: &Job, epoch: u64) {
        self.running[worker.index()] = Some((epoch, now_ns + self.quantum_ns));
    }

    fn stopped(&mut self, _now_ns: u64, worker: WorkerId, _epoch: u64) {
        self.running[worker.index()] = None;
    }

    fn poll<Q: Queues>(&mut self, now_ns: u64, waiting: usize, queues: &Q) -> Option<Preempt> {
        for (index, running) in self.running.iter_mut().enumerate() {
            let worker = WorkerId(index as u16);
            match running {
                Some((_, until_ns)) if *until_ns > now_ns => {}
                Some((epoch, _)) if waiting + queues.len(worker) > 0 => {
                    let epoch = *epoch;
                    *running = None;
                    return Some(Preempt { worker, epoch });
                }
                Some((_, until_ns)) => *until_ns = now_ns + self.quantum_ns,
                None => {}
            }
        }
        None
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        let deadlines = self.running.iter().flatten();
        deadlines.map(|&(_, until_ns)| until_ns).min()
    }
}
