//! From what a program says to a pool whose threads run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use headway_machine::Clock;
use headway_machine::thread::pin_current;
use headway_ops::place::SocketKind;
use headway_ops::subject::AskedSubject;
use headway_policy::server::BegunLimit;
use headway_policy::server::admission_control::{AdmissionLimits, ClassAdmission};
use headway_policy::server::role::Owner;
use headway_policy::server::systems::{self, ServerSpec};
use headway_policy::{ClassHint, MAX_WORKERS, Resume, Shape};

use crate::builder::PoolBuilder;
use crate::class::{ClassNames, ClassOptions, nanoseconds};
use crate::class_state::BuiltClass;
use crate::core::{PoolCore, PoolParts};
use crate::decisions::Deciding;
use crate::dispatcher;
use crate::error::{BuildError, MAX_POOL_CLASSES, PoolWarning};
use crate::layout::PoolLayout;
use crate::learning::KeyLearner;
use crate::outside::PoolSubject;
use crate::pool::Pool;
use crate::shared::{SharedParts, SharedPool};
use crate::slice_settings::SliceSettings;
use crate::thread_table::ThreadTable;
use crate::worker;

/// The pools of this process so far.
static POOLS: AtomicU64 = AtomicU64::new(0);

/// The name of a pool that was given none: two in one registry of metrics are told apart by it.
fn usual_name(number: u64) -> String {
    if number == 0 {
        return "pool".into();
    }
    format!("pool-{number}")
}

/// Interruptible jobs that have begun and not ended, for each worker. Each has a thread of the process, which takes longer to make than a short job runs: where every job
/// that comes begins at once and is interrupted, an overload would make thousands, and get worse by it.
const FIBERS_PER_WORKER: usize = 64;

/// The most jobs that may wait: their numbers fit a word of the policies' queues.
const MOST_CAPACITY: usize = 1 << 22;
/// The most threads for jobs that block. Each has its place in a table from the start.
const MOST_BLOCKING_THREADS: usize = 1 << 16;
/// The class of keys that are not known yet.
const UNKNOWN: &str = "unknown";

/// The name of the class of this band.
fn learnt_name(band: usize) -> String {
    format!("learnt-{band}")
}

impl PoolBuilder {
    /// Builds the pool and starts its threads.
    ///
    /// # Errors
    /// [`BuildError`].
    pub fn build(self) -> Result<Pool, BuildError> {
        let spec: ServerSpec = self.chosen_policy().parse()?;
        let shape = self.shape()?;
        let warnings = self.admit(&spec, &shape)?;
        check_pins(&self.pins)?;
        let slices = self.slices(&spec, shape.workers)?;
        let (declared, learnt) = (self.declared(), self.learns);
        let classes = self.classes(&shape);
        let (interrupts, is_bound) = (slices.interrupt(), slices.is_bound());
        let begun = match slices {
            SliceSettings::OwningFibers(..) => {
                BegunLimit::of(self.most_begun(shape.workers), shape.workers)
            }
            _ => BegunLimit::NONE,
        };
        let (workers, layout) = (shape.workers, self.layout);
        let blocking = if is_bound { 0 } else { self.blocking_threads };
        let decide = systems::with(&spec, &shape, Deciding { workers, layout })?;
        let names = classes.iter().map(|class| class.name.clone()).collect();
        let core = PoolCore::new(PoolParts {
            decide,
            classes,
            threads: ThreadTable::new(workers, blocking, is_bound),
            limits: AdmissionLimits {
                begun,
                ..self.admission_limits(workers)
            },
            interrupts,
        });
        let number = POOLS.fetch_add(1, Ordering::Relaxed);
        let door_name = format!("{}-{number}", std::process::id());
        let doors = self.doors.bind(SocketKind::Pool, &door_name)?;
        let shared = SharedPool::new(
            core,
            SharedParts {
                name: self.name.unwrap_or_else(|| usual_name(number)),
                start: worker::start,
                pins: self.pins,
                nice: self.nice,
                slices,
                poller: self.poller,
                stall_ns: nanoseconds(self.stall_after),
                classes: ClassNames {
                    pool: number,
                    names,
                },
                learner: (learnt > 0)
                    .then(|| KeyLearner::new(declared.len(), learnt, shape.unknown())),
            },
        );
        let subject = PoolSubject::new(&shared, &spec, layout, workers);
        let pool = Pool::new(shared.clone(), warnings, AskedSubject::of(subject));
        for _ in 0..workers {
            let place = shared.core.lock().threads.enlist();
            let place = place.expect("there is a place for each worker");
            shared.start(place).map_err(BuildError::Thread)?;
        }
        if layout == PoolLayout::Dedicated {
            let core = shared.pin_of(workers);
            shared.keep(dispatcher::start(&shared, core).map_err(BuildError::Thread)?);
        }
        worker::start_rescue(&shared).map_err(BuildError::Thread)?;
        Ok(pool.answer_at(doors)?)
    }

