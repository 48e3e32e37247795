//! The pool's lock in virtual time: a seed's events under every policy, without threads, to the bit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Waker};

use headway_policy::server::systems::{self, NAMES, ServerSpec};
use headway_policy::{ClassId, Rng, Shape};

use crate::chosen::ChosenJob;
use crate::class_state::ClassLimits;
use crate::core::{JobEnd, PoolCore, PoolParts, token_count};
use crate::decisions::Deciding;
use crate::error::JoinError;
use crate::job::{ClosureJob, Joined, RunEnd, Runnable};
use crate::thread_table::ThreadTable;

const CLASSES: usize = 3;
const SERVICE_NS: [u64; CLASSES] = [1_000, 100_000, 10_000];

/// A pool of so many workers; the last class has one of them at most.
fn core(policy: &str, workers: usize, capacity: usize) -> PoolCore {
    let mut shape = Shape::new(workers);
    for service_ns in SERVICE_NS {
        shape = shape.class(service_ns, 0.3);
    }
    shape.job_capacity = token_count(capacity, workers);
    let classes = (0..CLASSES).map(|class| ClassLimits {
        name: class.to_string(),
        mean_ns: SERVICE_NS[class] as f64,
        slo_ns: None,
        workers_at_most: if class == CLASSES - 1 { 1 } else { usize::MAX },
        queue_limit: usize::MAX,
        begin_within_ns: (class == 1).then_some(1_000_000),
        uninterrupted: false,
    });
    let spec: ServerSpec = policy.parse().unwrap();
    PoolCore::new(PoolParts {
        decide: systems::with(&spec, &shape, Deciding { workers }).unwrap(),
        classes: classes.collect(),
        threads: ThreadTable::new(workers, 0, false),
        capacity,
        workers,
        interrupts: false,
    })
}

/// Job numbers by the order of submission, with their classes.
type BegunJobs = Vec<(usize, usize)>;

/// A job that the world holds.
type WorldJob = Arc<ClosureJob<Box<dyn FnOnce() + Send>, fn(&JoinError), ()>>;

/// What happened, in order.
struct PoolWorld {
    core: PoolCore,
    rng: Rng,
    now_ns: u64,
    /// Jobs that were accepted and have no end yet, by number.
    live: BTreeMap<usize, (usize, WorldJob)>,
    running: Vec<(u64, ChosenJob)>,
    submitted: usize,
    begun: BegunJobs,
    cancelled: usize,
}

impl PoolWorld {
    fn new(policy: &str, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let (workers, capacity) = (1 + rng.below(3), 1 + rng.below(40));
        Self {
            core: core(policy, workers, capacity),
            rng,
            now_ns: 0,
            live: BTreeMap::new(),
            running: Vec::new(),
            submitted: 0,
            begun: Vec::new(),
            cancelled: 0,
        }
    }

    fn submit(&mut self) {
        let class = self.rng.below(CLASSES);
        let job: WorldJob = ClosureJob::new(Box::new(|| ()), |_| (), false);
        let runnable = Arc::clone(&job) as Arc<dyn Runnable>;
        if self
            .core
            .submit(self.now_ns, ClassId(class as u16), runnable, false)
            .is_ok()
        {
            self.live.insert(self.submitted, (class, job));
        }
        self.submitted += 1;
    }

    /// Cancels a job, whether it waits or runs.
    fn cancel(&mut self) {
        let at = self.rng.below(self.live.len().max(1));
        let Some((_, (class, job))) = self.live.iter().nth(at) else {
            return;
        };
        let (class, job) = (ClassId(*class as u16), Arc::clone(job) as Arc<dyn Runnable>);
        self.core.cancel(class, &job);
    }

    /// The next job that ends, if any runs.
    fn finish(&mut self) {
        self.running
            .sort_by_key(|(end_ns, _)| std::cmp::Reverse(*end_ns));
        let Some((end_ns, chosen)) = self.running.pop() else {
            return;
        };
        self.now_ns = self.now_ns.max(end_ns);
        assert_eq!(chosen.job.run(), RunEnd::Done);
        let end = JobEnd {
            class: chosen.class,
            ran: RunEnd::Done,
            cpu_ns: SERVICE_NS[chosen.class.index()],
            chosen: Some(chosen.chosen),
        };
        self.core.ended(self.now_ns, end, &chosen.job);
        chosen.job.publish();
    }

