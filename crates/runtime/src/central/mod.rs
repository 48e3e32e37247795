//! Systems with a dispatcher: one thread at a time decides for all.
//!
//! Where the system interrupts nobody, workers run requests on their own stacks, beside a [dispatcher thread](dedicated) or
//! [taking turns](inline) as the dispatcher. Where it does, they run requests [on fibers](fiber_worker) in both layouts: a dispatcher thread
//! [watches](watch) what runs, and may [run requests itself](dispatcher_worker); workers that take turns [interrupt themselves](inline_fibers).

mod dedicated;
mod dispatched;
mod dispatcher;
mod dispatcher_worker;
mod fiber_worker;
mod group;
mod inline;
mod inline_fibers;
mod launch;
mod presence;
mod rack;
mod start;
mod view;
mod waiting;
mod watch;
mod worker;
mod worker_link;

pub(crate) use dispatched::Dispatched;
pub(crate) use launch::launch;
