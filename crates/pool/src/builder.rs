//! What a program says of a pool.

use std::net::SocketAddr;
use std::time::Duration;

use headway_ops::doors::StatusDoors;
use headway_ops::socket::ControlPlace;

use crate::class::ClassOptions;
use crate::layout::PoolLayout;
use crate::poller::Poller;

/// Where no policy is named and jobs run to their end: it keeps workers for short classes by what it learns.
const RUN_TO_END: &str = "darc-stable";

/// Where no policy is named and jobs have checkpoints: least remaining service first where what completed tells how long a class takes, least attained first where it
/// does not.
const INTERRUPTING: &str = "gittins";

/// Jobs that may wait, unless chosen otherwise.
const CAPACITY: usize = 16_384;

/// Threads that may block beside the workers, unless chosen otherwise.
const BLOCKING_THREADS: usize = 64;

/// The stack of a fiber, unless chosen otherwise: as large as that of a thread. What is not touched takes no memory.
const STACK_BYTES: usize = 2 << 20;

/// How long past its slice's end a job may go on without a probe until it counts as a stall, unless chosen otherwise.
const STALL_AFTER: Duration = Duration::from_micros(50);

/// Builds a [`Pool`](crate::Pool).
#[derive(Clone, Debug)]
pub struct PoolBuilder {
    pub(crate) policy: Option<String>,
    pub(crate) has_checkpoints: bool,
    pub(crate) layout: PoolLayout,
    pub(crate) workers: Option<usize>,
    pub(crate) classes: Vec<(String, ClassOptions)>,
    pub(crate) learns: usize,
    pub(crate) capacity: usize,
    pub(crate) blocking_threads: usize,
    pub(crate) name: Option<String>,
    pub(crate) pins: Vec<usize>,
    pub(crate) nice: u8,
    pub(crate) stack_bytes: usize,
    /// At most so many jobs on fibers of their own.
    pub(crate) fibers: Option<usize>,
    pub(crate) plain_fibers: bool,
    pub(crate) stall_after: Duration,
    pub(crate) poller: Option<Poller>,
    pub(crate) doors: StatusDoors,
}

impl Default for PoolBuilder {
    fn default() -> Self {
        Self {
            policy: None,
            has_checkpoints: false,
            layout: PoolLayout::default(),
            workers: None,
            classes: Vec::new(),
            learns: 0,
            capacity: CAPACITY,
            blocking_threads: BLOCKING_THREADS,
            name: None,
            pins: Vec::new(),
            nice: 0,
            stack_bytes: STACK_BYTES,
            fibers: None,
            plain_fibers: false,
            stall_after: STALL_AFTER,
            poller: None,
            doors: StatusDoors::default(),
        }
    }
}

impl PoolBuilder {
    /// The policy by name, with parameters: `darc-stable,window=1000`. Any live policy of a server goes. Unless chosen `darc-stable`, which
    /// runs each job to its end, or `gittins` where jobs have [checkpoints](Self::checkpoints).
    ///
    /// Some policies interrupt jobs at their probes: [`checkpoint`](crate::checkpoint()), or those of Headway's compiler pass. Under them a job runs with a
    /// thread's state of its own: thread-local variables, locks, `tracing` spans, a runtime's guard, `errno` are the job's, at whichever worker it goes on.
    #[must_use]
    pub fn policy(mut self, policy: &str) -> Self {
        self.policy = Some(policy.into());
        self
    }

    /// Says that long jobs have checkpoints, so that the pool may choose a policy that interrupts them: `gittins`, where none is named.
    #[must_use]
    pub fn checkpoints(mut self) -> Self {
        self.has_checkpoints = true;
        self
    }

    /// The policy that was chosen, or that the pool takes where none was.
    pub(crate) fn chosen_policy(&self) -> &str {
        let default = if self.has_checkpoints {
            INTERRUPTING
        } else {
            RUN_TO_END
        };
        self.policy.as_deref().unwrap_or(default)
    }

    /// Who is the dispatcher; unless chosen, the threads that submit and the workers take turns ([`PoolLayout::Inline`]).
    /// [`build`](Self::build) refuses [`PoolLayout::Dedicated`] under a policy without a dispatcher.
    #[must_use]
    pub fn layout(mut self, layout: PoolLayout) -> Self {
        self.layout = layout;
        self
    }