    fn declared(&self) -> Vec<(String, ClassOptions)> {
        if self.classes.is_empty() {
            vec![("default".into(), ClassOptions::new())]
        } else {
            self.classes.clone()
        }
    }

    fn usual_workers(&self) -> usize {
        let usable = std::thread::available_parallelism().map_or(1, usize::from);
        let beside = usize::from(self.layout == PoolLayout::Dedicated);
        usable.saturating_sub(beside).max(1)
    }

    /// What the policy is built for. Its queues have no limits: the pool's come before.
    fn shape(&self) -> Result<Shape, BuildError> {
        let workers = self.workers.unwrap_or_else(|| self.usual_workers());
        if !(1..=MAX_WORKERS).contains(&workers) {
            let most = MAX_WORKERS;
            return Err(BuildError::Workers { workers, most });
        }
        if !(1..=MOST_CAPACITY).contains(&self.capacity) {
            let (capacity, most) = (self.capacity, MOST_CAPACITY);
            return Err(BuildError::Capacity { capacity, most });
        }
        if self.blocking_threads > MOST_BLOCKING_THREADS {
            let (threads, most) = (self.blocking_threads, MOST_BLOCKING_THREADS);
            return Err(BuildError::BlockingThreads { threads, most });
        }
        if self.nice > 19 {
            return Err(BuildError::Nice { nice: self.nice });
        }
        let declared = self.declared();
        let classes = declared.len().saturating_add(self.learns);
        if classes > MAX_POOL_CLASSES {
            return Err(BuildError::Classes { classes });
        }
        for (at, (name, options)) in declared.iter().enumerate() {
            let of_pool =
                name == UNKNOWN || (0..self.learns).any(|band| *name == learnt_name(band));
            if of_pool || declared[..at].iter().any(|(other, _)| other == name) {
                return Err(BuildError::SameName { name: name.clone() });
            }
            check_room(name, options)?;
            check_share(name, options.share)?;
        }
        let mut shape = Shape::new(workers);
        shape.classes = declared.iter().map(|(_, options)| options.hint()).collect();
        // Nobody said how often which comes: alike.
        if shape.classes.iter().all(|class| class.share == 0.0) {
            let share = 1.0 / shape.classes.len() as f64;
            shape
                .classes
                .iter_mut()
                .for_each(|class| class.share = share);
        }
        let learnt = (0..self.learns)
            .map(|band| ClassHint::new(KeyLearner::middle_ns(band, self.learns), 0.0));
        shape.classes.extend(learnt);
        shape.job_capacity = self.admission_limits(workers).most_heard();
        shape.resume = if self.plain_fibers {
            Resume::OwnWorker
        } else {
            Resume::Anywhere
        };
        Ok(shape)
    }

