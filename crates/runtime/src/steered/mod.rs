//! Systems without a dispatcher: the network steers, each worker has a receive queue of its own.
//!
//! The receive queue *is* the worker's queue. A request that is taken out of it lies in a buffer of one worker's
//! partition and in its private list, where no thief can get at it; so, where workers steal, each takes out just
//! what it runs next, and the rest stays where everyone can [poll](headway_net::datapath::Rx::poll) it into buffers of
//! their own. No slot ever changes its partition, and no second queue has to be kept lock-free. Where nobody steals, whole batches are
//! taken, which spares system calls.

mod launch;
mod peers;
mod view;
mod worker;

pub(crate) use launch::launch;
