//! What can go wrong: with a pool as it is built, with a job as it is submitted, with a job that was accepted.

use std::any::Any;
use std::fmt;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use headway_machine::thread::PinError;
use headway_ops::doors::DoorError;
use headway_policy::spec::SpecError;

/// The most classes of a pool, learnt ones included.
pub const MAX_POOL_CLASSES: usize = 15;

/// Why a pool was not built.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The policy's name or a parameter is wrong, or the policy decides elsewhere: for a rack, for a host, in virtual time.
    #[error("policy: {}", explain(.0))]
    Policy(#[from] SpecError),
    /// The policy starts with a profile of the load that only a simulation has.
    #[error(
        "policy {policy} with profile=known starts with a load that only a simulation knows: leave profile out"
    )]
    KnownProfile {
        /// The policy.
        policy: &'static str,
    },
    /// The policy divides the workers among several dispatchers.
    #[error(
        "policy {policy} has {dispatchers} dispatchers, and a pool decides in one place: leave dispatchers out"
    )]
    SeveralDispatchers {
        /// The policy.
        policy: &'static str,
        /// How many it has.
        dispatchers: usize,
    },
    /// The policy has no dispatcher that could have a thread of its own.
    #[error(
        "policy {policy} has no dispatcher: leave the dedicated layout out, or choose a policy that has one, such as darc-stable"
    )]
    NoDispatcher {
        /// The policy.
        policy: &'static str,
    },
    /// The number of workers is out of range.
    #[error(
        "{workers} workers: give 1 to {most}, or leave it out for one a processor that the process may use"
    )]
    Workers {
        /// The number.
        workers: usize,
        /// The most.
        most: usize,
    },
    /// There are too many classes.
    #[error(
        "{classes} classes, learnt ones included: at most {MAX_POOL_CLASSES}; put jobs of similar length into one"
    )]
    Classes {
        /// How many were declared.
        classes: usize,
    },
    /// There are too many threads for jobs that block.
    #[error("{threads} threads for jobs that block: give {most} at most")]
    BlockingThreads {
        /// How many were asked for.
        threads: usize,
        /// The most.
        most: usize,
    },
    /// Two classes have one name, or one has the name of a class of the pool's own: `unknown`, or `learnt-0` and so on.
    #[error(
        "class '{name}' is declared twice, or is one of the pool's own: give each its own name"
    )]
    SameName {
        /// The name.
        name: String,
    },
    /// A class's share is no part of all jobs.
    #[error("share of class '{class}' is {share}: give 0 to 1, or leave it out")]
    Share {
        /// The class.
        class: String,
        /// What was said.
        share: f64,
    },
    /// A limit is zero, so that no job could ever run or wait.
    #[error("{what} of class '{class}' is 0: give at least 1, or leave it out")]
    NoRoom {
        /// Which limit.
        what: &'static str,
        /// The class.
        class: String,
    },
    /// The pool's queue has no room, or more than job numbers allow.
    #[error("capacity {capacity}: give 1 to {most}")]
    Capacity {
        /// The number.
        capacity: usize,
        /// The most.
        most: usize,
    },
    /// The nice value is out of range.
    #[error("nice {nice}: give 0 to 19; 10 makes way for threads that serve connections")]
    Nice {
        /// The value.
        nice: u8,
    },
    /// A thread did not start.
    #[error(
        "cannot start a worker thread: {0}; raise the limit of processes (ulimit -u) or ask for fewer workers"
    )]
    Thread(#[source] io::Error),
    /// A worker cannot be pinned.
    #[error("cannot pin a worker: {0}")]
    Pin(#[from] PinError),
    /// There are no stacks to be had.
    #[error("cannot map stacks for fibers: {0}; lower stack_bytes or raise vm.max_map_count")]
    Stacks(#[source] io::Error),
    /// The control socket, or the port for metrics, cannot be had.
    #[error(transparent)]
    Doors(#[from] DoorError),
}
headway_words::debug_is_display!(BuildError);

/// The error, and "; did you mean 'darc'?" for a misspelt policy or parameter.
fn explain(error: &SpecError) -> String {
    let alternatives = error.alternatives();
    let hint = alternatives.map_or(String::new(), |(word, known)| {
        headway_words::hint(word, known.iter().copied())
    });
    format!("{error}{hint}")
}

/// Why a job was not accepted. It was never in the pool, and is in no count but that of refusals.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// A queue is full, or the class's SLO would be missed by waiting.
    #[error(
        "class '{class}' is overloaded, {queued} wait: try again in {retry_after:?}, or answer with an error now"
    )]
    Overloaded {
        /// The class.
        class: String,
        /// Jobs of the class that wait.
        queued: usize,
        /// When what waits now is worked off, by the means learnt.
        retry_after: Duration,
    },
    /// No class is called so.
    #[error("no class is called '{name}'{}", headway_words::hint(.name, .known.iter().map(String::as_str)))]
    UnknownClass {
        /// The name.
        name: String,
        /// The declared names.
        known: Vec<String>,
    },
    /// The handle belongs to another pool.
    #[error("this handle of a class belongs to another pool: ask the pool itself, by Pool::class")]
    OtherPool,
    /// The pool learns no classes.
    #[error("this pool has no classes to learn: build it with learn_classes(n), or name a class")]
    NothingLearns,
    /// The pool is shut down.
    #[error("the pool is shut down: keep it until the last job was submitted")]
    ShutDown,
    /// A worker of the pool would wait for the pool.
    #[error(
        "a job of the pool itself waits for the pool, and would keep its worker: call the closure, or submit it and wait for its future"
    )]
    InsidePool,
    /// The process was forked, and the child has no workers.
    #[error(
        "this process was forked, and the pool's threads are its parent's: build a pool in the child"
    )]
    Forked,
}
headway_words::debug_is_display!(SubmitError);

