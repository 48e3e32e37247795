//! What can go wrong with a server as a whole.

use std::error::Error;
use std::io;
use std::time::Duration;

use headway_fiber::Unavailable;
use headway_machine::thread::PinError;
use headway_net::pool::PoolError;
use headway_net::udp::BindError;
#[cfg(feature = "ops")]
use headway_ops::doors::DoorError;
use headway_policy::spec::SpecError;

/// The reason why a service could not prepare a thread: any error, shown to the user as it is.
pub type SetupFailure = Box<dyn Error + Send + Sync>;

/// Why a server did not start.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The policy's name or a parameter is wrong.
    #[error("policy: {}", explain(.0))]
    Policy(#[from] SpecError),
    /// A service of loops was to change threads.
    #[error(
        "loops that take their requests themselves go on in the thread where they began: leave the resume mode out, answer requests one by one, or promise          that loops keep nothing in their threads (`Builder::plain_fibers`)"
    )]
    LoopsStay,
    /// The policy has all requests taken from one receive queue, and they were to be steered to workers.
    #[error(
        "policy {policy} takes all requests from one receive queue: leave the steering out, or choose \
         d-fcfs, work-stealing or synergy"
    )]
    OneQueue {
        /// The policy.
        policy: &'static str,
    },
    /// The server was to stand behind a rack's switch under a policy that places no requests.
    #[error(
        "policy {policy} has no dispatcher that could drop clones or hand requests back: choose one that has, such as c-fcfs or darc, or none"
    )]
    NoDispatcher {
        /// The policy.
        policy: &'static str,
    },
    /// A layout was chosen under a policy that has nobody to lay out.
    #[error(
        "policy {policy} has neither a dispatcher nor a monitor to be laid out: leave the layout out, or choose a policy with one, such as c-fcfs \
         or synergy"
    )]
    NothingLaidOut {
        /// The policy.
        policy: &'static str,
    },
    /// Queues were to have a limit under a policy whose requests wait in the network's receive queues.
    #[error(
        "under {policy} requests wait in the receive queues, which the server does not limit: leave the queue limit out, or choose a policy with a \
         dispatcher, such as c-fcfs"
    )]
    UnlimitedQueues {
        /// The policy.
        policy: &'static str,
    },
    /// A mechanism was chosen by which a dispatcher interrupts, under a policy without such a dispatcher.
    #[error(
        "policy {policy} has no dispatcher that interrupts requests: leave the mechanism out, or choose a policy with one, such as concord"
    )]
    NoInterrupter {
        /// The policy.
        policy: &'static str,
    },
    /// Only requests were to be interrupted that say that they are long, under a policy that interrupts none.
    #[error(
        "policy {policy} interrupts no request: leave the feedback out, or choose a policy that does, such as concord"
    )]
    NoInterruptions {
        /// The policy.
        policy: &'static str,
    },
    /// Threads that lend requests their state were to be bounded, and there are none.
    #[error("no thread lends requests its state, since {why}: leave the most of such threads out")]
    NothingLent {
        /// Why there are none.
        why: &'static str,
    },
    /// Workers were to look for arrivals at an interval, and nothing looks.
    #[error(
        "workers look for arrivals while a request runs only under a policy that interrupts, and only where no dispatcher has a thread for it: \
         leave the interval out, or choose the inline layout and a policy such as concord, or one without a dispatcher, such as synergy or tardis"
    )]
    NoLooks,
    /// Workers were to look for arrivals too often or too seldom.
    #[error(
        "workers cannot look for arrivals every {interval:?}: a look can take a microsecond, and what arrives waits for one; choose at least 1us and at most 1s"
    )]
    LookInterval {
        /// The interval chosen.
        interval: Duration,
    },
    /// Workers were to interrupt themselves, by signals.
    #[error(
        "signals come from a dispatcher with a thread of its own: choose the dedicated layout, or leave it out, or interrupt by flags"
    )]
    InlineSignals,
    /// Workers were to keep time for a monitor that interrupts in between.
    #[error(
        "this policy interrupts requests when more urgent ones come, which a worker that keeps the time itself would not see: interrupt by flags, \
         or choose the inline layout, where workers look for arrivals themselves"
    )]
    ClockTooLate,
    /// The server was to run on cores that an arbiter grants, in a way that it cannot.
    #[error("on cores that an arbiter grants, {0}")]
    Hosted(String),
    /// Nothing tells the time that code may look at cheaply.
    #[error(
        "policies that interrupt running requests need a steady time-stamp counter, which this machine does not have; \
         choose darc to protect short requests without interruption"
    )]
    NoTsc,
    /// Requests cannot be interrupted like this here.
    #[error(transparent)]
    Mechanism(#[from] Unavailable),
    /// The fibers' stacks could not be made.
    #[error(
        "cannot make stacks of {bytes} bytes: {source}; see `sysctl vm.max_map_count` and `ulimit -v`"
    )]
    Stacks {
        /// Of one stack.
        bytes: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The policy was told what only a simulation knows.
    #[error(
        "policy {policy}: profile=known tells the policy what only a simulation knows; leave it out: \
         the server profiles by itself"
    )]
    KnownProfile {
        /// The policy.
        policy: &'static str,
    },
    /// The address could not be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The number of workers is out of range.
    #[error("a server has 1 to {max} workers, not {workers}; choose at most one per core")]
    Workers {
        /// Workers asked for.
        workers: usize,
        /// The most there may be.
        max: usize,
    },
    /// A number of the builder's is out of range.
    #[error("{what} is {number}: {}", range(what, *least, *most))]
    OutOfRange {
        /// The builder's method.
        what: &'static str,
        /// What it was told.
        number: usize,
        /// The least it may be.
        least: usize,
        /// The most it may be.
        most: usize,
    },
    /// A class was declared to take no time.
    #[error(
        "class {class} has a service time of 0: give what one of its requests takes, roughly; policies order the classes by it"
    )]
    NoTime {
        /// The class.
        class: String,
    },
    /// A class's time or share is no such thing.
    #[error(
        "class {class} has a service time of {mean_ns} ns and a share of {share}: a time is 0 (unknown) or more, and a share 0 to 1"
    )]
    Hint {
        /// The class.
        class: String,
        /// Its service time, ns.
        mean_ns: f64,
        /// Its share of the requests.
        share: f64,
    },
    /// Two classes have one name, or one has that of the server's own: their series in the metrics would be one.
    #[error(
        "class '{name}' is declared twice, or is one of the server's own: give each its own name"
    )]
    SameName {
        /// The name.
        name: String,
    },
    /// Too many classes were declared.
    #[error("a server has at most {max} classes, not {classes}; merge some in the classifier")]
    Classes {
        /// Classes declared.
        classes: usize,
        /// The most there may be.
        max: usize,
    },
    /// The queues could hold more requests than a server has buffers.
    #[error(
        "queues of {requests} requests need more buffers than a server has: choose at most {most} with this many classes and workers"
    )]
    QueueLimit {
        /// Requests that were to wait in one queue.
        requests: usize,
        /// The most that may.
        most: usize,
    },
    /// Fewer cores were named than there are threads.
    #[error(
        "{threads} threads cannot be pinned to {cores} cores; name more cores, use fewer workers, \
         lay the dispatcher inline, or run without pinning"
    )]
    TooFewCores {
        /// Threads of this layout.
        threads: usize,
        /// Cores named.
        cores: usize,
    },
    /// A thread could not be pinned to the core named.
    #[error(transparent)]
    Pin(PinError),
    /// The buffers could not be made.
    #[error("buffers: {0}")]
    Pool(#[from] PoolError),
    /// The datapath could not be divided among the threads.
    #[error("cannot divide the datapath into {queues} receive queues for this policy: {source}")]
    Datapath {
        /// Receive queues the policy needs.
        queues: usize,
        /// What the datapath said.
        source: io::Error,
    },
    /// The service could not make a thread ready.
    #[error("thread {name} could not be set up: {source}")]
    Setup {
        /// The thread's name.
        name: String,
        /// What the service said.
        source: SetupFailure,
    },
    /// The system refused a thread.
    #[error("cannot start thread {name}: {source}; see `ulimit -u`")]
    Thread {
        /// The thread's name.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The control socket, or the port for metrics, cannot be had.
    #[cfg(feature = "ops")]
    #[error(transparent)]
    Doors(#[from] DoorError),
}

headway_words::debug_is_display!(StartError);

/// The setting of a server that an error is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerSetting {
    /// The policy and its parameters.
    Policy,
    /// The number of workers.
    Workers,
    /// The declared classes.
    Classes,
    /// The limit of a queue.
    QueueLimit,
    /// Who carries the dispatcher or the monitor out.
    Layout,
    /// By what a dispatcher interrupts.
    Mechanism,
    /// Whether requests say that they are long.
    Feedback,
    /// The most threads that lend requests their state.
    LentThreads,
    /// How often workers look for arrivals.
    LookEvery,
    /// By what requests are steered to receive queues.
    Steering,
    /// The cores of the threads.
    Pin,
    /// The arbiter that grants the cores.
    Host,
    /// The control socket.
    Control,
    /// The address for Prometheus and browsers.
    Metrics,
    /// Another, or none: the system refused something.
    Other,
}

impl StartError {
    /// The setting to change.
    #[must_use]
    pub fn setting(&self) -> ServerSetting {
        match self {
            Self::Policy(_) | Self::NoDispatcher { .. } | Self::KnownProfile { .. } => {
                ServerSetting::Policy
            }
            Self::Workers { .. } => ServerSetting::Workers,
            Self::NoTime { .. }
            | Self::Hint { .. }
            | Self::SameName { .. }
            | Self::Classes { .. } => ServerSetting::Classes,
            Self::QueueLimit { .. }
            | Self::UnlimitedQueues { .. }
            | Self::OutOfRange {
                what: "queue_limit",
                ..
            } => ServerSetting::QueueLimit,
            Self::NothingLaidOut { .. } | Self::InlineSignals => ServerSetting::Layout,
            Self::NoInterrupter { .. } | Self::ClockTooLate | Self::Mechanism(_) => {
                ServerSetting::Mechanism
            }
            Self::NoInterruptions { .. } => ServerSetting::Feedback,
            Self::NothingLent { .. } => ServerSetting::LentThreads,
            Self::NoLooks | Self::LookInterval { .. } => ServerSetting::LookEvery,
            Self::OneQueue { .. } => ServerSetting::Steering,
            Self::TooFewCores { .. } | Self::Pin(_) => ServerSetting::Pin,
            Self::Hosted(_) => ServerSetting::Host,
            #[cfg(feature = "ops")]
            Self::Doors(DoorError::Control(_)) => ServerSetting::Control,
            #[cfg(feature = "ops")]
            Self::Doors(DoorError::Metrics { .. }) => ServerSetting::Metrics,
            #[cfg(feature = "ops")]
            Self::Doors(_) => ServerSetting::Other,
            Self::NoTsc
            | Self::LoopsStay
            | Self::Stacks { .. }
            | Self::Bind(_)
            | Self::OutOfRange { .. }
            | Self::Pool(_)
            | Self::Datapath { .. }
            | Self::Setup { .. }
            | Self::Thread { .. } => ServerSetting::Other,
        }
    }
}

/// What went wrong while a server ran, told when it is shut down.
#[derive(thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShutdownError {
    /// Handlers that did not return; their threads are left behind.
    #[error(
        "shut down, but {} did not return from a handler in time; allow a later deadline, or look for \
         an endless loop there",
        .threads.join(", ")
    )]
    Stuck {
        /// The threads' names.
        threads: Vec<String>,
    },
    /// A thread of the server itself panicked.
    #[error("the server gave up because {} panicked; its message says why", .threads.join(", "))]
    Crashed {
        /// The threads' names.
        threads: Vec<String>,
    },
}