    /// Whether a pool runs the policy, and what it does otherwise.
    fn admit(&self, spec: &ServerSpec, shape: &Shape) -> Result<Vec<PoolWarning>, BuildError> {
        let (policy, facts) = (spec.name(), spec.facts());
        if facts.knows_load {
            return Err(BuildError::KnownProfile { policy });
        }
        spec.check(shape)?;
        if facts.dispatchers > 1 {
            let dispatchers = facts.dispatchers;
            return Err(BuildError::SeveralDispatchers {
                policy,
                dispatchers,
            });
        }
        if self.layout == PoolLayout::Dedicated && facts.owner != Owner::Dispatcher {
            return Err(BuildError::NoDispatcher { policy });
        }
        let mut warnings = Vec::new();
        if facts.interrupts() && !Clock::global().is_cheap() {
            warnings.push(PoolWarning::RunsToEnd { policy });
        }
        let reserves = facts
            .promises
            .is_some_and(|promises| !promises.work_conserving);
        if reserves && facts.owner == Owner::Dispatcher && shape.workers == 1 {
            warnings.push(PoolWarning::OneWorker { policy });
        }
        Ok(warnings)
    }

    fn slices(&self, spec: &ServerSpec, workers: usize) -> Result<SliceSettings, BuildError> {
        // Jobs interrupt themselves by the clock.
        if !spec.facts().interrupts() || !Clock::global().is_cheap() {
            return Ok(SliceSettings::ToTheEnd);
        }
        let slices = if self.plain_fibers {
            SliceSettings::plain_fibers(self.stack_bytes)
        } else {
            SliceSettings::owning_fibers(self.stack_bytes, self.most_begun(workers))
        };
        slices.map_err(BuildError::Stacks)
    }

    fn most_begun(&self, workers: usize) -> usize {
        let most = self.fibers.unwrap_or(FIBERS_PER_WORKER * workers);
        most.max(workers)
    }

    /// The limits of all classes together, where what has begun takes nothing that is scarce.
    fn admission_limits(&self, workers: usize) -> AdmissionLimits {
        AdmissionLimits {
            workers,
            capacity: self.capacity,
            begun: BegunLimit::NONE,
        }
    }

    /// The classes: the declared, the learnt, and that of keys which are not known yet.
    fn classes(&self, shape: &Shape) -> Vec<BuiltClass> {
        let plain = |name: String, mean_ns: f64| BuiltClass {
            name,
            admission: ClassAdmission {
                mean_ns,
                ..ClassAdmission::OPEN
            },
            uninterrupted: false,
        };
        let declared = self
            .declared()
            .into_iter()
            .map(|(name, options)| BuiltClass {
                name,
                admission: ClassAdmission {
                    mean_ns: options.mean.unwrap_or(Duration::ZERO).as_nanos() as f64,
                    slo_ns: options.slo.map(nanoseconds),
                    workers_at_most: options.workers_at_most.unwrap_or(usize::MAX),
                    queue_limit: options.queue_limit.unwrap_or(usize::MAX),
                    begin_within_ns: options.begin_within.map(nanoseconds),
                },
                uninterrupted: options.uninterrupted,
            });
        let mut classes: Vec<BuiltClass> = declared.collect();
        for band in 0..self.learns {
            classes.push(plain(
                learnt_name(band),
                shape.classes[classes.len()].mean_ns,
            ));
        }
        classes.push(plain(UNKNOWN.into(), 0.0));
        classes
    }
}

/// Whether a thread may be pinned to each of these cores, tried on a thread made for it.
fn check_pins(cores: &[usize]) -> Result<(), BuildError> {
    for &core in cores {
        let tries = std::thread::Builder::new().spawn(move || pin_current(core));
        let tried = tries.map_err(BuildError::Thread)?.join();
        tried.expect("pinning does not panic")?;
    }
    Ok(())
}

fn check_share(name: &str, share: f64) -> Result<(), BuildError> {
    if (0.0..=1.0).contains(&share) {
        return Ok(());
    }
    let class = name.into();
    Err(BuildError::Share { class, share })
}

fn check_room(name: &str, options: &ClassOptions) -> Result<(), BuildError> {
    let limits = [
        ("workers_at_most", options.workers_at_most),
        ("queue_limit", options.queue_limit),
    ];
    match limits.into_iter().find(|(_, limit)| *limit == Some(0)) {
        Some((what, _)) => Err(BuildError::NoRoom {
            what,
            class: name.into(),
        }),
        None => Ok(()),
    }
}
