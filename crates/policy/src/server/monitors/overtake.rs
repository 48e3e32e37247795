//! Preemption at arrivals: what is more urgent does not wait for what is less.

use crate::BitSet;
use crate::server::disciplines::{Deadlines, Key};
use crate::server::role::{
    Backlog, Ingress, Monitor, Polling, Preempt, PreemptionDecision, Ticking, WithoutFeedback,
};
use crate::server::{Job, JobId, WorkerId};
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// Which of two requests is more urgent.
#[derive(Clone, Debug)]
pub enum Urgency {
    /// The one that wants less service: SRPT.
    Remaining,
    /// The one whose deadline is earlier: EDF.
    Deadline(Deadlines),
    /// A short before a long, of these classes; among longs that run, the one that was begun last
    /// goes on (Perséphone § 6).
    Long(BitSet),
}

impl Urgency {
    /// Rank of the request when it starts to run now; the greatest is interrupted first.
    #[inline]
    fn of_running(&self, now_ns: u64, job: &Job) -> u64 {
        match self {
            Self::Remaining => now_ns.saturating_add(job.remaining_ns()),
            Self::Deadline(deadlines) => deadlines.of(job),
            Self::Long(longs) if longs.contains(job.class.index()) => u64::MAX - now_ns,
            Self::Long(_) => 0,
        }
    }

    /// The request interrupts whoever ranks above this.
    #[inline]
    fn of_waiting(&self, now_ns: u64, job: &Job) -> u64 {
        match self {
            Self::Remaining => now_ns.saturating_add(job.remaining_ns()),
            Self::Deadline(deadlines) => deadlines.of(job),
            Self::Long(longs) if longs.contains(job.class.index()) => u64::MAX,
            Self::Long(_) => 1,
        }
    }
}

/// Interrupts the least urgent request that runs when a more urgent one heads the queue.
///
/// Workers that were told to stop and did not yet begin something else are on their way: each will
/// take a waiting request, so only what waits behind these interrupts one more. A discipline that
/// cannot tell what that is ([`Inspect::peek`](crate::server::role::Inspect::peek)) has one interruption under way at a time.
#[derive(Clone)]
pub struct Overtake {
    urgency: Urgency,
    /// A request may be interrupted after it ran for so long.
    after_ns: u64,
    /// A decision to interrupt takes so long to reach the worker, which goes on meanwhile.
    delay_ns: u64,
    /// Rank of what each worker runs; 0 for nobody to interrupt.
    ranks: Vec<u64>,
    /// No rank is above this: most requests overtake nobody, which is then known without a look at every worker.
    highest: u64,
    running: Vec<RunningAssignment>,
    /// Workers whose rank is not known yet.
    unranked: BitSet,
    /// Workers told to stop that have not begun something else since.
    stopping: BitSet,
    /// Interruptions on their way, with their time of arrival.
    sent: VecDeque<(u64, Preempt)>,
}

#[derive(Clone, Copy)]
struct RunningAssignment {
    job: JobId,
    since_ns: u64,
    epoch: u64,
}

impl Overtake {
    /// Interrupts at once and whoever it may be.
    #[must_use]
    pub fn new(urgency: Urgency, workers: usize) -> Self {
        let nothing = RunningAssignment {
            job: JobId(u32::MAX),
            since_ns: 0,
            epoch: 0,
        };
        Self {
            urgency,
            after_ns: 0,
            delay_ns: 0,
            ranks: vec![0; workers],
            highest: 0,
            running: vec![nothing; workers],
            unranked: BitSet::EMPTY,
            stopping: BitSet::EMPTY,
            sent: VecDeque::with_capacity(4 * workers),
        }
    }

    /// Not before a request ran for so long, ns.
    #[must_use]
    pub fn after(self, after_ns: u64) -> Self {
        Self { after_ns, ..self }
    }

    /// Interruptions take so long to reach the worker, ns.
    #[must_use]
    pub fn delayed(self, delay_ns: u64) -> Self {
        Self { delay_ns, ..self }
    }

    /// Ranks what was begun since the last decision, by what the ingress knows of it: where sizes
    /// are guessed, the engine's are not to be had.
    #[inline]
    fn rank_new<I: Ingress>(&mut self, ingress: &I) {
        while let Some(worker) = self.unranked.first() {
            self.unranked.remove(worker);
            let RunningAssignment { job, since_ns, .. } = self.running[worker];
            self.ranks[worker] = ingress
                .dispatched(job)
                .map_or(0, |job| self.urgency.of_running(since_ns, job));
            self.highest = self.highest.max(self.ranks[worker]);
        }
    }

