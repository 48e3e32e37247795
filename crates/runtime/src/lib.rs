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

mod accepting;
mod assignment;
mod central;
mod control;
mod error;
mod executor;
mod fibers;
mod groups;
mod hosted;
mod intake;
mod journal;
mod layout;
mod overflow;
mod overruns;
mod panics;
mod park;
mod parts;
mod pull;
mod rack;
mod refusal;
mod rules;
mod run_slice;
mod rx_waker;
mod server;
mod service;
mod shared_queue;
mod slice;
mod stall;
mod steered;
mod tally;
mod threads;
mod token;
mod unplaced;
mod verdict;

pub use central::LOOK_NS;
pub use error::{ResizeError, SetupFailure, ShutdownError, StartError};
pub use headway_fiber::{Mechanism, NoPreempt, Section, checkpoint, suspensions};
pub use journal::{Journal, JournalEntry};
pub use layout::{Layout, LayoutFacts, ResolvedLayout, TURNS_CORES_MAX, default_workers};
pub use park::Idle;
pub use pull::{Pull, PullService, Request, Requests};
pub use rack::{DutyError, DutyOrder, RackCounts, RackLink};
pub use server::{
    Admission, Builder, DeclaredClass, InForce, NoService, NoSource, Observer, Server, Stopper,
    Tuner, Udp, admit, max_queue_limit, server_shape,
};
pub use service::{Call, MAX_REPLY_BYTES, Service, Spin};
pub use stall::{Stall, alive};
pub use tally::{
    ClassStats, FeedbackStats, HeldSections, HeldStats, Stats, WaitQueueStats, WorkerStats,
};
pub use threads::Pin;
