//! A worker of SYNERGY: Algorithm 5.2, and the average of its shorts.

use super::LocalFifo;
use crate::server::lengths::Lengths;
use crate::server::role::{Hearing, Local, Next, Queues, Steal, WithoutSlices};
use crate::server::sayings::Sayings;
use crate::server::{Job, JobId, WorkerId};
use alloc::vec::Vec;

/// What a worker of SYNERGY does and does not do: the parts of the ablation (§ 6.5).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WorkerRules {
    /// Steals from queues longer than `steal_threshold` (the ablation's WS).
    pub steals: bool,
    /// Only from queues longer than this.
    pub steal_threshold: usize,
    /// A preempted long goes to its kind's wait queue (the ablation's WQ), else to the tail of the own.
    pub wait_queue: bool,
    /// Weight of a new short in the average, 0 to 1.
    pub alpha: f64,
}

/// Algorithm 5.2: the wait queue if it is congested, the own queue, the wait queue, others'.
///
/// With several kinds of longs there is a wait queue for each, and those of shorter kinds come first (§ 5.1 says as much and
/// no more). So that new requests and kinds that are not congested do not leave the longest behind for ever, congestion is
/// found for each queue by itself: those that are congested come before the own queue, the others after it.
#[derive(Clone, Debug)]
pub struct SynergyWorker {
    me: WorkerId,
    rules: WorkerRules,
    /// Which classes are long, which it finds out where nobody says so.
    lengths: Lengths,
    /// Which classes' requests usually say that they are long.
    sayings: Sayings,
    /// The wait queue of each class.
    wait_queues: Vec<usize>,
    /// How many there are.
    count: usize,
}

impl SynergyWorker {
    /// The state of worker `me`; classes that are long by `lengths` do not enter the average, and each class
    /// has a wait queue, numbered from 0.
    #[must_use]
    pub fn new(
        me: WorkerId,
        rules: WorkerRules,
        lengths: Lengths,
        wait_queues: Vec<usize>,
    ) -> Self {
        Self {
            me,
            rules,
            lengths,
            sayings: Sayings::new(wait_queues.len()),
            count: wait_queues.iter().max().map_or(1, |last| last + 1),
            wait_queues,
        }
    }

    /// The first that waits in the wait queues that are among these, those of shorter kinds first.
    #[inline]
    fn resume<Q: Queues>(&self, among: u64, queues: &mut Q) -> Option<JobId> {
        let mut chosen = (0..self.count).filter(|queue| among >> queue & 1 == 1);
        chosen.find_map(|queue| queues.pop_shared(queue))
    }

    /// Requests of classes that are found long wait, interrupted, in buffers that others then lack; so do those that say it themselves.
    #[cold]
    fn tell_sheds_first<Q: Queues>(&self, queues: &mut Q) {
        queues.set_sheds_first(self.lengths.longs().union(&self.sayings.usual()));
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
        let resumed = self.resume(queues.congested(), queues);
        let own = resumed.or_else(|| queues.pop());
        if let Some(job) = own.or_else(|| self.resume(u64::MAX, queues)) {
            let slice_ns = None;
            return Next::Run { job, slice_ns };
        }
        if !self.rules.steals {
            return Next::Idle;
        }
        match self.steal(queues) {
            Steal::Batch(_) => LocalFifo.next(now_ns, queues),
            Steal::Retry => Next::Retry,
            Steal::Empty => Next::Idle,
        }
    }

    #[inline]
    fn yielded<Q: Queues>(&mut self, _now_ns: u64, job: &Job, queues: &mut Q) -> bool {
        let queue = self.wait_queues[job.class.index()];
        // A wait queue that is full keeps nobody: the request goes on here, after what waits here.
        if !(self.rules.wait_queue && queues.push_shared(queue, job.id)) {
            queues.push(job.id);
        }
        true
    }

    /// The first sample starts the average.
    #[inline]
    fn finished<Q: Queues>(&mut self, _now_ns: u64, job: &Job, cpu_ns: u64, queues: &mut Q) {
        // What a request says is said of itself alone: its class is not long by it.
        if job.said_long {
            return;
        }
        if self.sayings.record(job.class, false) {
            self.tell_sheds_first(queues);
        }
        if let Some(longs) = self.lengths.record(job.class, cpu_ns) {
            queues.set_longs(longs);
            self.tell_sheds_first(queues);
        }
        if self.lengths.is_long(job.class) {
            return;
        }
        let next_ns = match queues.short_ns(self.me) {
            0 => cpu_ns,
            before_ns => {
                let (before, sample) = (before_ns as f64, cpu_ns as f64);
                (before + self.rules.alpha * (sample - before)) as u64
            }
        };
        queues.set_short_ns(next_ns);
    }

    /// The average of the shorts is the queues', and stays; so do the longs that were found. What lies in a wait queue is taken up from there under any rules.
    fn adopt(&mut self, fresh: &Self) {
        self.rules = fresh.rules;
    }
}

impl Hearing for SynergyWorker {
    fn said_long<Q: Queues>(&mut self, job: &Job, queues: &mut Q) {
        if self.sayings.record(job.class, true) {
            self.tell_sheds_first(queues);
        }
    }
}

impl WithoutSlices for SynergyWorker {}
