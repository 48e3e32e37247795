//! Where a server answers about itself: a control socket, an address for Prometheus and browsers, and the process's signals. All of it is the feature `ops`; a
//! server without it is read by its [`Observer`](super::Observer) alone.

mod answers;
pub(super) mod chosen;
mod metrics;
mod run;
mod stacks;
pub(super) mod status;
mod unwind;
