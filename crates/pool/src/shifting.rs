//! A workload that changes its shape, in virtual time: two classes exchange their service times, and the pool has to follow within a second.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use headway_policy::server::BegunLimit;
use headway_policy::server::admission_control::AdmissionLimits;
use headway_policy::server::systems::{self, ServerSpec};
use headway_policy::{ClassId, Rng, Shape};

use crate::chosen::ChosenJob;
use crate::class_state::BuiltClass;
use crate::core::{JobEnd, PoolCore, PoolParts};
use crate::decisions::Deciding;
use crate::job::{ClosureJob, RunEnd, Runnable};
use crate::layout::PoolLayout;
use crate::thread_table::ThreadTable;

const SHORT_NS: u64 = 20_000;
const LONG_NS: u64 = 2_000_000;
const LONG_SHARE: f64 = 0.05;
const LOAD: f64 = 0.6;
const WORKERS: usize = 2;
const CAPACITY: usize = 16_384;
const SECOND_NS: u64 = 1_000_000_000;
/// The classes exchange their service times every so often.
const PHASE_NS: u64 = 10 * SECOND_NS;
const PHASES: u64 = 5;
const WINDOW_NS: u64 = 100_000_000;
/// A window is as before once its p90 is at most so many times that of the phase's second half.
const SETTLED: f64 = 2.0;

fn core(policy: &str, interrupts: bool) -> PoolCore {
    let mut shape = Shape::new(WORKERS).class(0, 0.5).class(0, 0.5);
    let limits = AdmissionLimits {
        workers: WORKERS,
        capacity: CAPACITY,
        begun: BegunLimit::NONE,
    };
    shape.job_capacity = limits.most_heard();
    let spec: ServerSpec = policy.parse().unwrap();
    let deciding = Deciding {
        workers: WORKERS,
        layout: PoolLayout::Inline,
    };
    PoolCore::new(PoolParts {
        decide: systems::with(&spec, &shape, deciding).unwrap(),
        classes: ["first", "second"].map(BuiltClass::open).into(),
        threads: ThreadTable::new(WORKERS, 0, false),
        limits,
        interrupts,
    })
}

/// A job to come, or that is there.
#[derive(Clone, Copy)]
struct ShiftJob {
    at_ns: u64,
    is_long: bool,
    left_ns: u64,
}

/// A job on a worker, and when that is looked at next.
struct OnWorker {
    look_ns: u64,
    from_ns: u64,
    index: usize,
    chosen: ChosenJob,
}

/// The pool's lock, its jobs to come, and the latencies of shorts by arrival.
struct ShiftWorld {
    core: PoolCore,
    to_come: VecDeque<ShiftJob>,
    jobs: Vec<ShiftJob>,
    /// The index of a job by its place in memory.
    indices: HashMap<usize, usize>,
    workers: Vec<OnWorker>,
    shorts: Vec<(u64, u64)>,
}

fn place_of(job: &Arc<dyn Runnable>) -> usize {
    Arc::as_ptr(job).cast::<()>().addr()
}

impl ShiftWorld {
    fn submit(&mut self, job: ShiftJob) {
        let is_exchanged = (job.at_ns / PHASE_NS) % 2 == 1;
        let class = ClassId(u16::from(job.is_long != is_exchanged));
        let runnable: Arc<dyn Runnable> =
            ClosureJob::new(|| (), |_: &crate::error::JoinError| (), false);
        self.indices.insert(place_of(&runnable), self.jobs.len());
        self.jobs.push(job);
        let accepted = self.core.submit(job.at_ns, class, runnable, false);
        assert_eq!(accepted, Ok(()));
    }

    fn take_up(&mut self, now_ns: u64) {
        while let Some(chosen) = self.core.take(now_ns, None) {
            let index = self.indices[&place_of(&chosen.job)];
            let left_ns = self.jobs[index].left_ns;
            let slice_ns = chosen.slice_ns.unwrap_or(u64::MAX);
            self.workers.push(OnWorker {
                look_ns: now_ns + left_ns.min(slice_ns),
                from_ns: now_ns,
                index,
                chosen,
            });
        }
    }

