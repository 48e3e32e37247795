//! SYNERGY's timer core (Algorithm 5.3): interrupts longs whose worker has something else to do,
//! and watches the wait queues.

use crate::BitSet;
use crate::server::role::{
    Backlog, Heeding, Ingress, Monitor, PreemptionDecision, Ticking, WithoutPolls,
};
use crate::server::{Job, WorkerId};
use alloc::vec;
use alloc::vec::Vec;

/// Most wait queues there can be: [`Backlog::congested`] has a bit for each.
pub const MOST_WAIT_QUEUES: usize = u64::BITS as usize;

/// Least quantum that follows the shorts, ns: once the shortest of the paper's requests (0.5 µs, of its ZippyDB). At the end of each a long looks at its queue,
/// which took 0.15 µs where it was measured (docs/lab/2026-11-26-engines.md): beside shorts that do nothing, it would do little else.
pub const LEAST_DYNAMIC_QUANTUM_NS: u64 = 500;

/// The knobs of § 5.4.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimerRules {
    /// Quantum of a long, in averages of the worker's shorts (`QUANTUM_FACTOR`); [`LEAST_DYNAMIC_QUANTUM_NS`] at least.
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
#[derive(Clone)]
pub struct TimerCore {
    rules: TimerRules,
    /// Long by hints.
    longs: BitSet,
    /// Whether workers find out about others.
    learns: bool,
    next_look_ns: Option<u64>,
    /// Each wait queue's producer index at the last look.
    produced: Vec<u64>,
}

impl TimerCore {
    /// Watches requests of the classes in `longs`, and of those that workers tell of as long if it `learns` from them; and so many wait queues.
    ///
    /// # Panics
    /// When there are no wait queues, or more than [`MOST_WAIT_QUEUES`].
    #[must_use]
    pub fn new(rules: TimerRules, longs: BitSet, learns: bool, wait_queues: usize) -> Self {
        assert!(
            (1..=MOST_WAIT_QUEUES).contains(&wait_queues),
            "1 to {MOST_WAIT_QUEUES} wait queues, not {wait_queues}"
        );
        Self {
            rules,
            longs,
            learns,
            next_look_ns: (rules.thresh_wqd_ns > 0).then_some(rules.thresh_wqd_ns),
            produced: vec![0; wait_queues],
        }
    }

    #[inline]
    fn quantum_ns<Q: Backlog>(&self, worker: WorkerId, queues: &Q) -> u64 {
        let factor = match queues.congested() {
            0 => self.rules.factor,
            _ => self.rules.congested_factor,
        };
        match queues.short_ns(worker) {
            short_ns @ 1.. if self.rules.dynamic => {
                ((factor * short_ns as f64) as u64).max(LEAST_DYNAMIC_QUANTUM_NS)
            }
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
    fn some_wait<Q: Backlog>(&self, queues: &Q) -> bool {
        (0..self.produced.len()).any(|queue| {
            let (consumed, produced) = queues.shared_counters(queue);
            consumed < produced
        })
    }
}

impl Monitor for TimerCore {
    const PREEMPTS: bool = true;
    const ON_DISPATCHER: bool = false;

    fn keeps_times(&self) -> bool {
        true
    }

    /// Shorts run to completion: only what is long is timed (§ 4.3), be it as it said itself, by hints or as workers found.
    #[inline]
    fn started<Q: Backlog>(
        &mut self,
        _now_ns: u64,
        worker: WorkerId,
        job: &Job,
        _epoch: u64,
        queues: &Q,
    ) -> Option<u64> {
        let timed = !self.rules.dynamic
            || job.said_long
            || self.longs.contains(job.class.index())
            || self.learns && queues.is_long(worker, job.class);
        timed.then(|| self.quantum_ns(worker, queues))
    }

    #[inline]
    fn expired<I: Ingress, Q: Backlog>(
        &mut self,
        _now_ns: u64,
        worker: WorkerId,
        _ingress: &I,
        queues: &Q,
    ) -> PreemptionDecision {
        let waits = queues.len(worker) > 0 || !self.rules.conditional && self.some_wait(queues);
        if waits {
            return PreemptionDecision::Preempt;
        }
        let quantum_ns = self.quantum_ns(worker, queues);
        if self.lasts() {
            PreemptionDecision::RenewAlone(quantum_ns)
        } else {
            PreemptionDecision::Renew(quantum_ns)
        }
    }

    fn stopped(&mut self, _now_ns: u64, _worker: WorkerId, _epoch: u64) {}

    /// Another threshold begins another window: its first look, which is due at once, finds nothing congested.
    fn adopt(&mut self, fresh: &Self) {
        if self.rules.thresh_wqd_ns != fresh.rules.thresh_wqd_ns {
            self.produced.fill(0);
            self.next_look_ns = Some(0);
        }
        self.rules = fresh.rules;
    }
}

impl WithoutPolls for TimerCore {}

impl Heeding for TimerCore {
    const HEEDS: bool = true;

    /// From that moment on it is timed as a long (§ 5.1). What was timed before by its class goes on by its class' time.
    #[inline]
    fn said_long<Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        job: &Job,
        epoch: u64,
        queues: &Q,
    ) -> Option<u64> {
        let as_short = Job {
            said_long: false,
            ..*job
        };
        match self.started(now_ns, worker, &as_short, epoch, queues) {
            Some(_) => None,
            None => Some(self.quantum_ns(worker, queues)),
        }
    }
}

impl Ticking for TimerCore {
    fn next_deadline_ns(&self) -> Option<u64> {
        self.next_look_ns
    }

    /// Compares indices of each wait queue: has what was there a threshold ago been taken?
    fn tick<Q: Backlog>(&mut self, now_ns: u64, queues: &Q) -> u64 {
        let mut congested = 0;
        for (queue, before) in self.produced.iter_mut().enumerate() {
            let (consumed, produced) = queues.shared_counters(queue);
            congested |= u64::from(consumed < *before) << queue;
            *before = produced;
        }
        // Without a threshold this was the last look, after a change of the rules.
        let again = self.rules.thresh_wqd_ns > 0;
        self.next_look_ns = again.then_some(now_ns + self.rules.thresh_wqd_ns);
        congested
    }
}
