//! What became of a pool's jobs.

use std::time::Duration;

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
            abandoned: self.abandoned + other.abandoned,
            refused: self.refused + other.refused,
            waiting: self.waiting + other.waiting,
            running: self.running + other.running,
            asleep: self.asleep + other.asleep,
        }
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
}

/// What [`Pool::stats`](crate::Pool::stats) reads at one moment.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub struct PoolStats {
    /// In the order of declaration, then the learnt ones.
    pub classes: Vec<PoolClassStats>,
    /// Threads of the pool, those in [`blocking`](crate::blocking) sections included.
    pub threads: usize,
    /// Threads in a [`blocking`](crate::blocking) section.
    pub blocked: usize,
    /// Blocking sections that kept their worker, since there were as many blocked threads as allowed.
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