    /// A worker's job ends, or its policy is asked whether it goes on.
    fn look(&mut self, at: usize) {
        let mut worker = self.workers.swap_remove(at);
        let (now_ns, job) = (worker.look_ns, &mut self.jobs[worker.index]);
        job.left_ns -= now_ns - worker.from_ns;
        worker.chosen.attained_ns += now_ns - worker.from_ns;
        worker.from_ns = now_ns;
        let ChosenJob { class, chosen, .. } = worker.chosen;
        if job.left_ns == 0 {
            if !job.is_long {
                self.shorts.push((job.at_ns, now_ns - job.at_ns));
            }
            self.indices.remove(&place_of(&worker.chosen.job));
            let end = JobEnd {
                class,
                ran: RunEnd::Done,
                cpu_ns: worker.chosen.attained_ns,
                chosen: Some(chosen),
            };
            self.core.ended(now_ns, end, &worker.chosen.job);
        } else if let Some(longer) = self.core.goes_on(now_ns, class, chosen.worker, 1) {
            worker.look_ns = now_ns + job.left_ns.min(longer.ask_after_ns);
            self.workers.push(worker);
        } else {
            let attained_ns = worker.chosen.attained_ns;
            self.core
                .yielded(now_ns, chosen, attained_ns, worker.chosen.job);
        }
    }

    fn live(&mut self) {
        loop {
            let looks = self.workers.iter().map(|worker| worker.look_ns);
            let next = looks.enumerate().min_by_key(|(_, look_ns)| *look_ns);
            let comes = self.to_come.front().copied();
            let now_ns = match (comes, next) {
                (Some(job), look) if look.is_none_or(|(_, look_ns)| job.at_ns <= look_ns) => {
                    self.to_come.pop_front();
                    self.submit(job);
                    job.at_ns
                }
                (_, Some((at, look_ns))) => {
                    self.look(at);
                    look_ns
                }
                _ => return,
            };
            self.take_up(now_ns);
        }
    }

    fn p90_ns(&self, from_ns: u64, to_ns: u64) -> f64 {
        let within = self
            .shorts
            .iter()
            .filter(|(at_ns, _)| (from_ns..to_ns).contains(at_ns));
        let mut latencies: Vec<u64> = within.map(|(_, latency_ns)| *latency_ns).collect();
        latencies.sort_unstable();
        latencies[latencies.len() * 9 / 10] as f64
    }

    /// The end of the last window of a phase's first half whose p90 is unlike that of its second half, ns.
    fn follows_ns(&self, phase: u64) -> u64 {
        let from_ns = phase * PHASE_NS;
        let settled_ns = self.p90_ns(from_ns + PHASE_NS / 2, from_ns + PHASE_NS);
        let unlike = (0..PHASE_NS / 2 / WINDOW_NS).rev().find(|window| {
            let at_ns = from_ns + window * WINDOW_NS;
            self.p90_ns(at_ns, at_ns + WINDOW_NS) > SETTLED * settled_ns
        });
        unlike.map_or(0, |window| (window + 1) * WINDOW_NS)
    }
}

/// Jobs that come at random times, each long with a chance.
fn drawn(seed: u64) -> VecDeque<ShiftJob> {
    let mean_ns = SHORT_NS as f64 * (1.0 - LONG_SHARE) + LONG_NS as f64 * LONG_SHARE;
    let mut rng = Rng::new(seed);
    let mut uniform = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    let (mut at_ns, mut jobs) = (0.0, VecDeque::new());
    loop {
        at_ns -= mean_ns / (LOAD * WORKERS as f64) * libm::log(1.0 - uniform());
        if at_ns as u64 >= PHASES * PHASE_NS {
            return jobs;
        }
        let is_long = uniform() < LONG_SHARE;
        jobs.push_back(ShiftJob {
            at_ns: at_ns as u64,
            is_long,
            left_ns: if is_long { LONG_NS } else { SHORT_NS },
        });
    }
}

/// The longest that the pool takes to follow a change, ns.
fn slowest_ns(policy: &str, interrupts: bool) -> u64 {
    let mut world = ShiftWorld {
        core: core(policy, interrupts),
        to_come: drawn(7),
        jobs: Vec::new(),
        indices: HashMap::new(),
        workers: Vec::new(),
        shorts: Vec::new(),
    };
    world.live();
    assert!(world.core.is_idle(), "{policy}");
    let phases = (1..PHASES).map(|phase| world.follows_ns(phase));
    phases.max().expect("there are phases")
}

#[test]
fn what_was_learnt_follows_within_a_second() {
    for (policy, interrupts) in [("darc-stable", false), ("mlfq", true), ("gittins", true)] {
        let slowest_ns = slowest_ns(policy, interrupts);
        assert!(slowest_ns <= SECOND_NS, "{policy}: {slowest_ns} ns");
    }
    // A policy that looks at the mix more rarely is seen to follow later.
    let rarely_ns = slowest_ns("darc-stable,window_time=4s", false);
    assert!(rarely_ns > 2 * SECOND_NS, "{rarely_ns} ns");
}
