//! The parts that threads share, each checked by models of all or of random interleavings.
//!
//! | part | file |
//! |---|---|
//! | a ring of words between two threads | [`ring`] |
//! | a worker's queue, from which others steal | [`run_queue`] |
//! | where a thread sleeps until it is woken | [`park`] |
//! | the token for which a thread in user space parks | [`park_token`] |
//! | a barrier between two threads, of which the rare one pays for both | [`barrier`] |
//! | a lock that is only tried | [`trylock`] |
//! | who may touch a job that goes on in a thread of its own meanwhile | [`job_holder`] |
//! | a thread that looks often or rarely | [`look_alert`] |
//! | workers that take turns as the leader | [`leader`] |
//! | a value on cache lines of its own | [`Padded`] |
//! | a value under a lock, and threads that wait for it to change | [`Guarded`] |
//! | the door of a deterministic world | [`world`] |
//!
//! [`Arc`], [`Mutex`], [`Condvar`], [`atomic`], [`cell`], [`hint`] and [`thread`] are the standard library's, or models of them: loom's under `--cfg loom`,
//! shuttle's under `--cfg shuttle`. Code that uses them from here runs unchanged in a model. So does [`thread_local!`](std::thread_local), which models by shuttle alone have.

pub mod barrier;
mod guarded;
pub mod job_holder;
pub mod leader;
pub mod look_alert;
#[cfg(shuttle)]
mod model_local;
mod padded;
pub mod park;
pub mod park_token;
pub mod ring;
pub mod run_queue;
pub mod trylock;
pub mod world;

pub use guarded::{Guarded, MutexGuard};
#[cfg(shuttle)]
pub use model_local::{ModelLocal, ModelLocalBorrow, ModelLocalCopy};
pub use padded::Padded;

#[cfg(loom)]
pub use loom::{
    cell, hint,
    sync::{Arc, Condvar, Mutex, atomic},
    thread,
};
#[cfg(shuttle)]
pub use shuttle::{
    hint,
    sync::{Arc, Condvar, Mutex, atomic},
    thread, thread_local,
};
#[cfg(shuttle)]
pub use std::cell;
#[cfg(not(any(loom, shuttle)))]
pub use std::{
    cell, hint,
    sync::{Arc, Condvar, Mutex, atomic},
    thread, thread_local,
};
