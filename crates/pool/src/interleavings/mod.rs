//! Random interleavings of the pool's real threads: those that submit, cancel and end it, its workers, its dispatcher. A failure prints the schedule that repeats it.

mod blocked_jobs;
mod panicked_poll;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use headway_policy::ClassId;
use shuttle::thread;

use crate::dispatcher;
use crate::error::{JoinError, SubmitError};
use crate::future::JobFuture;
use crate::job::{ClosureJob, Runnable};
use crate::layout::PoolLayout;
use crate::poller::Poller;
use crate::shared::{SharedParts, SharedPool, StartThread};
use crate::thread_table::ThreadTable;
use crate::virtual_time::{core, shared_parts};
use crate::worker;

/// Schedules tried of each model, policy and layout.
const SCHEDULES: usize = 1_000;

const WORKERS: usize = 2;

/// Each places tokens in its own way: at an idle worker, at a worker beforehand, from one queue for all, at workers that steal.
const POLICIES: [(&str, PoolLayout); 6] = [
    ("darc-stable", PoolLayout::Inline),
    ("darc-stable", PoolLayout::Dedicated),
    ("d-fcfs", PoolLayout::Inline),
    ("c-fcfs", PoolLayout::Dedicated),
    ("work-stealing", PoolLayout::Inline),
    ("jbsq", PoolLayout::Dedicated),
];

/// A class of the core's whose jobs are never late.
const CLASSES: [ClassId; 2] = [ClassId(0), ClassId(2)];

/// How many of a model's jobs ran, and how many were told that they did not. The standard library's counters: no other thread comes between.
#[derive(Default)]
struct ModelCounts {
    ran: AtomicUsize,
    told: AtomicUsize,
}

/// What a model says of its pool beside policy and layout.
struct ModelParts {
    workers: usize,
    /// Threads that may stand in for those that block.
    stand_ins: usize,
    poller: Option<Poller>,
    start: StartThread,
}

impl Default for ModelParts {
    fn default() -> Self {
        Self {
            workers: WORKERS,
            stand_ins: 0,
            poller: None,
            start: worker::start,
        }
    }
}

/// Starts a pool whose threads are the model's.
fn started(policy: &str, layout: PoolLayout) -> Arc<SharedPool> {
    started_with(policy, layout, ModelParts::default())
}

fn started_with(policy: &str, layout: PoolLayout, parts: ModelParts) -> Arc<SharedPool> {
    let mut core = core(policy, layout, parts.workers, 8);
    core.threads = ThreadTable::new(parts.workers, parts.stand_ins, false);
    let shared = SharedPool::new(
        core,
        SharedParts {
            start: parts.start,
            poller: parts.poller,
            ..shared_parts()
        },
    );
    for _ in 0..parts.workers {
        let place = shared.core.lock().threads.enlist();
        shared.start(place.expect("a place for each")).unwrap();
    }
    if layout == PoolLayout::Dedicated {
        shared.keep(dispatcher::start(&shared, None).unwrap());
    }
    shared
}

fn submit(shared: &Arc<SharedPool>, class: ClassId, counts: &Arc<ModelCounts>) -> JobFuture<()> {
    submit_job(shared, class, counts, || ())
}

fn submit_job(
    shared: &Arc<SharedPool>,
    class: ClassId,
    counts: &Arc<ModelCounts>,
    job: impl FnOnce() + Send + 'static,
) -> JobFuture<()> {
    let (ran, told) = (Arc::clone(counts), Arc::clone(counts));
    let job = ClosureJob::new(
        move || {
            job();
            ran.ran.fetch_add(1, Ordering::Relaxed);
        },
        move |_: &JoinError| _ = told.told.fetch_add(1, Ordering::Relaxed),
        false,
    );
    let runnable = Arc::clone(&job) as Arc<dyn Runnable>;
    match shared.submit(class, runnable) {
        Ok(()) => JobFuture::accepted(Arc::clone(shared), class, job),
        Err(refused) => JobFuture::refused(refused),
    }
}

/// How many of the jobs were accepted, once all have ended.
fn accepted_of<const JOBS: usize>(jobs: [JobFuture<()>; JOBS]) -> usize {
    let refused = |result: &Result<(), JoinError>| {
        matches!(result, Err(JoinError::Refused(SubmitError::ShutDown)))
    };
    let results = jobs.map(JobFuture::wait);
    results.iter().filter(|result| !refused(result)).count()
}

/// The pool was told to end: waits for its threads, which leave once nothing is left.
fn join_all(shared: &Arc<SharedPool>) {
    let _ = shared.shutdown(Duration::from_secs(60));
    while let Some(handle) = shared.next_handle() {
        handle.join().unwrap();
    }
}

