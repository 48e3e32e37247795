//! A pool's counts, for C programs.
#![expect(unsafe_code, reason = "promises the layout of structs")]

use headway_pool::{ClassCounts, PoolClassStats, PoolStats, TimeHistogram};

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
    /// Those of `shed` that did not begin in time; the others made room.
    pub shed_too_late: u64,
    /// Slices begun.
    pub slices: u64,
    /// Times a job was to make way.
    pub interruptions_asked: u64,
    /// Times a job made way.
    pub interruptions: u64,
    /// Slices that ran on past their end and met no probe for longer than headway_pool_options.stall_after_ns.
    pub stalls: u64,
    /// The longest of them past its slice's end, ns.
    pub longest_gap_ns: u64,
    /// Times from submission to the first slice. Read some microseconds after the counts.
    pub wait: HeadwayPoolTimes,
    /// Service times.
    pub service: HeadwayPoolTimes,
}

/// Times of a class's jobs, ns, rounded up by one part in 16 at most; 0 before the first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadwayPoolTimes {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub sum_ns: u64,
    /// Half of them take at most this.
    pub p50_ns: u64,
    /// 99 of 100 take at most this.
    pub p99_ns: u64,
    /// 999 of 1000 take at most this.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl From<&TimeHistogram> for HeadwayPoolTimes {
    fn from(times: &TimeHistogram) -> Self {
        let quantile_ns = |part| times.quantile_ns(part).unwrap_or(0);
        Self {
            count: times.count(),
            sum_ns: times.sum_ns(),
            p50_ns: quantile_ns(0.5),
            p99_ns: quantile_ns(0.99),
            p999_ns: quantile_ns(0.999),
            max_ns: times.max_ns().unwrap_or(0),
        }
    }
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
            shed_too_late: counts.shed_too_late,
            ..Self::default()
        }
    }
}

impl From<&PoolClassStats> for HeadwayPoolClassStats {
    fn from(stats: &PoolClassStats) -> Self {
        let runs = &stats.runs;
        Self {
            slices: runs.slices,
            interruptions_asked: runs.interruptions_asked,
            interruptions: runs.interruptions,
            stalls: runs.stalls,
            longest_gap_ns: runs.longest_gap_ns,
            wait: HeadwayPoolTimes::from(&runs.wait),
            service: HeadwayPoolTimes::from(&runs.service),
            ..Self::new(&stats.counts, stats.mean.as_nanos() as u64)
        }
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
    /// Jobs that ran to their end since no fiber was to be had for them: at a limit of threads.
    pub without_fiber: u64,
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
            without_fiber: stats.without_fiber,
        }
    }
}