/// Why there is no result of a job.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// The job panicked. The worker goes on.
    #[error("the job panicked: {0}")]
    Panic(PanicPayload),
    /// The job was cancelled before it ended.
    #[error("the job was cancelled")]
    Cancelled,
    /// The job waited and had to make room, or did not begin in time.
    #[error("the job was shed after it was accepted: {0}")]
    Shed(ShedReason),
    /// The pool ended while the job waited.
    #[error("the pool ended before the job began: call wait_idle or a longer shutdown first")]
    Abandoned,
    /// The job was not accepted.
    #[error(transparent)]
    Refused(#[from] SubmitError),
}
headway_words::debug_is_display!(JoinError);

/// Why a job that waited was shed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ShedReason {
    /// The pool's queue was full, and a job of a shorter class came.
    MadeRoom,
    /// It did not begin before its class's deadline.
    TooLate,
}

impl fmt::Display for ShedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MadeRoom => "the queue was full and a shorter class needed room",
            Self::TooLate => "its class's deadline to begin passed",
        })
    }
}

/// What a job panicked with. Several threads may hold it, so that [`JoinError`] goes where errors are shared, as into `anyhow`'s.
pub struct PanicPayload(Mutex<Box<dyn Any + Send>>);

impl PanicPayload {
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Self {
        Self(Mutex::new(payload))
    }

    /// The payload, for [`resume_unwind`](std::panic::resume_unwind).
    #[must_use]
    pub fn into_inner(self) -> Box<dyn Any + Send> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The message of the panic, where it is text.
impl fmt::Display for PanicPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let payload = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        f.write_str(text.unwrap_or("with a payload that is no text"))
    }
}
headway_words::debug_is_display!(PanicPayload);

/// The pool did not become idle in time.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{abandoned} jobs were abandoned before they began, and {running} still run: their threads end with them"
)]
pub struct ShutdownTimeout {
    /// Jobs that waited, or futures that slept.
    pub abandoned: usize,
    /// Jobs that run still, told so by [`cancelled`](crate::cancelled).
    pub running: usize,
}
headway_words::debug_is_display!(ShutdownTimeout);

/// The calling thread runs no job of a pool.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "this is no job of a pool, so nobody interrupts or cancels it: call this from a submitted closure only"
)]
pub struct OutsidePool;
headway_words::debug_is_display!(OutsidePool);

/// What a pool does otherwise than its policy says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PoolWarning {
    /// The policy interrupts, and the pool runs jobs to their end: the machine has no [steady](headway_machine::doctor::has_steady_tsc) time-stamp counter, by which jobs interrupt themselves.
    RunsToEnd {
        /// The policy.
        policy: &'static str,
    },
    /// A policy that reserves by profile has one worker, which it cannot divide.
    OneWorker {
        /// The policy.
        policy: &'static str,
    },
}

impl fmt::Display for PoolWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RunsToEnd { policy } => write!(
                f,
                "policy {policy} interrupts long jobs, and this machine has no steady time-stamp counter, by which they would see their time: each runs to its \
                 end. Choose a policy that does not interrupt, such as darc-stable"
            ),
            Self::OneWorker { policy } => write!(
                f,
                "policy {policy} divides workers among classes, and this pool has one: give it two or more"
            ),
        }
    }
}