    /// The number of jobs that run at a time. Unless chosen, one for each processor that the process may use by its affinity mask and its cgroup's
    /// quota, but for a [dispatcher's own](Self::layout).
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers);
        self
    }

    /// Declares a class. Without any there is one, `default`.
    #[must_use]
    pub fn class(mut self, name: &str, options: ClassOptions) -> Self {
        self.classes.push((name.into(), options));
        self
    }

    /// Learns so many classes from the keys of [`submit_unclassified`](crate::Pool::submit_unclassified).
    #[must_use]
    pub fn learn_classes(mut self, classes: usize) -> Self {
        self.learns = classes;
        self
    }

    /// At most so many jobs wait, of all classes; 16 384 unless chosen. A full pool sheds the youngest job of its longest class for one of a class at
    /// most a quarter as long, and refuses others.
    #[must_use]
    pub fn capacity(mut self, jobs: usize) -> Self {
        self.capacity = jobs;
        self
    }

    /// At most so many jobs are beside the workers, since they left theirs by [`blocking`](crate::blocking); 64 unless chosen.
    #[must_use]
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        self.blocking_threads = threads;
        self
    }

    /// The pool's name in its status and its metrics, and the beginning of its threads' names, of which the kernel keeps 15 bytes. Unless chosen `pool`
    /// for the first pool of the process, then `pool-1` and so on.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        // No thread's name may have one.
        self.name = Some(name.replace('\0', ""));
        self
    }

    /// Pins thread `i` to core `cores[i % n]`, and a [dispatcher's own](Self::layout) as if it came after the workers. Unless chosen the kernel places them.
    #[must_use]
    pub fn pin(mut self, cores: &[usize]) -> Self {
        self.pins = cores.to_vec();
        self
    }

    /// Gives the pool's threads this nice value, 0 to 19; 0 unless chosen. With 10 they make way for the program's other threads, those that serve
    /// connections, as these wake; without, such a thread waits until the kernel takes the core from a job that computes. They make way for other
    /// processes of the machine too.
    #[must_use]
    pub fn nice(mut self, nice: u8) -> Self {
        self.nice = nice;
        self
    }

    /// Has the pool's workers call this between slices and at each question to the policy, and all the time while they have no job, in place of sleep:
    /// where a program takes its events from memory or a device in user space, a job so waits for no thread to wake. It sees what came, submits it, and returns.
    /// Several workers call it at once. A worker so takes its whole core; unless chosen, workers without a job sleep. One that panics is not called again: the workers
    /// sleep from then on. What it holds, such as a handle of the pool, it holds until [`shutdown`](crate::Pool::shutdown).
    ///
    /// ```
    /// use headway_pool::Pool;
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use std::sync::Arc;
    ///
    /// let polls = Arc::new(AtomicUsize::new(0));
    /// let seen = Arc::clone(&polls);
    /// let pool = Pool::builder().workers(1).poll_with(move || _ = seen.fetch_add(1, Ordering::Relaxed)).build()?;
    /// pool.run("default", || ())?;
    /// assert!(polls.load(Ordering::Relaxed) > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn poll_with(mut self, poll: impl Fn() + Send + Sync + 'static) -> Self {
        self.poller = Some(Poller::new(poll));
        self
    }

    /// Answers `headway ctl status` and `headway top` while there is a handle of the pool, on a thread of its own: at a path, or at the [usual
    /// place](ControlPlace::Usual), where they look; nowhere unless chosen. Only the user of the process, and root, are answered.
    #[must_use]
    pub fn control(mut self, place: impl Into<ControlPlace>) -> Self {
        self.doors.control = place.into();
        self
    }

    /// Answers Prometheus at `http://ADDR:PORT/metrics`, and browsers at `http://ADDR:PORT/`, on threads of their own; port 0 lets the system choose.
    /// Whoever reaches the address may read. A program with a registry of its own registers [`Pool::collector`](crate::Pool::collector) there instead.
    #[must_use]
    pub fn metrics(mut self, addr: SocketAddr) -> Self {
        self.doors.metrics = Some(addr);
        self
    }

    /// How long past its slice's end a job may go on without a probe until it counts as a [stall](crate::ClassRuns::stalls); 50 µs unless chosen. A class with
    /// eight is named once on standard error.
    #[must_use]
    pub fn stall_after(mut self, time: Duration) -> Self {
        self.stall_after = time;
        self
    }

    /// At most so many jobs that can be interrupted have begun and not ended, each on a thread's state of its own; 64 for each worker unless chosen, and at
    /// least two for each, so that it finds something to do. The others wait in the queues of their classes, and the policy hears of them later: of what is left a class has at most twice as much, so that
    /// one which is overloaded leaves room for the others. Nothing to [plain fibers](Self::plain_fibers).
    #[must_use]
    pub fn begun_at_most(mut self, jobs: usize) -> Self {
        self.fibers = Some(jobs);
        self
    }

    /// The stack of a job that can be interrupted; 2 MiB unless chosen.
    #[must_use]
    pub fn stack_bytes(mut self, bytes: usize) -> Self {
        self.stack_bytes = bytes;
        self
    }

    /// Runs jobs on plain fibers, without a thread's state of their own: a switch takes 3 ns in place of 30, and an interrupted job goes on in its thread. Policies
    /// under which it goes on at any worker are refused then, and [blocking](crate::blocking) sections keep their worker.
    ///
    /// # Safety
    /// A suspended job shares its thread with the jobs that run meanwhile. No job holds over a probe what another may want or change there: a lock
    /// (`std::sync::Mutex` would deadlock), a borrow of a thread-local variable, an entered `tracing` span, a runtime's guard.
    #[must_use]
    #[expect(unsafe_code, reason = "the caller promises what no type can")]
    pub unsafe fn plain_fibers(mut self) -> Self {
        self.plain_fibers = true;
        self
    }
}
