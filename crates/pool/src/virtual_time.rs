//! The pool's lock in virtual time: a seed's events under every policy, without threads, to the bit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Waker};

use headway_policy::server::BegunLimit;
use headway_policy::server::admission_control::{AdmissionLimits, ClassAdmission};
use headway_policy::server::role::Owner;
use headway_policy::server::systems::{self, NAMES, ServerSpec};
use headway_policy::{ClassId, Rng, Shape};

use crate::chosen::ChosenJob;
use crate::class::ClassNames;
use crate::class_state::BuiltClass;
use crate::core::{JobEnd, PoolCore, PoolParts};
use crate::decisions::Deciding;
use crate::error::JoinError;
use crate::job::{ClosureJob, EarlyEnd, Joined, RunEnd, Runnable};
use crate::layout::PoolLayout;
use crate::shared::SharedParts;
use crate::slice_settings::SliceSettings;
use crate::thread_table::ThreadTable;
use crate::worker;

const CLASSES: usize = 3;
const SERVICE_NS: [u64; CLASSES] = [1_000, 100_000, 10_000];

/// A pool of so many workers; the last class has one of them at most.
pub(crate) fn core(policy: &str, layout: PoolLayout, workers: usize, capacity: usize) -> PoolCore {
    let mut shape = Shape::new(workers);
    for service_ns in SERVICE_NS {
        shape = shape.class(service_ns, 0.3);
    }
    let limits = AdmissionLimits {
        workers,
        capacity,
        begun: BegunLimit::NONE,
    };
    shape.job_capacity = limits.most_heard();
    let classes = (0..CLASSES).map(|class| BuiltClass {
        admission: ClassAdmission {
            mean_ns: SERVICE_NS[class] as f64,
            workers_at_most: if class == CLASSES - 1 { 1 } else { usize::MAX },
            begin_within_ns: (class == 1).then_some(1_000_000),
            ..ClassAdmission::OPEN
        },
        ..BuiltClass::open(&class.to_string())
    });
    let spec: ServerSpec = policy.parse().unwrap();
    PoolCore::new(PoolParts {
        decide: systems::with(&spec, &shape, Deciding { workers, layout }).unwrap(),
        classes: classes.collect(),
        threads: ThreadTable::new(workers, 0, false),
        limits,
        interrupts: false,
    })
}

/// What a test's pool is beside its core, where it has threads: plain ones that run each job to its end, at no door.
pub(crate) fn shared_parts() -> SharedParts {
    SharedParts {
        name: "model".into(),
        start: worker::start,
        pins: Vec::new(),
        nice: 0,
        slices: SliceSettings::ToTheEnd,
        poller: None,
        stall_ns: 0,
        classes: ClassNames {
            pool: u64::MAX,
            names: Vec::new(),
        },
        learner: None,
    }
}

