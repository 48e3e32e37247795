//! What is measured of a pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;
use headway_machine::Clock;

use crate::compute::Compute;
use crate::contender::{Contender, Kind, Pending};
use crate::replay::{Mix, p99_slowdown};
use crate::stops::ideal_p99_slowdown;
use crate::system::{cpu_ns, on_one_core};

const HIGH_BIMODAL: Mix = Mix {
    short_ns: 1_000,
    long_ns: 100_000,
    long_share: 0.5,
};

const EXTREME_BIMODAL: Mix = Mix {
    short_ns: 500,
    long_ns: 500_000,
    long_share: 0.005,
};

/// One figure of each contender and round.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Measure {
    /// CPU time of an empty job, a thousand outstanding, on one core with one worker
    EmptyJob,
    /// CPU time of an empty job awaited before the next, on one core with one worker
    EmptyJobAlone,
    /// Time from submission to the start, every worker asleep
    IdleStart,
    /// p99 slowdown of replayed arrivals of 1 and 100 µs, half each, load 0.7
    HighBimodal,
    /// p99 slowdown of replayed arrivals of 0.5 and 500 µs, 0.5 % of them, load 0.7
    ExtremeBimodal,
    /// Equal jobs of 1 µs a second
    Jobs1us,
    /// Equal jobs of 10 µs a second
    Jobs10us,
    /// Equal jobs of 100 µs a second
    Jobs100us,
    /// CPU time of equal jobs of 1 µs, submitted as in `jobs1us`
    Cpu1us,
    /// CPU time of equal jobs of 10 µs
    Cpu10us,
    /// CPU time of equal jobs of 100 µs
    Cpu100us,
}

impl Measure {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::EmptyJob => "CPU of an empty job, a thousand outstanding, one core, ns",
            Self::EmptyJobAlone => "CPU of an empty job, awaited before the next, one core, ns",
            Self::IdleStart => "submission to start on an idle pool, median, ns",
            Self::HighBimodal => "p99 slowdown, 1 and 100 µs half each, load 0.7",
            Self::ExtremeBimodal => "p99 slowdown, 0.5 and 500 µs (0.5 %), load 0.7",
            Self::Jobs1us => "jobs of 1 µs a second",
            Self::Jobs10us => "jobs of 10 µs a second",
            Self::Jobs100us => "jobs of 100 µs a second",
            Self::Cpu1us => "CPU of a job of 1 µs, all threads, ns",
            Self::Cpu10us => "CPU of a job of 10 µs, all threads, ns",
            Self::Cpu100us => "CPU of a job of 100 µs, all threads, ns",
        }
    }

    /// The 99th percentile that an ideal pool would have, as the machine stops threads now; `None` of what is no tail.
    pub(crate) fn least(self, workers: usize, round: usize) -> Option<f64> {
        let mix = match self {
            Self::HighBimodal => HIGH_BIMODAL,
            Self::ExtremeBimodal => EXTREME_BIMODAL,
            _ => return None,
        };
        Some(ideal_p99_slowdown(&mix.arrivals(workers, round), workers))
    }

    /// Measures a contender once.
    ///
    /// # Errors
    /// When it does not start.
    pub(crate) fn take(self, kind: Kind, workers: usize, round: usize) -> Result<f64> {
        Ok(match self {
            Self::EmptyJob => on_one_core(|| Ok(empty_ns(&kind.start(1)?, 1_000, 200_000)))?,
            Self::EmptyJobAlone => on_one_core(|| Ok(empty_ns(&kind.start(1)?, 1, 10_000)))?,
            Self::IdleStart => idle_start_ns(&kind.start(workers)?),
            Self::HighBimodal => p99_slowdown(kind, workers, HIGH_BIMODAL, round)?,
            Self::ExtremeBimodal => p99_slowdown(kind, workers, EXTREME_BIMODAL, round)?,
            Self::Jobs1us => equal_jobs(&kind.start(workers)?, 1_000, 200_000).jobs_per_s,
            Self::Jobs10us => equal_jobs(&kind.start(workers)?, 10_000, 40_000).jobs_per_s,
            Self::Jobs100us => equal_jobs(&kind.start(workers)?, 100_000, 4_000).jobs_per_s,
            Self::Cpu1us => equal_jobs(&kind.start(workers)?, 1_000, 200_000).cpu_ns,
            Self::Cpu10us => equal_jobs(&kind.start(workers)?, 10_000, 40_000).cpu_ns,
            Self::Cpu100us => equal_jobs(&kind.start(workers)?, 100_000, 4_000).cpu_ns,
        })
    }
}

/// The process's CPU time over so many empty jobs, each, with so many outstanding.
fn empty_ns(pool: &Contender, outstanding: usize, jobs: usize) -> f64 {
    let mut pending = Vec::with_capacity(outstanding);
    let mut go = |jobs: usize| {
        for _ in 0..jobs / outstanding {
            pending.extend((0..outstanding).map(|_| pool.submit(false, || {})));
            pending.drain(..).for_each(Pending::wait);
        }
    };
    go(jobs / 10);
    let before_ns = cpu_ns();
    go(jobs);
    (cpu_ns() - before_ns) as f64 / jobs as f64
}

/// The median over submissions to a pool whose threads sleep.
fn idle_start_ns(pool: &Contender) -> f64 {
    let clock = Clock::global();
    let mut waits_ns: Vec<u64> = (0..200)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            let started_ns = Arc::new(AtomicU64::new(0));
            let seen = Arc::clone(&started_ns);
            let from_ns = clock.now_ns();
            let job = pool.submit(false, move || {
                seen.store(Clock::global().now_ns(), Ordering::Relaxed);
            });
            job.wait();
            started_ns.load(Ordering::Relaxed) - from_ns
        })
        .collect();
    waits_ns.sort_unstable();
    waits_ns[waits_ns.len() / 2] as f64
}

/// What equal jobs took.
struct EqualJobs {
    jobs_per_s: f64,
    /// The process's CPU time of each, ns: beside others' work this tells what the pool costs.
    cpu_ns: f64,
}

/// Jobs that compute for so long, submitted from one thread as fast as it can, at most a thousand outstanding.
fn equal_jobs(pool: &Contender, service_ns: u64, jobs: usize) -> EqualJobs {
    const OUTSTANDING: usize = 1_000;
    let clock = Clock::global();
    let work = Compute::for_ns(service_ns);
    let job = move || work.run();
    let (from_ns, cpu_before_ns) = (clock.now_ns(), cpu_ns());
    let mut pending = std::collections::VecDeque::with_capacity(OUTSTANDING);
    for _ in 0..jobs {
        if pending.len() == OUTSTANDING {
            // Half at a time, so that the submitter wakes seldom, whatever it submits to.
            pending.drain(..OUTSTANDING / 2).for_each(Pending::wait);
        }
        pending.push_back(pool.submit(false, job));
    }
    pending.into_iter().for_each(Pending::wait);
    EqualJobs {
        jobs_per_s: jobs as f64 * 1e9 / (clock.now_ns() - from_ns) as f64,
        cpu_ns: (cpu_ns() - cpu_before_ns) as f64 / jobs as f64,
    }
}