headway_words::debug_is_display!(ShutdownError);

/// What went wrong with a server that was all that its process did.
#[cfg(feature = "ops")]
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Signals cannot be watched.
    #[error(
        "cannot watch for signals: {0}; raise the limit of files or processes (ulimit -n, ulimit -u)"
    )]
    Signals(#[source] io::Error),
    /// The stop failed.
    #[error(transparent)]
    Shutdown(#[from] ShutdownError),
}

#[cfg(feature = "ops")]
headway_words::debug_is_display!(RunError);

/// The number of workers cannot be changed so.
#[derive(thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResizeError {
    /// Out of range.
    #[error("this server was started for 1 to {max} workers, not {workers}; restart it with more")]
    OutOfRange {
        /// Workers asked for.
        workers: usize,
        /// Workers it was started with.
        max: usize,
    },
    /// A dispatcher would have no worker left.
    #[error(
        "each of {dispatchers} dispatchers keeps a worker, so {workers} are too few; choose at least {dispatchers}"
    )]
    Dispatchers {
        /// Workers asked for.
        workers: usize,
        /// Dispatchers of the server.
        dispatchers: usize,
    },
    /// No dispatcher decides who gets what.
    #[error(
        "policy {policy} has no dispatcher that could leave workers out, so their number is fixed; \
         choose a policy with a dispatcher"
    )]
    Steered {
        /// The policy.
        policy: &'static str,
    },
}

headway_words::debug_is_display!(ResizeError);

/// The error in a policy, with the nearest valid word.
fn explain(error: &SpecError) -> String {
    let alternatives = error.alternatives();
    let hint = alternatives.map_or(String::new(), |(word, valid)| {
        headway_words::hint(word, valid)
    });
    format!("{error}{hint}")
}

/// What to choose instead, where a number is out of range.
fn range(what: &str, least: usize, most: usize) -> String {
    match what {
        "slots" => format!(
            "choose {least}, one buffer per worker, to {most}, or leave it out: the queues then get as many as they need"
        ),
        _ if most == usize::MAX => format!("choose at least {least}"),
        _ => format!("choose {least} to {most}"),
    }
}
