//! What became of a pool's jobs.

use std::time::Duration;

use headway_machine::histogram::TimeHistogram;

/// The jobs of one class, read at one moment under the pool's lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ClassCounts {
    /// Accepted.
    pub submitted: u64,
    /// Returned, or a future that was ready.
    pub done: u64,
    /// Panicked.
    pub panicked: u64,
    /// Cancelled: left the queue, or stopped at a checkpoint.
    pub cancelled: u64,
    /// Accepted and then shed: made room, or did not begin in time.
    pub shed: u64,
    /// Of those, the ones that did not begin in time.
    pub shed_too_late: u64,
    /// Waited when the pool ended.
    pub abandoned: u64,
    /// Not accepted, so in no other count.
    pub refused: u64,
    /// Wait for a worker.
    pub waiting: usize,
    /// Run, or were interrupted.
    pub running: usize,
    /// Futures that wait to be woken.
    pub asleep: usize,
}

impl ClassCounts {
    /// Whether every accepted job is in exactly one of the other counts. It holds at any moment.
    #[must_use]
    pub fn add_up(&self) -> bool {
        let ended = self.done + self.panicked + self.cancelled + self.shed + self.abandoned;
        self.submitted == ended + (self.waiting + self.running + self.asleep) as u64
    }

    /// The sum of two classes.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            submitted: self.submitted + other.submitted,
            done: self.done + other.done,
            panicked: self.panicked + other.panicked,
            cancelled: self.cancelled + other.cancelled,
            shed: self.shed + other.shed,
            shed_too_late: self.shed_too_late + other.shed_too_late,
            abandoned: self.abandoned + other.abandoned,
            refused: self.refused + other.refused,
            waiting: self.waiting + other.waiting,
            running: self.running + other.running,
            asleep: self.asleep + other.asleep,
        }
    }
}

/// How the jobs of one class ran. A poll of a future counts as a job.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct ClassRuns {
    /// Times from submission, or from a future's wake, to the first slice.
    pub wait: TimeHistogram,
    /// Service times, slices of interrupted jobs added up.
    pub service: TimeHistogram,
    /// Slices begun.
    pub slices: u64,
    /// Times a job was to make way: its policy said so at a probe, or its slice was over and it [ended](Self::stalls) without meeting one.
    pub interruptions_asked: u64,
    /// Times a job made way, as it was asked to, or since it waits for another job.
    pub interruptions: u64,
    /// Slices that ran on for longer than [`PoolBuilder::stall_after`](crate::PoolBuilder::stall_after) past their end and met no probe. Time that the machine
    /// took from the thread does not count; so the first one of a class on each thread, about which that is not known, is in no count.
    pub stalls: u64,
    /// The longest of them, past the slice's end, ns; 0 where there was none.
    pub longest_gap_ns: u64,
}

impl ClassRuns {
    /// Takes over another one's, in the memory that is there.
    pub(crate) fn copy_from(&mut self, other: &Self) {
        let Self {
            wait,
            service,
            slices,
            interruptions_asked,
            interruptions,
            stalls,
            longest_gap_ns,
        } = self;
        wait.copy_from(&other.wait);
        service.copy_from(&other.service);
        *slices = other.slices;
        *interruptions_asked = other.interruptions_asked;
        *interruptions = other.interruptions;
        *stalls = other.stalls;
        *longest_gap_ns = other.longest_gap_ns;
    }
}

/// One class of a pool.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PoolClassStats {
    /// Its name.
    pub name: String,
    /// Its jobs.
    pub counts: ClassCounts,
    /// The mean service time learnt of its last jobs; zero before the first, unless declared.
    pub mean: Duration,
    /// How they ran; read some microseconds after the counts.
    pub runs: ClassRuns,
}

/// What [`Pool::stats`](crate::Pool::stats) reads at one moment.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PoolStats {
    /// In the order of declaration, then the learnt ones.
    pub classes: Vec<PoolClassStats>,
    /// Threads of the pool, those in [`blocking`](crate::blocking) sections included.
    pub threads: usize,
    /// Threads whose job left its worker by [`blocking`](crate::blocking), until the job ends.
    pub blocked: usize,
    /// Blocking sections that kept their worker, since as many threads had left theirs as allowed.
    pub blocked_in_place: u64,
    /// Slices that ended with the job interrupted.
    pub interruptions: u64,
    /// Interrupted jobs that went on in threads of their own, since a worker waited for one of them.
    pub rescued: u64,
    /// Jobs that ran to their end, since no thread could be had that lends its state to one that is interrupted.
    pub without_fiber: u64,
}

impl PoolStats {
    /// The sum over all classes.
    #[must_use]
    pub fn total(&self) -> ClassCounts {
        let none = ClassCounts::default();
        self.classes
            .iter()
            .fold(none, |sum, class| sum.plus(&class.counts))
    }
}
