//! Systems without a dispatcher: the network steers, each worker has a receive queue of its own.
//!
//! A worker takes a batch from its receive queue, runs the first request of it, and leaves the others in its
//! [run queue](headway_sync::run_queue), where others steal them (SYNERGY § 4.1). What it has not taken, while it runs a request, others take
//! from its receive queue. Interrupted requests wait in queues that all workers [share](peers). So requests change workers, and their
//! buffers with them: a worker that has more free buffers than its part of the pool gives them up for whoever has none.
//!
//! Where a policy interrupts, workers run requests [in slices](preemptive), else to their end. Its monitor has a [thread](monitor) and a core
//! of its own where there is one, else the workers carry it out.

mod launch;
mod monitor;
mod peers;
mod preemptive;
mod view;
mod worker;
mod worker_slot;

pub(crate) use launch::{SteeredSystem, launch};