    /// Every idle worker takes what it may, and every job that ended is told.
    fn settle(&mut self) {
        while let Some(chosen) = self.core.take(self.now_ns, None) {
            let number = self.number(&chosen.job);
            self.begun.push((chosen.class.index(), number));
            let end_ns = self.now_ns + SERVICE_NS[chosen.class.index()];
            self.running.push((end_ns, chosen));
        }
        for (job, why) in std::mem::take(&mut self.core.ends) {
            self.cancelled += usize::from(matches!(why, JoinError::Cancelled));
            job.end(why);
        }
        let mut context = Context::from_waker(Waker::noop());
        self.live
            .retain(|_, (_, job)| job.poll_result(&mut context).is_pending());
    }

    fn number(&self, job: &Arc<dyn Runnable>) -> usize {
        let same = |held: &WorldJob| std::ptr::addr_eq(Arc::as_ptr(held), Arc::as_ptr(job));
        let found = self.live.iter().find(|(_, (_, held))| same(held));
        *found.expect("what begins was accepted and has no end").0
    }

    /// The counts add up, the limits hold, and no job waits in vain.
    fn check(&self, policy: &str) {
        let mut live = 0;
        for class in 0..CLASSES {
            let (counts, _) = self.core.class_counts(class);
            assert!(counts.add_up(), "{policy}: {counts:?}");
            live += counts.waiting + counts.running;
            let running = self
                .running
                .iter()
                .filter(|(_, chosen)| chosen.class.index() == class);
            assert_eq!(counts.running, running.count(), "{policy}");
            if class == CLASSES - 1 {
                assert!(counts.running <= 1, "{policy}: its share");
            }
        }
        assert_eq!(self.core.live(), live, "{policy}");
        assert_eq!(self.live.len(), live, "{policy}: one end each");
        assert!(
            !self.running.is_empty() || live == 0,
            "{policy}: {live} wait, and nothing runs"
        );
    }
}

fn live_through(policy: &str, seed: u64) -> (BegunJobs, usize) {
    let mut world = PoolWorld::new(policy, seed);
    for _ in 0..400 {
        world.now_ns += world.rng.below(5_000) as u64;
        match world.rng.below(8) {
            0..4 => world.submit(),
            4 => world.cancel(),
            _ => world.finish(),
        }
        world.settle();
        world.check(policy);
    }
    while !world.core.is_idle() {
        world.finish();
        world.settle();
        world.check(policy);
    }
    (world.begun, world.cancelled)
}

#[test]
fn every_policy_ends_every_job_once_and_repeats_itself() {
    for policy in NAMES {
        let mut cancelled = 0;
        for seed in 0..40 {
            let first = live_through(policy, seed);
            assert_eq!(first, live_through(policy, seed), "{policy}, seed {seed}");
            cancelled += first.1;
        }
        assert!(cancelled > 0, "{policy}: some jobs leave the queue");
    }
}

#[test]
fn within_a_class_jobs_begin_in_the_order_of_submission() {
    for policy in NAMES {
        for seed in 0..40 {
            let (begun, _) = live_through(policy, seed);
            for class in 0..CLASSES {
                let numbers = begun
                    .iter()
                    .filter(|(of, _)| *of == class)
                    .map(|(_, number)| *number);
                assert!(numbers.is_sorted(), "{policy}, seed {seed}, class {class}");
            }
        }
    }
}

/// Cancelled jobs leave their tokens in a policy that cannot give them back; whoever found none left gets one as these are over.
#[test]
fn a_class_that_found_no_token_gets_one_later() {
    let mut world = PoolWorld::new("c-fcfs", 0);
    world.core = core("c-fcfs", 1, 4);
    let submit = |world: &mut PoolWorld, class: u16| {
        let job: WorldJob = ClosureJob::new(Box::new(|| ()), |_| (), false);
        let runnable = Arc::clone(&job) as Arc<dyn Runnable>;
        let accepted = world
            .core
            .submit(0, ClassId(class), Arc::clone(&runnable), false);
        assert_eq!(accepted, Ok(()));
        world.live.insert(world.submitted, (class.into(), job));
        world.submitted += 1;
        runnable
    };
    // One runs. Four of its class and then one of another leave: five tokens stay, and there are six.
    submit(&mut world, 0);
    world.settle();
    for (class, jobs) in [(0, 4), (1, 1)] {
        let waiting: Vec<_> = (0..jobs).map(|_| submit(&mut world, class)).collect();
        waiting
            .iter()
            .for_each(|job| world.core.cancel(ClassId(class), job));
        world.settle();
    }
    (0..3).for_each(|_| drop(submit(&mut world, 2)));
    while !world.core.is_idle() {
        world.check("c-fcfs");
        world.finish();
        world.settle();
    }
    assert_eq!(
        world.begun.iter().filter(|(class, _)| *class == 2).count(),
        3
    );
    assert_eq!(world.cancelled, 5);
}