/// Every policy inline, and in a layout of its own where it has a dispatcher.
fn policies() -> impl Iterator<Item = (&'static str, PoolLayout)> {
    let has_dispatcher = |policy: &&str| {
        let spec: ServerSpec = policy.parse().unwrap();
        spec.facts().owner == Owner::Dispatcher
    };
    let inline = NAMES.iter().map(|policy| (*policy, PoolLayout::Inline));
    let dedicated = NAMES.iter().copied().filter(has_dispatcher);
    inline.chain(dedicated.map(|policy| (policy, PoolLayout::Dedicated)))
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
    fn new(policy: &str, layout: PoolLayout, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let (workers, capacity) = (1 + rng.below(3), 1 + rng.below(40));
        Self {
            core: core(policy, layout, workers, capacity),
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

    /// The dispatcher hears of all events so far, and places jobs.
    fn dispatch(&mut self) {
        self.core.dispatch(self.now_ns);
    }

    /// Workers may leave events behind for it as they look for something to run.
    fn dispatch_all(&mut self) {
        self.settle();
        while self.core.awaits_dispatcher() {
            self.dispatch();
            self.settle();
        }
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
            self.cancelled += usize::from(why == EarlyEnd::Cancelled);
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

    /// No job waits in vain, once the dispatcher has heard of it.
    fn check_progress(&self, policy: &str) {
        let live = self.live.len();
        assert!(
            !self.running.is_empty() || live == 0,
            "{policy}: {live} wait, and nothing runs"
        );
    }

    /// The counts add up, and the limits hold.
    fn check(&self, policy: &str) {
        let mut live = 0;
        for class in 0..CLASSES {
            let (counts, _) = self.core.class_counts(ClassId(class as u16));
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
    }
}

fn live_through(policy: &str, layout: PoolLayout, seed: u64) -> (BegunJobs, usize) {
    let mut world = PoolWorld::new(policy, layout, seed);
    for _ in 0..400 {
        world.now_ns += world.rng.below(5_000) as u64;
        match world.rng.below(8) {
            0..4 => world.submit(),
            4 => world.cancel(),
            _ => world.finish(),
        }
        world.settle();
        // The dispatcher's thread comes when it comes.
        let is_heard = layout == PoolLayout::Inline || world.rng.below(3) == 0;
        if is_heard {
            world.dispatch_all();
        }
        world.check(policy);
        if is_heard {
            world.check_progress(policy);
        }
    }
    while !world.core.is_idle() {
        world.finish();
        world.dispatch_all();
        world.check(policy);
        world.check_progress(policy);
    }
    (world.begun, world.cancelled)
}

#[test]
fn every_policy_ends_every_job_once_and_repeats_itself() {
    for (policy, layout) in policies() {
        let mut cancelled = 0;
        for seed in 0..40 {
            let first = live_through(policy, layout, seed);
            let again = live_through(policy, layout, seed);
            assert_eq!(first, again, "{policy}, {layout:?}, seed {seed}");
            cancelled += first.1;
        }
        assert!(cancelled > 0, "{policy}: some jobs leave the queue");
    }
}

#[test]
fn within_a_class_jobs_begin_in_the_order_of_submission() {
    for (policy, layout) in policies() {
        for seed in 0..40 {
            let (begun, _) = live_through(policy, layout, seed);
            for class in 0..CLASSES {
                let numbers = begun
                    .iter()
                    .filter(|(of, _)| *of == class)
                    .map(|(_, number)| *number);
                assert!(
                    numbers.is_sorted(),
                    "{policy}, {layout:?}, seed {seed}, class {class}"
                );
            }
        }
    }
}

/// The submitter leaves its event behind; the policy hears of it, and a worker finds the job, once the dispatcher came.
#[test]
fn a_dispatcher_of_its_own_places_what_others_submit() {
    for (policy, layout) in policies() {
        let mut world = PoolWorld::new(policy, layout, 0);
        world.core = core(policy, layout, 1, 4);
        world.submit();
        world.settle();
        let begins_at_once = layout == PoolLayout::Inline;
        assert_eq!(world.running.len(), usize::from(begins_at_once), "{policy}");
        world.dispatch();
        world.settle();
        assert_eq!(world.running.len(), 1, "{policy}");
    }
}

/// A pool that has ended has no dispatcher's thread any more. What was interrupted is placed by the worker that comes next, before that leaves.
#[test]
fn after_the_end_workers_place_what_was_interrupted() {
    for (policy, layout) in policies() {
        let mut world = PoolWorld::new(policy, layout, 0);
        world.core = core(policy, layout, 1, 4);
        world.submit();
        world.dispatch_all();
        let (_, chosen) = world.running.pop().unwrap();
        // The tokens of those that are abandoned are taken up first, and end at once.
        (0..3).for_each(|_| world.submit());
        world.dispatch_all();
        world.core.abandon();
        world.core.yielded(5, chosen.chosen, 5, chosen.job);
        world.settle();
        assert_eq!(world.running.len(), 1, "{policy}, {layout:?}");
    }
}

/// Cancelled jobs leave their tokens in a policy that cannot give them back; whoever found none left gets one as these are over.
#[test]
fn a_class_that_found_no_token_gets_one_later() {
    let mut world = PoolWorld::new("c-fcfs", PoolLayout::Inline, 0);
    world.core = core("c-fcfs", PoolLayout::Inline, 1, 4);
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
        world.check_progress("c-fcfs");
        world.finish();
        world.settle();
    }
    assert_eq!(
        world.begun.iter().filter(|(class, _)| *class == 2).count(),
        3
    );
    assert_eq!(world.cancelled, 5);
}