    /// Whom the next waiting request overtakes, if any.
    #[inline]
    fn choose<I: Ingress>(&mut self, now_ns: u64, ingress: &I) -> Option<Preempt> {
        let Some(head) = ingress.peek(0) else {
            self.stopping = BitSet::EMPTY;
            return None;
        };
        self.overtaken(now_ns, ingress, head)
    }

    /// Whom the next waiting request overtakes, if any; one heads the queue.
    fn overtaken<I: Ingress>(&mut self, now_ns: u64, ingress: &I, head: &Job) -> Option<Preempt> {
        let next = if self.stopping.is_empty() {
            head
        } else {
            ingress.peek(self.stopping.len())?
        };
        self.rank_new(ingress);
        let waiting = self.urgency.of_waiting(now_ns, next);
        if self.highest <= waiting {
            return None;
        }
        let (worker, rank) = greatest(&self.ranks)?;
        self.highest = rank;
        if rank <= waiting {
            return None;
        }
        self.ranks[worker] = 0;
        self.stopping.insert(worker);
        Some(Preempt {
            worker: WorkerId(worker as u16),
            epoch: self.running[worker].epoch,
        })
    }
}

/// The first of the greatest.
#[inline]
fn greatest(ranks: &[u64]) -> Option<(usize, u64)> {
    let greatest = ranks.iter().copied().max()?;
    let worker = ranks.iter().position(|&rank| rank == greatest)?;
    Some((worker, greatest))
}

impl Monitor for Overtake {
    const PREEMPTS: bool = true;
    const ON_DISPATCHER: bool = true;

    /// What is more urgent interrupts when it comes.
    fn keeps_times(&self) -> bool {
        false
    }

    #[inline]
    fn started<Q: Backlog>(
        &mut self,
        now_ns: u64,
        worker: WorkerId,
        job: &Job,
        epoch: u64,
        _queues: &Q,
    ) -> Option<u64> {
        let index = worker.index();
        self.running[index] = RunningAssignment {
            job: job.id,
            since_ns: now_ns,
            epoch,
        };
        self.stopping.remove(index);
        self.ranks[index] = 0;
        if self.after_ns > 0 {
            return Some(self.after_ns);
        }
        self.unranked.insert(index);
        None
    }

    /// From now on it may be interrupted.
    fn expired<I: Ingress, Q: Backlog>(
        &mut self,
        _now_ns: u64,
        worker: WorkerId,
        _ingress: &I,
        _queues: &Q,
    ) -> PreemptionDecision {
        self.unranked.insert(worker.index());
        PreemptionDecision::Leave
    }

    #[inline]
    fn stopped(&mut self, _now_ns: u64, worker: WorkerId, _epoch: u64) {
        self.ranks[worker.index()] = 0;
        self.unranked.remove(worker.index());
    }

    /// How long a notice travels is a model of the machine, not a rule. What runs keeps the rank that it began with.
    fn adopt(&mut self, fresh: &Self) {
        self.after_ns = fresh.after_ns;
        if let (Urgency::Deadline(own), Urgency::Deadline(fresh)) =
            (&mut self.urgency, &fresh.urgency)
        {
            own.adopt(fresh);
        }
    }
}

impl WithoutFeedback for Overtake {}

impl Polling for Overtake {
    const POLLS: bool = true;

    #[inline]
    fn poll<I: Ingress, Q: Backlog>(
        &mut self,
        now_ns: u64,
        ingress: &I,
        _queues: &Q,
    ) -> Option<Preempt> {
        if self.delay_ns == 0 {
            return self.choose(now_ns, ingress);
        }
        while self.sent.len() < self.sent.capacity() {
            let Some(preempt) = self.choose(now_ns, ingress) else {
                break;
            };
            self.sent.push_back((now_ns + self.delay_ns, preempt));
        }
        let &(arrives_ns, preempt) = self.sent.front()?;
        if arrives_ns > now_ns {
            return None;
        }
        self.sent.pop_front();
        Some(preempt)
    }
}

impl Ticking for Overtake {
    #[inline]
    fn next_deadline_ns(&self) -> Option<u64> {
        self.sent.front().map(|&(arrives_ns, _)| arrives_ns)
    }

    fn tick<Q: Backlog>(&mut self, _now_ns: u64, _queues: &Q) -> u64 {
        0
    }
}
