//! The live server: policies from `headway-policy` on real cores.
//!
//! Nothing blocks, allocates, locks or logs on the path of a request. Who does what:
//!
//! - [`Server`]: what users start, watch and stop; [`Service`]: what they write.
//! - *Dispatcher*: owns a policy's `Ingress`. Each turn takes completions in, polls and classifies
//!   requests, hands decided ones to the workers' [rings](ring), and refuses what finds its queue full. It has a thread of its
//!   own, or, where cores are few, the workers [take turns](leader) at it.
//! - *Workers*: run the handler and send the response themselves, from the buffer the request came in.
//! - Without a dispatcher (d-FCFS, work stealing) workers are steered: each polls a receive queue of its own.
//!
//! Who has nothing to do spins, then [sleeps](park); who wakes others pays for it only if they sleep.

mod assignment;
mod central;
mod control;
mod error;
mod executor;
mod fibers;
mod intake;
mod journal;
pub mod leader;
mod overflow;
mod overruns;
mod panics;
pub mod park;
mod parts;
mod refusal;
pub mod ring;
pub mod run_queue;
mod rx_waker;
mod server;
mod service;
mod slice;
mod stall;
mod steered;
mod sync;
mod tally;
mod threads;
mod token;
mod trylock;

pub use central::LOOK_NS;
pub use error::{ResizeError, ShutdownError, StartError};
pub use headway_fiber::{Mechanism, NoPreempt, checkpoint, suspensions};
pub use journal::{Entry, Journal};
pub use park::Idle;
pub use parts::Layout;
pub use server::{
    Admission, Builder, Class, NoService, NoSource, Observer, Server, Stopper, Udp, admit,
    max_queue_limit, server_shape,
};
pub use service::{Call, MAX_REPLY_BYTES, Service, SetupFailure, Spin};
pub use stall::{Stall, alive};
pub use tally::{ClassStats, Stats};
pub use threads::Pin;
