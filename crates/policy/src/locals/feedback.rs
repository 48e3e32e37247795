//! A worker of SYNERGY: Algorithm 5.2, and the average of its shorts.

use super::Fifo;
use crate::monitors::Feedback;
use crate::role::{Local, Next, Queues, Steal};
use crate::{BitSet, Job, WorkerId};
use alloc::sync::Arc;

/// What a worker of SYNERGY does and does not do: the parts of the ablation (§ 6.5).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkerRules {
    /// Steals from queues longer than `steal_threshold` (the ablation's WS).
    pub steals: bool,
    /// Only from queues longer than this.
    pub steal_threshold: usize,
    /// A preempted long goes to the wait queue (the ablation's WQ), else to the tail of the own.
    pub wait_queue: bool,
    /// Weight of a new short in the average, 0 to 1.
    pub alpha: f64,
}

/// Algorithm 5.2: the wait queue if it is congested, the own queue, the wait queue, others'.
#[derive(Clone, Debug)]
pub struct SynergyWorker {
    me: WorkerId,
    rules: WorkerRules,
    longs: BitSet,
    feedback: Arc<Feedback>,
}

impl SynergyWorker {
    /// The state of worker `me`; classes in `longs` do not enter the average.
    #[must_use]
    pub fn new(me: WorkerId, rules: WorkerRules, longs: BitSet, feedback: Arc<Feedback>) -> Self {
        Self {
            me,
            rules,
            longs,
            feedback,
        }
    }

    /// Lines 10–15: round-robin from the next worker on, half of the first queue that is long
    /// enough.
    fn steal<Q: Queues>(&self, queues: &mut Q) -> Steal {
        let workers = queues.workers();
        for offset in 1..workers {
            let victim = WorkerId(((self.me.index() + offset) % workers) as u16);
            let waiting = queues.len(victim);
            if waiting > self.rules.steal_threshold {
                match queues.try_steal(victim, waiting.div_ceil(2)) {
                    Steal::Empty => {}
                    taken => return taken,
                }
            }
        }
        Steal::Empty
    }
}

impl Local for SynergyWorker {
    const STEALS: bool = true;

    #[inline]
    fn next<Q: Queues>(&mut self, now_ns: u64, queues: &mut Q) -> Next {
        let resumed = match self.feedback.wait_queue_first() {
            true => queues.pop_shared(),
            false => None,
        };
        let own = resumed.or_else(|| queues.pop());
        if let Some(job) = own.or_else(|| queues.pop_shared()) {
            let slice_ns = None;
            return Next::Run { job, slice_ns };
        }
        if !self.rules.steals {
            return Next::Idle;
        }
        match self.steal(queues) {
            Steal::Batch(_) => Fifo.next(now_ns, queues),
            Steal::Retry => Next::Retry,
            Steal::Empty => Next::Idle,
        }
    }

    #[inline]
    fn yielded<Q: Queues>(&mut self, _now_ns: u64, job: &Job, queues: &mut Q) -> bool {
        match self.rules.wait_queue {
            true => queues.push_shared(job.id),
            false => queues.push(job.id),
        }
        true
    }

    /// The first sample starts the average.
    #[inline]
    fn finished(&mut self, _now_ns: u64, job: &Job, cpu_ns: u64) {
        if self.longs.contains(job.class.index()) {
            return;
        }
        let next_ns = match self.feedback.short_ns(self.me) {
            0 => cpu_ns,
            before_ns => {
                let (before, sample) = (before_ns as f64, cpu_ns as f64);
                (before + self.rules.alpha * (sample - before)) as u64
            }
        };
        self.feedback.set_short_ns(self.me, next_ns);
    }
}
