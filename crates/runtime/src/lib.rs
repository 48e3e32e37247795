//! The live server: policies from `headway-policy` on real cores.
//!
//! Nothing blocks, allocates, locks or logs on the path of a request. Who does what:
//!
//! - [`Server`]: what users start, watch and stop; [`Service`]: what they write.
//! - *Dispatcher*: owns a policy's `Ingress`. Each turn takes completions in, polls and classifies
//!   requests, hands decided ones to the workers' [rings](headway_sync::ring), and refuses what finds its queue full. It has a thread of its
//!   own, or, where cores are few, the workers [take turns](headway_sync::leader) at it.
//! - *Workers*: run the handler and send the response themselves, from the buffer the request came in.
//! - Without a dispatcher (d-FCFS, work stealing, SYNERGY) workers are steered: each polls a receive queue of its own.
//! - Where nobody places requests (Tardis) workers take turns at the receive queue, and help themselves from one queue.
//!
//! Who has nothing to do spins, then [sleeps](headway_sync::park); who wakes others pays for it only if they sleep.
//!
//! The rooms of the crate, in order: code imports from its own room and from rooms above it.
//!
//! | room | what is there |
//! |---|---|
//! | `error` | what can go wrong with a server as a whole |
//! | `stats` | counts, stalls, the journal, requests that do not yield |
//! | `queue` | how requests cross threads: tokens as words, rings, shared queues, the sleeper at a receive queue |
//! | `request` | one request: intake, handler, executor, fibers, slices, refusal |
//! | `threads` | how threads start, wait, stop and hear from the owner: phases, rules, orders of a rack, granted cores |
//! | `engine` | what every engine is made of: settings, classes, layout, admission, launch |
//! | `central`, `steered`, `unplaced` | the engines, one for each owner of an ingress; none knows another |
//! | `pull` | services that are loops, which take requests themselves |
//! | `server` | what users start, watch, tune and stop |
//!
//! The feature `ops`, on by default, is what others ask of a running server: `headway ctl`, `headway top`, Prometheus, backtraces of suspended requests, and
//! [`Server::run`], which heeds signals.

mod central;
mod engine;
mod error;
mod pull;
mod queue;
mod request;
mod server;
mod stats;
mod steered;
mod threads;
mod unplaced;

pub use engine::admission::{Admission, admit, max_queue_limit, server_shape};
pub use engine::class::DeclaredClass;
pub use engine::layout::{Layout, LayoutFacts, ResolvedLayout, WorkersFacts, default_workers};
pub use engine::layout_costs::{LayoutCosts, mean_service_ns};
pub use engine::settings::{AdmittedServer, ServerSettings};
#[cfg(feature = "ops")]
pub use error::RunError;
pub use error::{ResizeError, ServerSetting, SetupFailure, ShutdownError, StartError};
pub use headway_fiber::{
    Mechanism, NoPreempt, NoTimer, Section, StackCopy, TimerCost, WorkMeter, checkpoint,
    on_own_thread, suspensions,
};
pub use headway_machine::histogram::TimeHistogram;
#[cfg(feature = "ops")]
pub use headway_ops::doors::DoorError;
#[cfg(feature = "ops")]
pub use headway_ops::socket::ControlPlace;
pub use headway_policy::Resume;
pub use pull::{Pull, PullService, Request, Requests};
pub use queue::look::LOOK_NS;
pub use request::service::{Call, MAX_REPLY_BYTES, Service, Spin};
pub use request::suspended_stacks::SuspendedRequest;
pub use server::{Builder, InForce, NoService, NoSource, Observer, Server, Stopper, Tuner, Udp};
pub use stats::journal::{Journal, JournalEntry};
pub use stats::stall::{Stall, alive};
pub use stats::tally::{
    ClassStats, FeedbackStats, HeldSections, HeldStats, ShedStats, Stats, WaitQueueStats,
    WorkerStats,
};
pub use threads::park::Idle;
pub use threads::rack::{DutyError, DutyOrder, RackCounts, RackLink};
pub use threads::server_threads::Pin;