/// Tries the model under each policy and layout.
fn check(model: impl Fn(&str, PoolLayout) + Copy + Send + Sync + 'static) {
    for (policy, layout) in POLICIES {
        shuttle::check_random(move || model(policy, layout), SCHEDULES);
        shuttle::check_pct(move || model(policy, layout), SCHEDULES, 3);
    }
}

/// Every job ended once, no place is held, and no thread is left.
fn assert_over(shared: &SharedPool, counts: &ModelCounts, accepted: usize) {
    let core = shared.core.lock();
    assert_eq!((core.live(), core.threads.len()), (0, 0));
    assert_eq!(core.threads.blocked, 0);
    let classes: Vec<_> = CLASSES.map(|class| core.class_counts(class).0).into();
    let sum =
        |count: fn(&crate::stats::ClassCounts) -> u64| -> u64 { classes.iter().map(count).sum() };
    assert_eq!(sum(|class| class.submitted), accepted as u64);
    let ran = counts.ran.load(Ordering::Relaxed);
    let told = counts.told.load(Ordering::Relaxed);
    assert_eq!(sum(|class| class.done), ran as u64);
    assert_eq!(sum(|class| class.cancelled + class.abandoned), told as u64);
    assert_eq!(ran + told, accepted);
}

/// Threads that submit, await, cancel and let go: no wake is lost, so that each result comes and the pool becomes idle. (shuttle reports a deadlock.)
#[test]
fn every_job_that_is_awaited_ends_and_the_pool_becomes_idle() {
    const SUBMITTERS: usize = 2;
    check(|policy, layout| {
        let shared = started(policy, layout);
        let counts = Arc::<ModelCounts>::default();
        let submitters: Vec<_> = (0..SUBMITTERS)
            .map(|at| {
                let (shared, counts) = (Arc::clone(&shared), Arc::clone(&counts));
                thread::spawn(move || {
                    let [first, second] = [at % 2, (at + 1) % 2].map(|class| CLASSES[class]);
                    let awaits = submit(&shared, first, &counts);
                    drop(submit(&shared, second, &counts));
                    submit(&shared, first, &counts).detach();
                    awaits.wait().unwrap();
                    submit(&shared, second, &counts).wait().unwrap();
                })
            })
            .collect();
        for submitter in submitters {
            submitter.join().unwrap();
        }
        shared.shutdown(Duration::from_secs(60)).unwrap();
        assert_over(&shared, &counts, 4 * SUBMITTERS);
    });
}

/// Events that only the workers take in, and jobs of another thread: no worker polls on beside a job, and each result comes.
#[test]
fn what_polling_workers_take_in_and_what_others_submit_ends() {
    const EVENTS: usize = 2;
    let model = |policy: &str, layout: PoolLayout| {
        let counts = Arc::<ModelCounts>::default();
        let (pool, its) = (
            Arc::new(OnceLock::<Arc<SharedPool>>::new()),
            Arc::clone(&counts),
        );
        let (own, left) = (Arc::clone(&pool), AtomicUsize::new(EVENTS));
        let poller = Poller::new(move || {
            let order = Ordering::Relaxed;
            let takes = |left: usize| left.checked_sub(1);
            if let Some(pool) = own.get()
                && left.fetch_update(order, order, takes).is_ok()
            {
                submit(pool, CLASSES[0], &its).detach();
            }
        });
        let parts = ModelParts {
            poller: Some(poller),
            ..ModelParts::default()
        };
        let shared = started_with(policy, layout, parts);
        assert!(pool.set(Arc::clone(&shared)).is_ok());
        submit(&shared, CLASSES[1], &counts).wait().unwrap();
        while counts.ran.load(Ordering::Relaxed) <= EVENTS {
            thread::yield_now();
        }
        shared.shutdown(Duration::from_secs(60)).unwrap();
        assert_over(&shared, &counts, 1 + EVENTS);
    };
    // Polling workers never sleep, so a schedule must be fair: random ones are.
    for (policy, layout) in POLICIES {
        shuttle::check_random(move || model(policy, layout), SCHEDULES);
    }
}

/// A pool that ends while others submit: each accepted job ends once, who awaits it is told, and every thread leaves.
#[test]
fn whatever_was_accepted_before_the_end_has_one_end() {
    check(|policy, layout| {
        let shared = started(policy, layout);
        let counts = Arc::<ModelCounts>::default();
        let (own, its) = (Arc::clone(&shared), Arc::clone(&counts));
        let submitter = thread::spawn(move || {
            accepted_of([0, 1, 0].map(|class| submit(&own, CLASSES[class], &its)))
        });
        shared.end();
        let accepted = submitter.join().unwrap();
        join_all(&shared);
        assert_over(&shared, &counts, accepted);
    });
}
