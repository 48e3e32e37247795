//! A pool's counts, for C programs.
#![expect(unsafe_code, reason = "promises the layout of structs")]

use headway_pool::{ClassCounts, PoolClassStats, PoolStats};

use crate::versioned::Versioned;

/// The jobs of one class. At any moment `submitted` is the sum of `done`, `cancelled`, `shed`, `abandoned`, `waiting` and `running`. Begin with
/// `struct headway_pool_class_stats stats = {.size = sizeof stats};`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadwayPoolClassStats {
    /// sizeof(struct headway_pool_class_stats).
    pub size: usize,
    /// Jobs accepted.
    pub submitted: u64,
    /// Jobs that ran to their end.
    pub done: u64,
    /// Jobs that were cancelled before they began.
    pub cancelled: u64,
    /// Jobs shed after they were accepted: they made room for a shorter class, or did not begin in time.
    pub shed: u64,
    /// Jobs that waited when the pool ended.
    pub abandoned: u64,
    /// Jobs not accepted, in no other count.
    pub refused: u64,
    /// Jobs that wait for a worker.
    pub waiting: u64,
    /// Jobs that run, or were interrupted.
    pub running: u64,
    /// The mean service time learnt, ns.
    pub mean_ns: u64,
}

// SAFETY: as asked: numbers, the size first.
unsafe impl Versioned for HeadwayPoolClassStats {
    const NAME: &'static str = "headway_pool_class_stats";
}

impl HeadwayPoolClassStats {
    fn new(counts: &ClassCounts, mean_ns: u64) -> Self {
        Self {
            size: size_of::<Self>(),
            submitted: counts.submitted,
            // A function of C does not panic, and is no future: what ended in one of those ways would be done here.
            done: counts.done + counts.panicked,
            cancelled: counts.cancelled,
            shed: counts.shed,
            abandoned: counts.abandoned,
            refused: counts.refused,
            waiting: (counts.waiting + counts.asleep) as u64,
            running: counts.running as u64,
            mean_ns,
        }
    }
}

impl From<&PoolClassStats> for HeadwayPoolClassStats {
    fn from(stats: &PoolClassStats) -> Self {
        Self::new(&stats.counts, stats.mean.as_nanos() as u64)
    }
}

/// A pool's counts. Begin with `struct headway_pool_stats stats = {.size = sizeof stats};`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadwayPoolStats {
    /// sizeof(struct headway_pool_stats).
    pub size: usize,
    /// Jobs accepted, of all classes. The next seven are sums over the classes too.
    pub submitted: u64,
    /// Jobs that ran to their end.
    pub done: u64,
    /// Jobs that were cancelled before they began.
    pub cancelled: u64,
    /// Jobs shed after they were accepted.
    pub shed: u64,
    /// Jobs that waited when the pool ended.
    pub abandoned: u64,
    /// Jobs not accepted, in no other count.
    pub refused: u64,
    /// Jobs that wait for a worker.
    pub waiting: u64,
    /// Jobs that run, or were interrupted.
    pub running: u64,
    /// The pool's threads, those that block included.
    pub threads: u64,
    /// Slices that ended with the job interrupted.
    pub interruptions: u64,
    /// Interrupted jobs that went on in threads of their own, since a worker waited for one of them.
    pub rescued: u64,
}

// SAFETY: as asked: numbers, the size first.
unsafe impl Versioned for HeadwayPoolStats {
    const NAME: &'static str = "headway_pool_stats";
}

impl From<&PoolStats> for HeadwayPoolStats {
    fn from(stats: &PoolStats) -> Self {
        let total = HeadwayPoolClassStats::new(&stats.total(), 0);
        Self {
            size: size_of::<Self>(),
            submitted: total.submitted,
            done: total.done,
            cancelled: total.cancelled,
            shed: total.shed,
            abandoned: total.abandoned,
            refused: total.refused,
            waiting: total.waiting,
            running: total.running,
            threads: stats.threads as u64,
            interruptions: stats.interruptions,
            rescued: stats.rescued,
        }
    }
}
