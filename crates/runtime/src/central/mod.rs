//! Systems with a dispatcher: one thread at a time decides for all.
//!
//! Where the system interrupts nobody, workers run requests on their own stacks ([`dedicated`], [`inline`]). Where it does, they run
//! them on fibers ([`sharing`]); the dispatcher [watches](watch) what runs, and may
//! [run requests itself](dispatcher_worker).

mod dedicated;
mod dispatcher;
mod dispatcher_worker;
mod inline;
mod launch;
mod sharing;
mod watch;
mod worker_link;

pub(crate) use launch::{Dispatched, launch};
