//! SYNERGY's timer core (Algorithm 5.3): interrupts longs whose worker has something else to do,
//! and watches the wait queues.

use crate::role::{Ingress, Monitor, Queues, Verdict};
use crate::{BitSet, Job, WorkerId};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What workers and timer core tell each other. Each flag has one writer.
#[derive(Debug)]
pub struct Feedback {
    /// The wait queues that are congested, a bit each (written by the timer core): the paper's `check_wait_queue`.
    congested: AtomicU64,
    wait_queues: usize,
    /// Per worker the moving average of its shorts, ns, 0 before the first (written by the worker).
    short_ns: Vec<AtomicU64>,
}

impl Feedback {
    /// Most wait queues there can be.
    pub const MOST_WAIT_QUEUES: usize = u64::BITS as usize;

    /// Nothing is known yet.
    ///
    /// # Panics
    /// When there are no wait queues, or more than [`MOST_WAIT_QUEUES`](Self::MOST_WAIT_QUEUES).
    #[must_use]
    pub fn new(workers: usize, wait_queues: usize) -> Self {
        assert!(
            (1..=Self::MOST_WAIT_QUEUES).contains(&wait_queues),
            "1 to 64 wait queues, not {wait_queues}"
        );
        Self {
            congested: AtomicU64::new(0),
            wait_queues,
            short_ns: (0..workers).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// The wait queues whose longs come before new requests, a bit each.
    #[inline]
    #[must_use]
    pub fn congested(&self) -> u64 {
        self.congested.load(Relaxed)
    }

    /// How many wait queues there are: one for each kind of longs, or one for all of them.
    #[inline]
    #[must_use]
    pub fn wait_queues(&self) -> usize {
        self.wait_queues
    }

    /// Average of a worker's shorts, ns; 0 before the first.
    #[inline]
    #[must_use]
    pub fn short_ns(&self, worker: WorkerId) -> u64 {
        self.short_ns[worker.index()].load(Relaxed)
    }

    #[inline]
    pub(crate) fn set_short_ns(&self, worker: WorkerId, average_ns: u64) {
        self.short_ns[worker.index()].store(average_ns, Relaxed);
    }
}

/// The knobs of § 5.4.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimerRules {
    /// Quantum of a long, in averages of the worker's shorts (`QUANTUM_FACTOR`).
    pub factor: f64,
    /// The same while a wait queue is congested (`CONGESTED_QUANTUM_FACTOR`).
    pub congested_factor: f64,
    /// A wait queue is congested when what was produced so long ago is not consumed
    /// (`THRESH_WQD`), ns; 0: never.
    pub thresh_wqd_ns: u64,
    /// Quantum before the first short, and without dynamic quanta.
    pub first_quantum_ns: u64,
    /// Quanta follow the shorts (the ablation's QA); else every request is timed.
    pub dynamic: bool,
    /// Interrupts only where the own queue holds something (the ablation's CP).
    pub conditional: bool,
}

/// Algorithm 5.3.
pub struct TimerCore {
    rules: TimerRules,
    feedback: Arc<Feedback>,
    longs: BitSet,
    next_look_ns: Option<u64>,
    /// Each wait queue's producer index at the last look.
    produced: Vec<u64>,
}

impl TimerCore {
    /// Watches requests of the classes in `longs`.
    #[must_use]
    pub fn new(rules: TimerRules, longs: BitSet, feedback: Arc<Feedback>) -> Self {
        Self {
            rules,
            longs,
            next_look_ns: (rules.thresh_wqd_ns > 0).then_some(rules.thresh_wqd_ns),
            produced: vec![0; feedback.wait_queues()],
            feedback,
        }
    }

    #[inline]
    fn quantum_ns(&self, worker: WorkerId) -> u64 {
        let factor = match self.feedback.congested() {
            0 => self.rules.factor,
            _ => self.rules.congested_factor,
        };
        match self.feedback.short_ns(worker) {
            short_ns @ 1.. if self.rules.dynamic => ((factor * short_ns as f64) as u64).max(1),
            _ => self.rules.first_quantum_ns,
        }
    }
}

impl TimerCore {
    /// Whether a verdict on a long holds until something enters its worker's queue: that alone interrupts, and the
    /// worker finishes no short meanwhile.
    fn lasts(&self) -> bool {
        let same_factor = self.rules.factor == self.rules.congested_factor;
        self.rules.conditional && (same_factor || self.rules.thresh_wqd_ns == 0)
    }

    /// Whether some wait queue holds something.
    fn some_wait<Q: Queues>(&self, queues: &Q) -> bool {
        (0..self.produced.len()).any(|queue| {
            let (consumed, produced) = queues.shared_counters(queue);
            consumed < produced
        })
    }
}

impl Monitor for TimerCore {
    const ON_DISPATCHER: bool = false;

    /// Shorts run to completion: only what the application bracketed as long is timed (§ 4.3).
    #[inline]
    fn started(&mut self, _now_ns: u64, worker: WorkerId, job: &Job, _epoch: u64) -> Option<u64> {
        let timed = !self.rules.dynamic || self.longs.contains(job.class.index());
        timed.then(|| self.quantum_ns(worker))
    }

    #[inline]
    fn expired<I: Ingress, Q: Queues>(
        &mut self,
        _now_ns: u64,
        worker: WorkerId,
        _ingress: &I,
        queues: &Q,
    ) -> Verdict {
        let waits = queues.len(worker) > 0 || !self.rules.conditional && self.some_wait(queues);
        match waits {
            true => Verdict::Preempt,
            false if self.lasts() => Verdict::RenewAlone(self.quantum_ns(worker)),
            false => Verdict::Renew(self.quantum_ns(worker)),
        }
    }

    fn next_deadline_ns(&self) -> Option<u64> {
        self.next_look_ns
    }

    /// Compares indices of each wait queue: has what was there a threshold ago been taken?
    fn tick<Q: Queues>(&mut self, now_ns: u64, queues: &Q) {
        let mut congested = 0;
        for (queue, before) in self.produced.iter_mut().enumerate() {
            let (consumed, produced) = queues.shared_counters(queue);
            congested |= u64::from(consumed < *before) << queue;
            *before = produced;
        }
        self.feedback.congested.store(congested, Relaxed);
        self.next_look_ns = Some(now_ns + self.rules.thresh_wqd_ns);
    }
}
